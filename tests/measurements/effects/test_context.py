"""Context attributions from measured effects are those of `attribute`, and need no weights."""

import numpy as np
import pytest

import interp
from interp.measurements.specs import Attribute, Effects
from interp.models.organisms import DEFAULT
from tests.support.vllm_server import serving

METHODS = (
    "leave_one_out:donor",
    "shapley",
    "context_cite:samples=16",
    "captum:kernel_shap",
    "captum:lime",
)


def test_scores_of_a_served_model_equal_those_of_attribute_here():
    model = interp.load_model(DEFAULT, dtype="float64")
    with serving(model) as served:
        effects = interp.run(Effects(server=served.url), models=DEFAULT, limit=2)
    asked = len(served.requests)
    found = effects.context(*METHODS)
    assert len(served.requests) == asked
    prompts = effects.prompts["prompt_id"].tolist()
    here = interp.run(Attribute(methods=METHODS, target="margin"), models=model, limit=2)
    expected = here.table("segment_scores")
    key = ["prompt_id", "method", "segment"]
    both = found.merge(expected, on=key, suffixes=("", "_here"))
    assert len(both) == len(found) and set(found["prompt_id"]) == set(prompts)
    np.testing.assert_allclose(both["score"], both["score_here"], atol=1e-5, rtol=0)
    assert effects.context()["method"].unique().tolist() == ["context_cite"]


def test_methods_that_read_more_are_refused():
    effects = interp.run(Effects(donors=1), models=DEFAULT, limit=1)
    with pytest.raises(interp.UserError, match=r"'attention' .*context_cite"):
        effects.context("attention")
