"""Context attributions from measured effects are those of `attribute`, and need no weights."""

import numpy as np
import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.measurements.specs import Attribute, Effects
from interp.models.organisms import DEFAULT
from tests.support.vllm_server import serving

METHODS = (
    *("leave_one_out:donor", "shapley", "context_cite:samples=16"),
    *("captum:kernel_shap", "captum:lime"),
)


@pytest.mark.slow
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
    with pytest.raises(interp.UserError, match=r"'attention' .*context_cite"):
        Effects(context=("attention",))


@pytest.mark.slow
def test_the_command_makes_a_page_of_a_served_model(tmp_path):
    with serving(interp.load_model(DEFAULT, dtype="float64")) as served:
        common = ["--model", DEFAULT, "--limit", "1"]
        asked = ["--context", "context_cite", "shapley", "--server", served.url]
        out = tmp_path / "served"
        assert main(["effects", *common, *asked, "--out", str(out)]) == 0
    table = pd.read_csv(out / "context_table.csv").set_index(["method", "segment"])
    assert table.index.unique("method").tolist() == ["context_cite", "shapley"]
    scores = pd.read_parquet(out / "context_scores.parquet").groupby(["method", "segment"])["score"]
    np.testing.assert_allclose(table["score"], scores.mean()[table.index])
    sizes = scores.agg(lambda own: own.abs().mean())
    np.testing.assert_allclose(table["size"], sizes[table.index])
    assert main(["report", str(out)]) == 0
    assert 'id="table-context_table"' in (out / "report.html").read_text()
    pieces = "".join(file.read_text() for file in (out / "pairs").iterdir())
    assert '"title":"Context attribution"' in pieces
    assert '"group":"score"' in pieces
