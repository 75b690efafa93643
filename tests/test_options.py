"""Options: checked when they are made, equal by value, the same as JSON."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp import texts
from interp.errors import UserError
from interp.measurements.specs import Attribute, Patch
from interp.models.loading import Loading
from interp.options import FromText, Options, choices
from interp.prompts.source import PromptSource
from interp.runs.options import ComputeOptions, ExecutionOptions

pytestmark = pytest.mark.usefixtures("unchecked_types")


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Attribute, {"methods": ("x",)}, "unknown method"),
        (Attribute, {"methods": ()}, "no method given"),
        (Patch, {"sites": ()}, "no site given; expected some of resid_pre"),
        (Attribute, {"target": "golden"}, "unknown target 'golden'; did you mean gold"),
        (Attribute, {"keep_tokens": "yes"}, "keep_tokens is 'yes'"),
        (Attribute, {"foo": 1}, "unknown option 'foo'; expected one of"),
        (Patch, {"sites": ("foo",)}, "unknown site"),
        (Patch, {"policy": "first"}, "unknown policy 'first'"),
        (Patch, {"granularity": 1}, "unknown granularity '1'"),
        (Patch, {"layers": "a"}, "expected numbers such as 0,2,5"),
        (Patch, {"layers": [-1]}, "layers is -1"),
        (Patch, {"verify": 3}, "got verify without an estimate"),
        (Patch, {"remote": True}, "does not run remotely"),
        (PromptSource, {"limit": 0}, "limit is 0: expected a whole number from 1 to"),
        (PromptSource, {"limit": True}, "1,000,000,000, or all"),
        (PromptSource, {"limit": "x"}, "pairs, or all"),
        (PromptSource, {"system": "x"}, "unknown system 'x'"),
        (Loading, {"dtype": "int8"}, "unknown dtype 'int8'"),
        (Loading, {"device": "cpu", "device_map": "auto"}, "expected one of them"),
        (ComputeOptions, {"fail_on_error": 2.0}, "fail_on_error is 2.0"),
        (ExecutionOptions, {"slurm_options": ["time"]}, "is not an option such as"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(kind, values, message):
    with pytest.raises(UserError) as refused:
        kind(**values)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_lists_of_yaml_and_texts_of_the_command_line_are_values():
    assert Patch(layers=[0, 2]) == Patch(layers="0,2") == Patch(layers=(0, 2))
    assert Patch(layers=range(0, 6, 2)) == Patch(layers=(0, 2, 4))
    assert Attribute(methods="attention").methods == ("attention",)
    assert Loading(dtype="bf16").dtype == "bfloat16"
    assert ExecutionOptions(slurm_options=["gpus-per-node=1"]).slurm_options == ("gpus_per_node=1",)


LAYERS = st.none() | st.lists(st.integers(0, 50), min_size=1, max_size=4).map(tuple)


@given(
    layers=LAYERS,
    direction=st.sampled_from(["denoising", "noising"]),
    estimate=st.sampled_from([None, "gradient", "integrated"]),
)
def test_json_gives_the_same_options(layers, direction, estimate):
    spec = Patch(layers=layers, direction=direction, estimate=estimate)
    assert Patch.model_validate_json(spec.model_dump_json()) == spec
    assert Patch.model_validate(spec.as_json()) == spec
    assert hash(Patch.model_validate(spec.as_json())) == hash(spec)


def test_where_something_is_computed_is_no_part_of_its_identity():
    nnsight = {"backend": "nnsight"}
    assert Patch(**nnsight).identity() == Patch(**nnsight, remote=True).identity()
    assert Attribute().identity() != Attribute(target="gold").identity()
    assert "device" not in Loading(device="cpu").identity()


def test_the_choices_of_a_type_are_found_within_it():
    assert choices(Literal["a", "b"]) == ("a", "b")
    assert choices(tuple[Literal["a", "b"], ...] | None) == ("a", "b")
    assert choices(int | None) == ()


def test_a_field_of_ones_own_reads_texts():
    class Own(Options):
        share: Annotated[float, FromText(texts.share)] = 0.5
        """a share"""

    assert Own(share="0.25").share == 0.25
    for bad in ("2", "0_1"):
        with pytest.raises(UserError, match=rf"share.*'{bad}'.*0.*1\b"):
            Own(share=bad)
    assert Own.model_fields["share"].description == "a share"
