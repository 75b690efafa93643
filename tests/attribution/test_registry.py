import re
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import interp
import interp.attribution.methods
from interp.attribution import registry
from interp.attribution.registry import find_method, method_names
from interp.cli.listings import listing
from interp.errors import UserError
from interp.measurements.specs import Attribute
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


METHOD = r".*interp\.methods.*interp\.attribution\.registry\.Method"
OPTIONS = r"interp\.methods.*interp\.options\.Options"


@pytest.mark.parametrize(
    ("name", "attribute", "problem"),
    [
        ("nothing", "NOTHING", f"'nothing'{METHOD}"),
        ("other", "NORM", f"'other'{METHOD}"),
        ("unset", "UNSET", OPTIONS),
        ("undeclared", "UNDECLARED", OPTIONS),
        ("neither", "NEITHER", r"'neither'.*object.*SharedPass"),
        ("nowhere", "NOWHERE", r"'nowhere'.*own_methods:Nowhere.*'Nowhere'"),
        ("forgetful", "FORGETFUL", r"input_gradient.*needs"),
        ("tupled", "TUPLED", r"'tupled'.*a tuple.*frozenset.*attention_rows"),
        ("misnamed", "MISNAMED", r"'misnamed'.*a frozenset.*frozenset.*attention_rows"),
    ],
)
def test_what_is_no_method_is_refused(own, name, attribute, problem):
    own(**{name: attribute})
    error = LookupError if name == "forgetful" else UserError
    with pytest.raises(error, match=problem) as told:
        interp.attribute(tiny_model("llama"), some_prompts(1), methods=[name])
    assert "\n" not in str(told.value)
