"""Results in which every prompt failed, or a whole group has no value."""

from dataclasses import replace

import numpy as np
import pytest

import interp
from interp.measurements.specs import Attribute, Edges, Effects, Evaluate, Generate, Patch
from interp.prompts.prompt_set import PromptSet
from interp.report.write import write_report

pytestmark = pytest.mark.usefixtures("unchecked_types")

SPECS = [
    Attribute(keep_tokens=True),
    Edges(methods=("gradient",)),
    Effects(),
    Evaluate(),
    Generate(max_new_tokens=2),
    Patch(),
]


@pytest.fixture(scope="module")
def model():
    return interp.load_model("organism/llama-shallow", device="cpu")


@pytest.fixture(scope="module")
def pairs():
    return interp.load_prompts(limit=2)


@pytest.fixture
def too_long(pairs):
    longer = [replace(prompt, text=prompt.text + " and" * 5000) for prompt in pairs]
    return replace(pairs, build=longer.__getitem__, numbers=range(len(longer)))


def failed(spec, model, prompts, folder):
    return interp.run(spec, models=model, prompts=prompts, out=folder, fail_on_error=1.0)


@pytest.mark.quick(2)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_page_is_written_although_every_prompt_failed(spec, model, too_long, tmp_path):
    found = failed(spec, model, too_long, tmp_path / "run")
    report = found.report()
    assert write_report(report, tmp_path).stat().st_size
    assert len(report.glance.sentences) <= 5
    if isinstance(spec, Patch):
        with pytest.raises(interp.UserError, match=r"pair.*figure.*pairs"):
            found.plot()


def test_prompts_that_compare_no_segments_may_all_fail(model, too_long, tmp_path):
    found = failed(Attribute(), model, PromptSet.of(list(too_long)), tmp_path / "run")
    assert found.ratio is None
    assert found.opening().numbers["value"].notna().sum() == 0
    assert write_report(found.report(), tmp_path).stat().st_size


def test_a_model_without_any_effect_hides_no_other_model(model, pairs):
    other = replace(model, name="other")
    found = interp.run(Patch(layers=(0,)), models=[model, other], prompts=pairs)
    expected = found.opening().numbers.query("model == 'organism/llama-shallow'")
    patches = found.measured._tables["patches"]
    patches.loc[patches["model"] == "other", "effect"] = np.nan
    again = type(found)(found.measured).opening().numbers
    again = again[again["number"].str.startswith("largest")]
    assert again["value"].tolist() == expected["value"].tolist()[1:]
    patches["effect"] = 0.0
    labels = type(found)(found.measured).opening().numbers["label"].unique()
    assert any("equal rows" in label for label in labels)
    assert not any("layer" in label for label in labels)
    patches["effect"] = np.nan
    assert (
        not type(found)(found.measured).opening().numbers["number"].str.startswith("largest").any()
    )
