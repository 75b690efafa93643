"""The study: its tables on scores whose answers are known, and the whole of it on tiny models."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

import interp
from interp.analysis.cautions.caution import LEFT_OUT, void_models
from interp.errors import UserError
from interp.prompts.source import PromptSource
from interp.report.page import TableItem
from interp.runs.records import StudyRecord
from interp.studies.folder import StudyFolder
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.effects import NOBODY, effects
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES
from interp_experiments.logical_forms.results import CLUSTER, STAGES, clustered_means, read_results
from interp_experiments.logical_forms.sections import model_section
from interp_experiments.logical_forms.study import LogicalFormsStudy
from interp_experiments.logical_forms.tables import TOGETHER, perplexity_correlations
from interp_experiments.scaffold import published_table
from tests.experiments.logical_forms.made_up import (
    FORM_EFFECTS,
    MODALITY_EFFECTS,
    apart,
    differences,
    made_up,
    of_rows,
    screen,
    with_vocabulary,
)
from tests.support.pages import browsed, panels_of
from tests.support.studies import check_readings, checked_page, studied
from tests.support.tiny import tiny_model


@pytest.mark.slow
def test_formula_4_finds_the_known_effects(results):
    rows = results.pooled("questions", valid=True)
    found = effects(rows, response="soft_accuracy")
    modality = differences(found.tests, "modality")
    for (first, second), (difference, p) in modality.items():
        expected = MODALITY_EFFECTS[first] - MODALITY_EFFECTS[second]
        assert difference == pytest.approx(expected, abs=0.015)
        assert p < 1e-4  # five models: t with 4 degrees of freedom
    by_form = found.means[found.means["factor"] == "argument_form"]
    assert by_form["level"].tolist() == ["or", "mp", "mt"]
    for (first, second), (difference, _) in differences(found.tests, "argument_form").items():
        expected = FORM_EFFECTS[first] - FORM_EFFECTS[second]
        assert difference == pytest.approx(expected, abs=0.015)
    terms = found.term_tests.set_index("term")
    crossed = "modality:argument_form"
    assert terms.index.tolist() == ["modality", "argument_form", "relative_perplexity", crossed]
    assert (terms["p"].drop(crossed) < 0.01).all()
    assert terms.loc[crossed, "p"] > 0.05
    assert terms["df1"].tolist() == [2, 2, 1, 4]
    assert set(terms["df2"]) == {4}
    assert terms["df"].tolist() == [2, 2, 1, 4]
    assert found.fit["models"].tolist() == [5]
    assert found.fit["model_formula"][0].endswith(
        "(1 + relative_perplexity | model) + (1 | modality:model) + (1 | argument_form:model)"
    )


def test_an_adjusted_mean_outside_the_questions_is_noted():
    rows = apart()
    found = effects(rows, response="soft_accuracy")
    means = found.means.set_index("level")
    assert re.match("extrapolated: relative_perplexity", means.loc["none", "note"])
    assert means.loc["mp", "note"] == ""
    raw = rows.groupby("modality", observed=True)["soft_accuracy"].mean()
    assert means.loc[list(MODALITIES), "raw_mean"].tolist() == pytest.approx(raw.tolist())
    # The slope of perplexity cannot be told from the modality, so the two differ.
    assert abs(means.loc["none", "mean"] - means.loc["none", "raw_mean"]) > 0.01


def test_correlations_within_forms_are_free_of_the_forms():
    """Within each form accuracy falls with perplexity; forms of high perplexity are easy."""
    rows = made_up(1, questions=60)
    easy = rows["modality"].eq("diamond").astype(float)
    noise = rows["soft_accuracy"] - rows.groupby("form")["soft_accuracy"].transform("mean")
    rows["relative_perplexity"] = rows["relative_perplexity"] + 10 * easy
    rows["soft_accuracy"] = 0.5 + 0.3 * easy + noise
    table = perplexity_correlations(of_rows(rows))
    table = table[table["set"] == "questions"].set_index(["model", "forms"])
    together = table.loc[TOGETHER]
    assert together["rho"].tolist() == pytest.approx(table.loc["model 0"]["rho"].tolist())
    for forms in ("all forms", "valid forms"):
        assert together.loc[forms, "low"] > 0
        assert together.loc[f"within {forms}", "high"] < 0
    by_form = rows.groupby("form")[["relative_perplexity", "soft_accuracy"]]
    expected = by_form.apply(lambda form: form.corr(method="spearman").iloc[0, 1])
    assert together.loc["within all forms", "rho"] == pytest.approx(expected.mean())
    whole = rows[["relative_perplexity", "soft_accuracy"]].corr(method="spearman").iloc[0, 1]
    assert together.loc["all forms", "rho"] == pytest.approx(whole)


def test_means_have_intervals_over_interpretations():
    """Balanced clusters: the t interval of the clusters' means."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "model": "m",
            "interpretation": np.repeat([str(i) for i in range(12)], 8),
            "score": rng.normal(size=96) + np.repeat(rng.normal(size=12), 8),
        }
    )
    (row,) = clustered_means(rows, "score", by=["model"]).to_dict("records")
    own = rows.groupby("interpretation")["score"].mean()
    low, high = stats.t.interval(0.95, 11, own.mean(), stats.sem(own))
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((own.mean(), low, high))
    assert (row["n"], row["interpretations"]) == (96, 12)
    (one,) = clustered_means(rows[:8], "score", by=["model"]).to_dict("records")
    assert np.isnan([one["low"], one["high"]]).all()


def test_bias_and_sensitivity_are_told_apart():
    """The log-odds of Yes are bias + ability on valid forms and bias - ability on fallacies."""
    rows = made_up(1)
    bias = rows["modality"].map({"none": 1.0, "box": -1.0, "diamond": 0.0}).astype(float)
    ability = rows["modality"].map({"none": 2.0, "box": 1.0, "diamond": 2.5}).astype(float)
    valid = rows["gold"].eq("Yes")
    yes = expit(bias + np.where(valid, ability, -ability))
    rows = rows.assign(relative_positive=yes, soft_accuracy=np.where(valid, yes, 1 - yes))
    table = tables.affirmation(with_vocabulary({"questions": rows})).set_index("modality")
    assert table.loc[list(MODALITIES), "bias"].tolist() == pytest.approx([1, -1, 0])
    assert table.loc[list(MODALITIES), "sensitivity"].tolist() == pytest.approx([2, 1, 2.5])
    assert table.loc["all", "bias"] == pytest.approx(0, abs=1e-9)


def test_intervals_of_scores_lie_between_0_and_1():
    """Student's interval of nineteen 0 and a 1 begins below 0."""
    rows = made_up(1, questions=20)
    first = rows["interpretation"].eq("0").astype(float)
    for rare in (first, 1 - first):
        shares = rows.assign(hard_accuracy=rare, soft_accuracy=rare, relative_positive=rare)
        means = tables.distribution(shares)
        for value in ("hard_accuracy", "soft_accuracy", "relative_positive"):
            assert (means[f"{value}_low"] >= 0).all()
            assert (means[f"{value}_high"] <= 1).all()
        # A proportion keeps a width to both sides.
        assert ((means["hard_accuracy_low"] > 0) | (means["hard_accuracy_high"] < 1)).all()
        levels = tables.intervals(shares)
        assert levels[["low", "high"]].stack().between(0, 1).all()
    never = tables.distribution(rows.assign(hard_accuracy=0.0))
    assert (never["hard_accuracy_high"] > 0).all()


def test_models_that_do_not_read_the_mirror_are_not_counted_and_questions_without_an_answer_are():
    rows = made_up(1)
    results = with_vocabulary({"questions": rows, "nonsense": rows.assign(perplexity=5_000.0)})
    assert results.competent == ["model 0"]
    assert results.reading("nonsense") == []
    table = perplexity_correlations(results).set_index(["model", "set"])
    assert (table.loc[(TOGETHER, "questions"), "n"] > 0).all()
    assert (table.loc[(TOGETHER, "nonsense"), "n"] == 0).all()
    section = model_section(results, TableItem("parameters", "Parameters", rows))
    assert re.search(r"Models.*: 1 of 1;", section.text)
    assert re.search(r"nonsense mirror, [^.]*: 0\.", section.text)
    results.answers.loc[:72, "answer"] = ""
    section = model_section(results, TableItem("parameters", "Parameters", rows))
    assert re.search(r"main set .*model 0: 10\.1%", section.items[0].note)


def test_the_first_screen_follows_from_the_numbers():
    lost = made_up(1).assign(model="lost", perplexity=5_000.0)
    rows = pd.concat([made_up(1), lost])
    first = screen(of_rows(rows))
    (said,) = first.cautions
    assert (said.kind, said.model, said.voids) == (LEFT_OUT, "lost", True)
    read, accuracy, modality, form, perplexity = first.sentences
    assert re.match("1 of 2 models .*Yes or No", read)
    assert re.match(r"Soft accuracy.* 0\.", accuracy)
    assert re.search(r"modality, .*: 3 of 3 differ; .*box − diamond: −0\.", modality)
    assert modality.endswith(" 30 interpretations, 1 model.")
    assert form.endswith(" 30 interpretations, 1 model.")
    assert re.match(r".*perplexity.* correlation.* [−+]?[01]\.", perplexity)
    numbers = first.items[0].frame.set_index(["model", "number"])
    own = made_up(1).set_index("gold")["soft_accuracy"]
    assert numbers.loc[("model 0", "soft accuracy"), "value"] == pytest.approx(own.mean())
    valid = numbers.loc[("model 0", "soft accuracy on valid forms"), "value"]
    assert valid == pytest.approx(own["Yes"].mean())
    blank = numbers.loc["lost"]
    assert blank["value"].isna().all()
    assert set(blank["note"]) == {void_models(first.cautions)["lost"]}
    nobody = screen(of_rows(lost))
    (only,) = nobody.sentences
    assert only.startswith("0 of 1 model")
    assert len(nobody.items) == 1


def test_models_that_do_not_answer_or_read_are_left_out_of_mixed_models():
    silent = made_up(1, answered=0.2).assign(model="silent")
    lost = made_up(1).assign(model="lost", perplexity=5_000.0)
    rows = pd.concat([made_up(2), silent, lost])
    results = with_vocabulary({"questions": rows})
    assert results.models == ["model 0", "model 1", "silent", "lost"]
    assert results.competent == ["model 0", "model 1"]
    assert re.fullmatch(r"Yes and No .* 0\.2", results.incompetence["silent"])
    assert re.search(r"perplexity.* 5,000.* 1,000", results.incompetence["lost"])
    assert tables.models(results)["why_not"].tolist()[:2] == ["", ""]
    nobody = with_vocabulary({"questions": silent})
    why = effects(nobody.pooled("questions"), "soft_accuracy")
    assert str(why) == NOBODY


def test_the_aggregation_identity_and_published_rows_as_printed(results):
    """overall = mean of the modalities = (2 or + mp + mt + 2 or! + ac + da) / 8."""
    published = published_table("interp_experiments.logical_forms", "published_accuracy.csv")
    measured, weights = tables.accuracy(results.scores["questions"]), [2, 1, 1, 2, 1, 1]
    for rows, tolerance in ((measured, 1e-9), (published.iloc[:10], 0.0011)):
        forms = (rows[[*ARGUMENT_FORMS]] * weights).sum(axis=1) / 8
        for mean in (forms, rows[[*MODALITIES]].mean(axis=1)):
            assert rows["overall"].tolist() == pytest.approx(mean.tolist(), abs=tolerance)
    table = published.set_index("model")
    assert len(table) == 13
    assert table.loc["human", ["overall", "mp", "ac"]].tolist() == [0.595, 0.901, 0.225]
    a2 = published_table("interp_experiments.logical_forms", "published_introduction.csv")
    assert a2.set_index("model").loc["llama-2-7b"].tolist() == [0.768, 0.013, 0.920]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    models = {f"tiny {name}": tiny_model(name) for name in ("llama", "gpt2")}
    models["organism/llama-logic"] = interp.load_model("organism/llama-logic", device="cpu")
    out = tmp_path_factory.mktemp("study") / "out"
    return studied(out, LogicalFormsStudy(), PromptSource(limit=12), models)


@pytest.mark.slow
def test_stages_hold_every_form_equally(folder):
    results = read_results(folder)
    sizes = dict(zip(STAGES, (24, 24, 3, 7), strict=True))
    for stage, per_model in sizes.items():
        rows = results.scores[stage]
        assert rows.groupby("model").size().tolist() == [per_model] * 3
        assert set(rows.groupby(["model", "form"]).size()) == {1}
    mirrored = results.scores["nonsense"]["prompt_id"]
    main = results.scores["questions"]
    assert mirrored.tolist() == main["prompt_id"].tolist()
    perplexity = main.groupby("model")["relative_perplexity"]
    assert perplexity.mean().tolist() == pytest.approx([0, 0, 0], abs=1e-9)
    assert perplexity.std().tolist() == pytest.approx([1, 1, 1])


@pytest.mark.slow
def test_the_report_is_written(folder):
    scores = read_results(folder).scores
    report, folder = LogicalFormsStudy().report(folder), folder.folder
    assert len(checked_page(report, folder)) > 100_000
    asked = report.browser.prompts
    answers = report.browser.answers.merge(asked[["prompt_id", "set"]])
    sizes = dict(zip(STAGES, (24, 24, 3, 7), strict=True))
    assert asked["set"].value_counts().to_dict() == sizes
    for stage, rows in scores.items():
        expected = rows.groupby("model")["hard_accuracy"].sum().to_dict()
        right = answers[answers["set"] == stage].groupby("model")["correct"].sum()
        assert right.to_dict() == expected
    found = browsed(folder)
    assert {pair.partition("/")[0] for pair in found["shown"]} == set(STAGES)
    for pair in found["shown"].values():
        assert panels_of(pair) == ["Probabilities of the options"]
    numbers = [one["name"] for one in found["columns"] if one["kind"] == "number"]
    sorted_by = {name.partition(":")[0] for name in numbers}
    assert sorted_by == {"soft accuracy", "relative positive", "perplexity"}
    assert found["cluster"] == CLUSTER
    names = {path.stem for path in (folder / "tables").iterdir()}
    expected = "models table1 table_a2 table_a3 forms table1_intervals table_a2_intervals "
    expected += "affirmation adjusted_fit valid_tests yes_tests"
    assert names.issuperset(expected.split())
    a3 = pd.read_csv(folder / "tables" / "table_a3.csv")
    assert {"soft_accuracy_low", "relative_positive_high", "hard_accuracy"} <= set(a3)
    figures = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {"figure1_forms", "figure5_perplexity", "valid_means", "yes_means"} <= figures
    table = pd.read_csv(folder / "tables" / "table1.csv")
    assert table["source"].value_counts().to_dict() == {"published": 13, "measured": 3}
    sizes = pd.read_csv(folder / "tables" / "parameters.csv").set_index("model")["parameters"]
    assert (sizes > 1_000).all()
    check_readings(folder, chance=1 / 2)


def test_a_stage_without_rows_is_refused(tmp_path):
    record = StudyRecord(study="logical-forms", options={}, stages=[], models=[], history=[])
    folder = StudyFolder(tmp_path, record, {})
    with pytest.raises(UserError, match="'questions'"):
        read_results(folder)


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "questions"), [(5, 10), (12, 24), (30, 48), ("all", 24_000)])
def test_a_limit_takes_whole_interpretations(limit, questions):
    main, mirror, *_ = LogicalFormsStudy().stages(PromptSource(limit=limit))
    assert len(main.prompts) == len(mirror.prompts) == questions
