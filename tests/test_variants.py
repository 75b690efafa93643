"""Methods with options: one grammar for flags, YAML and Python."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from interp.attribution.registry import ATTRIBUTION, find_method
from interp.errors import UserError
from interp.judging.study import METHODS, Faithfulness
from interp.measurements.specs import Attribute, Circuits, Edges, Patch
from interp.options import FromText, Options
from interp.texts import number
from interp.variants import NoOptions, Variants


class Own(Options):
    count: Annotated[int, Field(ge=1, le=9)] = 3
    """a whole number"""
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5
    """a number"""
    signed: bool = False
    """a choice"""
    norm: Literal["l1", "l2"] = "l2"
    """one of two words"""


OWN = Variants(
    "method", lambda: ["a", "lib:a", "plain"], lambda n: NoOptions if n == "plain" else Own
)


def test_a_label_has_only_what_differs_from_the_defaults():
    assert OWN.label("lib:a") == OWN.label("lib:a:count=3:scale=0.50") == "lib:a"
    assert OWN.label("a:norm=l1:signed=true:count=4") == "a:count=4:signed=true:norm=l1"
    name, options = OWN.parsed("a:scale=2")
    assert (name, dict(options)) == ("a", {"count": 3, "scale": 2.0, "signed": False, "norm": "l2"})


@given(
    st.integers(1, 9),
    st.floats(0, allow_nan=False, allow_infinity=False, exclude_min=True),
    st.booleans(),
    st.sampled_from(["l1", "l2"]),
)
def test_a_label_says_all_options_and_is_its_own_label(count, scale, signed, norm):
    text = f"lib:a:scale={scale}:norm={norm}:count={count}:signed={str(signed).lower()}"
    label = OWN.label(text)
    assert OWN.label(label) == label
    assert OWN.parsed(label) == ("lib:a", Own(count=count, scale=scale, signed=signed, norm=norm))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:cuont=4", r"method.*option 'cuont'.*count\?"),
        ("a:count=0", r"method.*count.*0.*1.*9\b"),
        ("a:count=2.5", r"count.*'2.5'.*1.*9\b"),
        ("a:scale=nan", r"method.*scale.*'nan'"),
        ("a:signed=1", r"method.*signed.*'1'"),
        ("a:norm=l3", r"method.*norm 'l3'.*l1, l2\b"),
        ("a:count=2:count=3", r"'a:count=2:count=3'.*option count"),
        ("a:count=2:5", r"'5'.*a:count=3\b"),
        ("a:count=", r"'count='.*option.*value.*NAME.*OPTION"),
        ("a:4", r"'4'.*option.*value.*NAME.*OPTION"),
        ("count=4", r"'count=4'.*method; options.*NAME.*OPTION"),
        ("", r"method.*NAME.*OPTION"),
        ("plain:count=4", r"method plain.*options.*'count=4'"),
        ("b:count=4", r"method 'b'.*lib:a, plain"),
    ],
)
def test_a_wrong_text_is_told_what_is_allowed(text, message):
    with pytest.raises(UserError, match=message):
        OWN.label(text)


@given(st.text(max_size=20))
def test_any_text_is_a_label_or_a_users_mistake(text):
    for variants in (OWN, ATTRIBUTION):
        for whole in (text, f"a:{text}", f"captum:lime:samples={text}"):
            try:
                label = variants.label(whole)
            except UserError:
                continue
            assert variants.label(label) == label


def test_texts_and_mappings_are_the_same_option():
    expected = ("attention", "captum:lime:samples=64", "integrated_gradients:steps=50")
    for methods in (
        list(expected),
        ["attention,captum:lime:samples=64", "integrated_gradients:steps=50"],
        {
            "attention": None,
            "captum:lime": {"samples": 64, "penalty": 0.01},
            "integrated_gradients": {"steps": 50},
        },
        ["attention", {"captum:lime": {"samples": 64}}, {"integrated_gradients": {"steps": 50}}],
        ["attention", "captum:lime:samples=64", *expected],
    ):
        assert Attribute(methods=methods).methods == expected
        assert Attribute(**Attribute(methods=methods).as_json()).methods == expected
    two = Attribute(methods=["captum:lime", "captum:lime:samples=64"])
    assert two.methods == ("captum:lime", "captum:lime:samples=64")
    assert two.identity()["methods"] == list(two.methods)
    assert two.identity() != Attribute(methods=["captum:lime"]).identity()


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"captum:lime": 64}, r"options.*captum:lime.*int.*mapping.*'steps'.*\b50\b"),
        ({"captum:lime": {"samples": [1, 2]}}, r"'samples=.1, 2.'.*option.*captum:lime"),
        ({"captum:lime": {"samples": True}}, r"samples.*'true'.*whole.*\b2\b.*\b100,000\b"),
        (
            {"captum:lime": {"samples": "9:penalty=1"}},
            r"'samples=9:penalty=1'.*option.*captum:lime",
        ),
        ({}, r"method.*one.*input_gradient.*input_x_gradient.*frozen_norms"),
        (["lime:samples=256"], r"method 'lime'.*captum:lime\?"),
        (["attention:steps=3"], r"method attention.*options.*'steps=3'"),
        (["integrated_gradients:steps=5000"], r"\b5000\b.*whole.*1.*1,000\b"),
    ],
)
def test_a_wrong_method_of_a_measurement_is_told(methods, message):
    with pytest.raises(UserError, match=message):
        Attribute(methods=methods)


def test_studies_edges_circuits_and_patching_take_options_too():
    chosen = Faithfulness(methods=["all", "captum:lime:samples=64"]).methods
    assert chosen == (*METHODS, "captum:lime:samples=64")
    assert Edges(methods="integrated:steps=5,activations:steps=9,exact").methods == (
        *("integrated", "activations:steps=9", "exact"),
    )
    assert Circuits(methods={"integrated": {"steps": 9}}).first().methods == ("integrated:steps=9",)
    assert Circuits().methods is None
    assert Patch(estimate="integrated:steps=9").estimate == "integrated:steps=9"
    with pytest.raises(UserError, match=r"estimate gradient.*options.*'steps=9'"):
        Patch(estimate="gradient:steps=9")
    with pytest.raises(UserError, match=r"method exact.*options.*'steps=9'"):
        Edges(methods=["exact:steps=9"])
    with pytest.raises(UserError, match=r"method integrated.*option 'step'"):
        Circuits(methods=["integrated:step=9"])


def test_every_option_of_a_method_reads_its_own_text():
    for name in ATTRIBUTION.known():
        declared = find_method(name).options
        for option, field in declared.model_fields.items():
            assert field.description, (name, option)
            assert ATTRIBUTION.label(f"{name}:{option}={field.default}") == name


def test_a_field_that_reads_texts_itself_is_left_alone():
    class Reads(Options):
        share: Annotated[float, FromText(number, "X")] = 0.5

    own = Variants("method", lambda: ["a"], lambda name: Reads)
    assert own.label("a:share=0.25") == "a:share=0.25"
