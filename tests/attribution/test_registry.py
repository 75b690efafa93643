import re
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import interp
import interp.attribution.methods
from interp.attribution import registry
from interp.attribution.registry import ATTRIBUTION, DEFAULT_METHODS, find_method, method_names
from interp.cli.listings import listing
from interp.errors import UserError
from interp.measurements.specs import Attribute
from tests.attribution import own_methods
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


@pytest.mark.parametrize("name", method_names())
def test_every_method_is_described_and_implemented(name):
    method = find_method(name)
    assert method.name == name
    for text in (method.summary, method.formula, method.source, method.sign, method.cost):
        assert len(text) > 3
    assert method.source[-4:].isdigit()
    module, _, attribute = method.implementation.partition(":")
    implementation = getattr(import_module(module), attribute)
    assert implementation.__doc__
    assert module.startswith("interp.attribution.methods.")
    if name.startswith("captum:"):
        assert module.endswith(".captum")


def test_every_file_of_methods_is_registered():
    files = {file.stem for file in Path(interp.attribution.methods.__file__).parent.glob("*.py")}
    modules = {find_method(name).implementation.partition(":")[0] for name in method_names()}
    assert files - {"__init__"} == {module.rpartition(".")[2] for module in modules}


def test_the_default_methods_are_methods():
    assert tuple(map(ATTRIBUTION.label, DEFAULT_METHODS)) == DEFAULT_METHODS


def test_a_method_is_refused_before_any_model():
    with pytest.raises(UserError, match=r"'captum:oclusion'.*captum:occlusion"):
        Attribute(methods=["attention", "captum:oclusion"])
    with pytest.raises(UserError, match="method") as refused:
        Attribute(methods=[])
    assert {*DEFAULT_METHODS, "input_gradient"} <= {*re.findall(r"[\w:]+", str(refused.value))}


@pytest.fixture
def own(monkeypatch):
    """Entry points of another package, by name."""

    def install(**objects):
        points = {
            name: EntryPoint(name, f"tests.attribution.own_methods:{attribute}", registry.METHODS)
            for name, attribute in objects.items()
        }
        monkeypatch.setattr(registry, "plugins", lambda group: points)

    return install


def test_a_method_of_another_package_stands_beside_the_toolkits(own):
    own(embedding_norm="NORM", leave_one_out="LEAVE_ONE_OUT")
    assert method_names()[-2:] == ["embedding_norm", "leave_one_out"]
    methods = ["leave_one_out", "input_gradient", "embedding_norm"]
    prompts, model = some_prompts(2), tiny_model("llama")
    result = interp.attribute(model, prompts, methods=methods, keep_tokens=True)
    rows = result.segment_scores
    assert list(dict.fromkeys(rows["method"])) == methods
    # The method that scores segments has no token scores.
    assert set(result.token_scores["method"]) == {"input_gradient", "embedding_norm"}
    segments = rows[rows["method"] == "leave_one_out"]
    assert set(segments["segment"]) == {"premise1", "premise2", "conclusion", "question"}
    np.testing.assert_allclose(segments["share"], segments["score"].abs() / segments["total"])
    sums = segments.groupby("prompt_id")["share"].sum()
    np.testing.assert_allclose(sums, 1.0)
    ratios = result.ratios()
    assert (ratios["error"] == "").all()
    assert "leave_one_out_mean_ratio" in result.summary()


def test_a_segments_score_is_what_leaving_it_out_changes(own):
    own(leave_one_out="LEAVE_ONE_OUT")
    model, prompts = tiny_model("llama"), some_prompts(1)[:1]
    rows = interp.attribute(model, prompts, methods=["leave_one_out"], batch_tokens=1).to_frame()
    expected = own_methods.left_out_by_hand(model, prompts[0])
    np.testing.assert_allclose(
        rows.set_index("segment")["score"][list(expected)], list(expected.values()), atol=1e-5
    )


def test_a_method_of_another_package_has_options_of_its_own(own):
    own(power="POWER", embedding_norm="NORM")
    methods = ["power", "power:power=1", "power:power=1:halved=true", "embedding_norm"]
    assert Attribute(methods=["power:halved=false:power=2"]).methods == ("power",)
    result = interp.attribute(
        tiny_model("llama"), some_prompts(1), methods=methods, keep_tokens=True
    )
    assert list(result.segment_scores["method"].unique()) == methods
    squared, norms, halves, plain = (
        rows["score"].to_numpy() for _, rows in result.token_scores.groupby("method", sort=False)
    )
    np.testing.assert_allclose(norms, plain, rtol=1e-6)
    np.testing.assert_allclose(squared, plain**2, rtol=1e-5)
    np.testing.assert_allclose(halves, plain / 2, rtol=1e-6)
    # Its declaration decides on its numbers too, since it has the defaults.
    assert "tests.attribution.own_methods" in Attribute(methods=["power"]).modules()
    assert re.search(r"`power`: .*\b1\b.*\b4\b.*\b2\): exponent", listing())
    assert re.search(r"`halved`: true.*false.*false\)", listing())


def test_options_without_defaults_are_refused(own):
    own(unset="UNSET", undeclared="UNDECLARED")
    for name in ("unset", "undeclared"):
        with pytest.raises(UserError, match=r"interp\.methods.*interp\.options\.Options"):
            Attribute(methods=[name])


def test_an_entry_point_that_is_no_method_is_refused(own):
    own(nothing="NOTHING", other="NORM", neither="NEITHER", nowhere="NOWHERE")
    for name in ("nothing", "other"):
        with pytest.raises(
            UserError, match=rf"'{name}'.*interp\.methods.*interp\.attribution\.registry\.Method"
        ):
            find_method(name)
    with pytest.raises(UserError, match=r"'neither'.*object.*SharedPass"):
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=["neither"])
    with pytest.raises(UserError, match=r"'nowhere'.*own_methods:Nowhere.*'Nowhere'"):
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=["nowhere"])


def test_a_method_that_does_not_name_what_it_reads_is_told(own):
    own(forgetful="FORGETFUL")
    with pytest.raises(LookupError, match=r"input_gradient.*needs"):
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=["forgetful"])


@pytest.mark.parametrize(("name", "needs"), [("tupled", "a tuple"), ("misnamed", "a frozenset")])
def test_needs_that_are_none_are_named(own, name, needs):
    own(tupled="TUPLED", misnamed="MISNAMED")
    with pytest.raises(UserError, match=rf"'{name}'.*{needs}.*frozenset.*attention_rows") as error:
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=[name])
    assert "\n" not in str(error.value)
