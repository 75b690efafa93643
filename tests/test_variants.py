"""Methods with options: one grammar for flags, YAML and Python."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from interp.attribution.registry import ATTRIBUTION, find_method
from interp.errors import UserError
from interp.faithfulness.study import METHODS, Faithfulness
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
        ("a:cuont=4", r"the method a: unknown option 'cuont'; did you mean count\?"),
        ("a:count=0", "the method a: count is 0: expected a whole number from 1 to 9"),
        ("a:count=2.5", "count is '2.5': expected a whole number from 1 to 9"),
        ("a:scale=nan", "the method a: scale is 'nan'"),
        ("a:signed=1", "the method a: signed is '1'"),
        ("a:norm=l3", r"the method a: unknown norm 'l3'; .*l1, l2"),
        ("a:count=2:count=3", "gives the option count twice"),
        ("a:count=2:5", "'5' in .* expected NAME.*such as a:count=3"),
        ("a:count=", "'count=' in .* is not an option with its value"),
        ("a:4", "'4' after a is not an option with its value"),
        ("count=4", "names no method; options follow the name"),
        ("", "names no method"),
        ("plain:count=4", "the method plain has no options, but got 'count=4'"),
        ("b:count=4", r"unknown method 'b'; .*a, lib:a, plain"),
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
        ({"captum:lime": 64}, "the options of captum:lime are an int; expected a mapping"),
        ({"captum:lime": {"samples": [1, 2]}}, "'samples=.1, 2.' is not an option of captum:lime"),
        ({"captum:lime": {"samples": True}}, "samples is 'true': expected a whole number"),
        ({"captum:lime": {"samples": "9:penalty=1"}}, "is not an option of captum:lime"),
        ({}, "no method given; expected one or more of input_gradient"),
        (["lime:samples=256"], r"unknown method 'lime'; did you mean captum:lime\?"),
        (["attention:steps=3"], "the method attention has no options"),
        (["integrated_gradients:steps=5000"], "a whole number from 1 to 1,000"),
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
    with pytest.raises(UserError, match="the estimate gradient has no options"):
        Patch(estimate="gradient:steps=9")
    with pytest.raises(UserError, match="the method exact has no options"):
        Edges(methods=["exact:steps=9"])
    with pytest.raises(UserError, match="the method integrated: unknown option 'step'"):
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
