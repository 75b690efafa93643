"""The ledger of facts as a part of the study of RULEBREAKERS."""

import pytest

import interp
from interp.prompts.source import PromptSource
from interp.report.page import FigureItem
from interp_experiments.rulebreakers.page import report_of
from interp_experiments.rulebreakers.study import RulebreakersStudy
from interp_probes.ledger import EXCHANGES, READINGS, STAGES
from interp_probes.ledger.results import measured, read_ledger


def test_it_is_measured_only_if_asked_for():
    source = PromptSource(limit=40)
    plain, asked = (RulebreakersStudy(ledger=own).stages(source) for own in (False, True))
    assert [stage.name for stage in asked[len(plain) :]] == [READINGS, EXCHANGES]
    stages = {stage.name: stage for stage in asked}
    drawn, read = (
        {prompt.factors["entity_b"] for prompt in stages[name].prompts}
        for name in ("answers", READINGS)
    )
    assert read == drawn
    known = {fact.factors["entity_b"] for fact in stages["knowledge"].prompts}
    assert read <= known
    assert stages[EXCHANGES].spec.side == "rulebreaker"


@pytest.mark.slow
def test_the_page_has_counts_of_few_failures_and_curves_for_each_model(tmp_path):
    study = interp.run(
        RulebreakersStudy(ledger=True),
        models=["organism/llama-shallow"],
        limit=8,
        device="cpu",
        out=tmp_path / "study",
    )
    assert set(STAGES) < set(study.runs)
    assert measured(study)
    figures = [item.name for item in report_of(study).items if isinstance(item, FigureItem)]
    # Eight pairs are fewer than ten clusters.
    assert "ledger_bars" not in figures
    assert "read_and_used_1" in figures
    known = study.table("facts_by_wording").set_index("wording")
    assert known.index.tolist() == ["as asked", "plain", "question", "examples"]
    judging = study.table("wordings").set_index("wording")["judging"]
    assert judging.sum() == study.table("ledger")["fact"].nunique()
    shares = study.table("ledger_shares")
    assert shares.shape[0] == read_ledger(study).shares.shape[0]
    assert {"rule", "entity_group"} <= set(shares["factor"])
