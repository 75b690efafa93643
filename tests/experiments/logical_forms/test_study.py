"""The study: its tables on scores whose answers are known, and the whole of it on tiny models."""

import numpy as np
import pandas as pd
import pytest

from interp.errors import UserError
from interp.prompts.source import PromptSource
from interp.report.page import Report, write_report
from interp.runs.execute import execute
from interp.runs.schemas import StudyRecord
from interp.studies.folder import StudyFolder
from interp.studies.plan import StudyPlan
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.forms import (
    ARGUMENT_FORMS,
    MODALITIES,
    VALID_FORMS,
    main_forms,
)
from interp_experiments.logical_forms.results import Results, read_results
from interp_experiments.logical_forms.study import LogicalFormsStudy, mixed_model, valid_section
from tests.support.tiny import tiny_model

MODALITY_EFFECTS = {"none": 0.0, "box": -0.2, "diamond": 0.1}
FORM_EFFECTS = {"or": 0.0, "mp": 0.05, "mt": -0.1, "or_fallacy": -0.05, "ac": -0.15, "da": 0.02}
YES_EFFECTS = {"none": 0.15, "box": -0.15, "diamond": 0.0}


def made_up(models=5, *, questions=30, answered=1.0, seed=0):
    """Scores of the 24 forms with known effects, a model's own level and slope, and noise."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(models):
        level, slope = rng.normal(0, 0.05), rng.normal(-0.03, 0.01)
        for form in main_forms():
            standard = rng.normal(size=questions)
            accuracy = 0.6 + MODALITY_EFFECTS[form.modality] + FORM_EFFECTS[form.group]
            yes = 0.5 + YES_EFFECTS[form.modality] + (0.2 if form.valid() else -0.2)
            noise = rng.normal(0, 0.05, (2, questions))
            parts.append(
                pd.DataFrame(
                    {
                        "model": f"model {number}",
                        "prompt_id": [f"{i}/{form.id}" for i in range(questions)],
                        "form": form.id,
                        "modality": form.modality,
                        "argument_form": form.group,
                        "schema": form.schema,
                        "formula": form.sequent(),
                        "gold": "Yes" if form.valid() else "No",
                        "perplexity": 10 + 2 * standard,
                        "relative_perplexity": standard,
                        "soft_accuracy": accuracy + level + slope * standard + noise[0],
                        "relative_positive": yes + level + noise[1],
                        "answered": answered,
                    }
                )
            )
    rows = pd.concat(parts, ignore_index=True)
    rows["modality"] = pd.Categorical(rows["modality"], MODALITIES)
    rows["argument_form"] = pd.Categorical(rows["argument_form"], list(ARGUMENT_FORMS))
    return rows


def with_vocabulary(scores):
    answers = pd.DataFrame({"model": scores["questions"]["model"], "answer": "Yes", "error": ""})
    return Results(scores, dict.fromkeys(scores["questions"]["model"], 1_000), answers)


@pytest.fixture(scope="module")
def results():
    rows = made_up()
    mirror = rows.assign(perplexity=rows["perplexity"] * 3)
    return with_vocabulary({"questions": rows, "nonsense": mirror})


def differences(tests, factor):
    rows = tests[tests["factor"] == factor]
    return {(r.first, r.second): (r.difference, r.p_holm) for r in rows.itertuples()}


def test_formula_4_finds_the_known_effects(results):
    rows = results.pooled("questions", valid=True)
    found = tables.effects(rows, response="soft_accuracy", factors=("modality", "argument_form"))
    modality = differences(found.tests, "modality")
    for (first, second), (difference, p) in modality.items():
        expected = MODALITY_EFFECTS[first] - MODALITY_EFFECTS[second]
        assert difference == pytest.approx(expected, abs=0.015)
        assert p < 1e-6
    assert found.means[found.means["factor"] == "argument_form"]["level"].tolist() == list(
        VALID_FORMS
    )
    for (first, second), (difference, _) in differences(found.tests, "argument_form").items():
        expected = FORM_EFFECTS[first] - FORM_EFFECTS[second]
        assert difference == pytest.approx(expected, abs=0.015)
    assert (found.ratio_tests["p"] < 0.01).all()
    assert found.ratio_tests["df"].tolist() == [2, 2, 1]
    assert found.fit["models"].tolist() == [5]


def test_formula_5_finds_affirmation_and_rejection(results):
    found = tables.effects(
        results.pooled("questions"),
        response="relative_positive",
        factors=("modality", "argument_form"),
    )
    means = found.means.set_index("level")
    assert means.loc["none", "low"] > 0.5 > means.loc["box", "high"]
    assert found.ratio_tests.set_index("term").loc["argument_form", "df"] == 5


def test_one_model_falls_back_and_says_so():
    rows = made_up(1)
    found = mixed_model(rows, "soft_accuracy", "modality", "argument_form")
    assert not isinstance(found, str)
    assert "least squares" in found.fit["note"][0]
    assert differences(found.tests, "modality")["none", "box"][0] == pytest.approx(0.2, abs=0.02)


def test_models_that_do_not_answer_or_read_are_left_out_of_mixed_models():
    silent = made_up(1, answered=0.2).assign(model="silent")
    lost = made_up(1).assign(model="lost", perplexity=5_000.0)
    rows = pd.concat([made_up(2), silent, lost])
    results = with_vocabulary({"questions": rows})
    assert results.models == ["model 0", "model 1", "silent", "lost"]
    assert results.competent == ["model 0", "model 1"]
    nobody = with_vocabulary({"questions": silent})
    why = mixed_model(nobody.pooled("questions"), "soft_accuracy", "modality")
    assert "no model answers Yes or No often enough" in str(why)


def test_random_effects_have_a_figure_from_three_models_on(results, tmp_path):
    section = valid_section(results)
    assert "figure4_random_effects" in [getattr(item, "name", "") for item in section.items]
    page = write_report(Report("made up", "", (section,)), tmp_path)
    assert "Random effects of each model" in page.read_text(encoding="utf-8")
    one = results.scores["questions"]
    single = with_vocabulary({"questions": one[one["model"] == "model 0"]})
    names = [item.name for item in valid_section(single).items]
    assert "figure4_random_effects" not in names
    assert "valid_means" in names


def test_factors_that_cannot_be_told_apart_are_a_reason_not_a_crash():
    rows = made_up(1)
    why = mixed_model(rows[rows["modality"] == "box"], "soft_accuracy", "modality")
    assert "modality is box in every row" in str(why)


@pytest.mark.parametrize("table", ["measured", "published"])
def test_the_aggregation_identity(table, results):
    """overall = mean of the modalities = (2 or + mp + mt + 2 or! + ac + da) / 8."""
    measured = tables.accuracy(results.scores["questions"])
    rows = measured if table == "measured" else tables.published_accuracy().iloc[:10]
    weights = {"or": 2, "mp": 1, "mt": 1, "or_fallacy": 2, "ac": 1, "da": 1}
    tolerance = 1e-9 if table == "measured" else 0.0011
    for row in rows.to_dict("records"):
        forms = sum(row[form] * weight for form, weight in weights.items()) / 8
        modalities = sum(row[modality] for modality in MODALITIES) / 3
        assert row["overall"] == pytest.approx(forms, abs=tolerance)
        assert row["overall"] == pytest.approx(modalities, abs=tolerance)


def test_published_rows_as_printed():
    table = tables.published_accuracy().set_index("model")
    assert len(table) == 13
    assert table.loc["human", ["overall", "mp", "ac"]].tolist() == [0.595, 0.901, 0.225]
    assert table.loc["mistral-8x7b", "mt"] == 0.023
    introduction = tables.published_introduction().set_index("model")
    assert (introduction["box"] < introduction["none"]).all()
    assert (introduction["none"] < introduction["diamond"]).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "out"
    names = ("tiny llama", "tiny gpt2", "organism/llama-logic")
    plan = StudyPlan.of(
        LogicalFormsStudy(),
        PromptSource(limit=12),
        folder=path,
        models={name: {} for name in names},
        load=load,
    )
    plan.finish(execute(plan, start=None))
    return path


def load(name):
    import interp

    if name.startswith("organism/"):
        return interp.load_model(name, device="cpu")
    return tiny_model(name.removeprefix("tiny "))


def test_stages_hold_every_form_equally(folder):
    results = read_results(StudyFolder.read(folder))
    for stage, per_model in {
        "questions": 24,
        "nonsense": 24,
        "introduction": 3,
        "distribution": 7,
    }.items():
        rows = results.scores[stage]
        assert rows.groupby("model").size().tolist() == [per_model] * 3
        assert set(rows.groupby(["model", "form"]).size()) == {1}
    mirrored = results.scores["nonsense"]["prompt_id"]
    assert mirrored.tolist() == results.scores["questions"]["prompt_id"].tolist()


def test_perplexity_is_standardised_within_each_model(folder):
    rows = read_results(StudyFolder.read(folder)).scores["questions"]
    by_model = rows.groupby("model")["relative_perplexity"]
    assert by_model.mean().tolist() == pytest.approx([0, 0, 0], abs=1e-9)
    assert by_model.std().tolist() == pytest.approx([1, 1, 1])


def test_the_report_is_written(folder):
    study_folder = StudyFolder.read(folder)
    page = write_report(LogicalFormsStudy().report(study_folder), folder)
    assert page.stat().st_size > 100_000
    names = {path.stem for path in (folder / "tables").iterdir()}
    assert {"models", "table1", "table1_nonsense", "table_a2", "table_a3", "forms"} <= names
    assert {"valid_fit", "valid_tests", "yes_tests", "planted_llama-logic"} <= names
    figures = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {"figure1_forms", "figure5_perplexity", "valid_means", "yes_means"} <= figures
    table = pd.read_csv(folder / "tables" / "table1.csv")
    assert table["source"].value_counts().to_dict() == {"published": 13, "measured": 3}
    planted = pd.read_csv(folder / "tables" / "planted_llama-logic.csv")
    assert len(planted) == 34


def test_a_stage_without_rows_is_refused(tmp_path):
    record = StudyRecord(study="logical-forms", options={}, stages=[], models=[], history=[])
    folder = StudyFolder(tmp_path, record, {})
    with pytest.raises(UserError, match="nothing of the stage 'questions' yet"):
        read_results(folder)


def test_data_are_refused():
    with pytest.raises(UserError, match="none are published"):
        LogicalFormsStudy().stages(PromptSource(limit=2, data="file.csv"))


def test_all_pairs_without_a_limit():
    stages = LogicalFormsStudy().stages(PromptSource(limit="all"))
    assert [len(stage.prompts) for stage in stages] == [24_000, 24_000, 3_000, 7_000]
