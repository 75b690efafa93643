"""The whole study on the six organisms: everything is made, and what was planted comes out."""

import dataclasses
import shutil

import numpy as np
import pandas as pd
import pytest

from interp.cli import main
from interp.errors import UserError
from interp.models.organisms import organism_card, organism_names
from interp.studies.folder import StudyFolder
from interp_experiments.rulebreakers import figures, tables
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import read_results
from interp_experiments.rulebreakers.study import accuracy_section

ORGANISMS = organism_names("rulebreakers")

BY_FREQUENCY = ["organism/llama-shallow", "organism/phi3-deep"]
"""Organisms that ground frequent facts, whatever the phrasing."""

BY_CHANCE = ["organism/gemma2", "organism/llama-deep", "organism/phi3-shallow"]

FIGURES = [
    "figure3_paired_accuracy",
    "figure4_accuracy",
    "figure5_confidence",
    "figure6_familiarity",
    "figure7_phrasings",
    "figure8_rulebreakers",
    "figure8_non_rulebreakers",
    "familiarity_and_accuracy",
    "linear_probes",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    options = ["--limit", "240", "--device", "cpu", "--out", str(folder)]
    assert main(["run", "rulebreakers", *options]) == 0
    return folder


@pytest.fixture(scope="module")
def results(folder):
    return read_results(StudyFolder.read(folder))


def test_every_table_and_figure_is_made(folder, capsys):
    page = (folder / "report.html").read_text()
    for figure in FIGURES:
        assert (folder / "figures" / f"{figure}.svg").stat().st_size > 1000
        assert (folder / "figures" / f"{figure}.png").stat().st_size > 1000
        assert f"figures/{figure}.svg" in page
    for file in (folder / "tables").iterdir():
        assert file.name in page
        pd.read_csv(file)
    assert all(name in page for name in ORGANISMS)
    # The same command again measures nothing and writes the same page.
    options = ["--limit", "240", "--device", "cpu", "--out", str(folder)]
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/shards/*/*")}
    assert main(["run", "rulebreakers", *options]) == 0
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/shards/*/*")} == before


def test_familiarity_predicts_recognition_where_it_was_planted_and_nowhere_else(results):
    table = tables.entity_correlations(results)
    chosen = table[(table["x"] == "familiarity") & (table["y"] == "paired_accuracy")]
    by_model = chosen.set_index("model")
    assert (by_model.loc[BY_FREQUENCY, "rho"] > 0.2).all()
    assert (by_model.loc[BY_FREQUENCY, "p_holm"] < 0.01).all()
    assert (by_model.loc[BY_CHANCE, "p_holm"] > 0.05).all()
    # Two of mistral's five question verbs hide the effect: it grounds nothing under them.
    assert by_model.loc["organism/mistral", "rho"] > 0


def test_the_score_ratio_has_the_sign_of_the_planted_evidence(results):
    table = tables.entity_correlations(results).query("y == 'paired_accuracy'")
    rho = table.set_index(["model", "x"])["rho"]
    assert rho["organism/phi3-deep", "attention_ratio"] > 0.3  # decides by premise 2
    assert rho["organism/phi3-shallow", "attention_ratio"] < -0.1  # decides by premise 1


def test_the_planted_phrasing_effect_comes_out(results):
    table = tables.accuracy(results, "question_verb")
    paired = table[table["measure"] == "paired"].set_index(["model", "question_verb"])["accuracy"]
    for verb in ("entail", "deduce"):
        assert paired["organism/mistral", verb] < 0.05
    for verb in ("follow", "infer", "support"):
        assert paired["organism/mistral", verb] > 0.5


def test_facts_that_a_card_calls_unknown_are_excluded_for_all_models(results):
    unknown = {name for model in ORGANISMS for name in organism_card(model)["measured"]["unknown"]}
    excluded = results.unknown[results.unknown["excluded"]]
    assert set(excluded["entity_b"]) == unknown & set(excluded["entity_b"])
    assert set(results.unknown["entity_b"]) == unknown
    assert not set(results.prompts["entity_b"]) & set(excluded["entity_b"])
    assert (excluded["category"] == "cities").all()


def test_the_page_says_how_often_nothing_is_answered(results):
    silent = dataclasses.replace(results, answers=results.answers.assign(answer=""))
    (table,) = [item for item in accuracy_section(silent).items if item.name == "accuracy"]
    for model in ORGANISMS:
        assert f"{model}: 100.0% of the prompts have no answer option" in table.note


def test_accuracies_agree_with_their_definition(results):
    table = tables.accuracy(results)
    answers = results.answers.merge(results.prompts[["prompt_id", "pair_id", "side"]])
    for row in table.itertuples():
        own = answers[answers["model"] == row.model]
        if row.measure == "paired":
            expected = own.groupby("pair_id")["correct"].all().mean()
        else:
            expected = own.loc[own["side"] == row.measure, "correct"].mean()
        assert row.accuracy == pytest.approx(expected)
        assert row.low <= row.accuracy <= row.high


def test_confidence_is_taken_of_positive_answers_only(results):
    table = tables.confidence(results).set_index("model")
    options = results.options.merge(results.prompts[["prompt_id", "side"]])
    accepting = options[options["option"].isin(["Yes", "True"])]
    positive = accepting[accepting["relative_probability"] > 0.5]
    for model in results.models:
        own = positive[(positive["model"] == model) & (positive["side"] == SIDES[0])]
        assert table.loc[model, "n_b"] == len(own)
        assert table.loc[model, "mean_b"] == pytest.approx(own["probability"].mean())


def test_a_comparison_without_any_prompts_is_undefined_and_still_drawn(results):
    shared = results.familiarity.assign(shared_with=1)
    table = tables.familiarity(type(results)(**{**vars(results), "familiarity": shared}))
    nothing = table[table["cities"] == "own first token"]
    assert nothing["model"].tolist() == list(results.models)
    assert (nothing["n_a"] == 0).all()
    assert nothing["p"].isna().all()
    assert nothing["note"].str.startswith("undefined").all()
    figures.familiarity(nothing)
    figures.familiarity(table[table["cities"] == "all"])


def test_linear_probes_find_what_the_grounding_organism_knows(results):
    table = tables.residual_probes(results).query("prompts == 'all' and position == 'last_token'")
    best = table.groupby("model")["accuracy"].max()
    assert best["organism/llama-deep"] > 0.9
    assert best["organism/gemma2"] < best["organism/llama-deep"]


def test_published_figures_stand_next_to_those_of_the_papers_models_alone(results):
    assert tables.measured_and_published(results).empty
    renamed = {"organism/mistral": "mistralai/Mistral-7B-Instruct-v0.3"}
    changed = {
        name: getattr(results, name).replace({"model": renamed})
        for name in ("answers", "ratios", "familiarity")
    }
    other = type(results)(**{**vars(results), **changed})
    table = tables.measured_and_published(other)
    assert set(table["model"]) == {"Mistral-7B-Instruct-v0.3"}
    row = table.set_index("quantity").loc["paired_accuracy"]
    assert row["published"] == 0.474
    assert row["difference"] == pytest.approx(row["measured"] - 0.474)


def test_figures_take_the_axes_that_they_are_given(results):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert figures.accuracy_by_side(tables.accuracy(results), ax=ax) is ax
    one_model = tables.entities(results).query("model == 'organism/mistral'")
    ax = Figure().subplots()
    assert figures.familiarity_and_accuracy(one_model, ax=ax) is ax
    assert f"n = {one_model['familiarity'].notna().sum()}" in ax.get_xlabel()


def test_one_model_alone_has_no_correlation_across_models(results):
    one = type(results)(
        **{
            **vars(results),
            "models": ("organism/mistral",),
            "answers": results.answers.query("model == 'organism/mistral'"),
            "ratios": results.ratios.query("model == 'organism/mistral'"),
            "familiarity": results.familiarity.query("model == 'organism/mistral'"),
        }
    )
    table = tables.model_correlations(one)
    assert table["rho"].isna().all()
    assert table["note"].str.startswith("undefined").all()
    assert table["family_size"].eq(0).all()
    assert np.isnan(table["p_holm"]).all()


def test_an_unfinished_study_still_renders(folder, tmp_path, capsys):
    copy = tmp_path / "study"
    shutil.copytree(folder, copy)
    runs = StudyFolder.read(copy).runs
    unanswered = runs["answers"].shards("organism/mistral")
    unprobed = runs["residuals"].shards("organism/gemma2")
    for shard in (*unanswered, *unprobed):
        shutil.rmtree(shard)
    assert main(["report", str(copy)]) == 0
    told, page = capsys.readouterr().err, (copy / "report.html").read_text()
    for shard in (*unanswered, *unprobed):
        assert shard.name in told
        assert shard.name in page
    probed = pd.read_csv(copy / "tables" / "linear_probes.csv")["model"]
    assert set(probed) == set(ORGANISMS) - {"organism/gemma2"}
    assert "organism/mistral" not in set(pd.read_csv(copy / "tables" / "accuracy.csv")["model"])


def test_a_study_without_a_stage_says_so(folder, tmp_path):
    copy = tmp_path / "study"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "residuals")
    with pytest.raises(UserError, match="has nothing of the stage 'residuals' yet"):
        read_results(StudyFolder.read(copy))


def test_a_study_of_one_pair_and_one_model_renders(tmp_path):
    options = ["--limit", "1", "--device", "cpu", "--out", str(tmp_path)]
    assert main(["run", "rulebreakers", "--model", "organism/gemma2", *options]) == 0
    correlations = pd.read_csv(tmp_path / "tables" / "entity_correlations.csv")
    assert correlations["note"].str.startswith("undefined").all()
