"""The whole study on the six organisms: everything is made, and what was planted comes out."""

import dataclasses
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from benchmarks.controls.studies import few_resamples
from interp.analysis.cautions.caution import void_models
from interp.analysis.readings import FREE
from interp.cli import main
from interp.errors import UserError
from interp.models.organisms import organism_card, organism_names
from interp.studies.folder import StudyFolder
from interp_experiments.rulebreakers import system as system_module
from interp_experiments.rulebreakers.accuracy import (
    accuracy,
    accuracy_section,
    composition,
    contrasts,
)
from interp_experiments.rulebreakers.entities import entity_correlations
from interp_experiments.rulebreakers.findings import finding_section, first_screen
from interp_experiments.rulebreakers.knowledge import familiarity
from interp_experiments.rulebreakers.page import report_of
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, read_results
from interp_experiments.rulebreakers.sensitivity import confidence, sensitivity
from interp_experiments.scaffold import choice_section
from tests.support.pages import browsed, check_first_screen, panels_of, undrawn

pytestmark = pytest.mark.slow

ORGANISMS = organism_names("rulebreakers")

BY_FREQUENCY = ["organism/llama-shallow", "organism/phi3-deep"]
"""Organisms that ground frequent facts, whatever the phrasing."""

BY_CHANCE = ["organism/gemma2", "organism/llama-deep", "organism/phi3-shallow"]

FIGURES = [
    "figure3_paired_accuracy", "figure4_accuracy", "figure5_confidence", "figure6_familiarity",
    "figure7_phrasings", "figure8_rulebreakers", "figure8_non_rulebreakers",
    "linear_probes",
]  # fmt: skip


@pytest.fixture(scope="module")
def one_phrasing():
    """Each instance in one phrasing: a limit then takes many entity pairs, as tests over them need.

    In all ten phrasings, as studies ask them, 240 pairs are about eleven cities.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interp_experiments.rulebreakers.prompts.CROSSED", ())
        system_module._generated.cache_clear()
        yield
        system_module._generated.cache_clear()


@pytest.fixture(scope="module")
def study(tmp_path_factory, one_phrasing):
    """The folder of the study, and what its page was written from."""
    folder, reports = tmp_path_factory.mktemp("study"), []

    def noted(study):
        reports.append(report_of(study))
        return reports[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interp_experiments.rulebreakers.page.report_of", noted)
        options = ["--limit", "240", "--device", "cpu", "--out", str(folder)]
        assert main(["run", "rulebreakers", *options]) == 0
    (report,) = reports
    return folder, report


@pytest.fixture(scope="module")
def results(study):
    return read_results(StudyFolder.read(study[0]))


@pytest.fixture(scope="module")
def small(tmp_path_factory, one_phrasing):
    """The folder of a study of a few pairs and two models."""
    folder = tmp_path_factory.mktemp("small") / "study"
    models = ["organism/llama-deep", "organism/mistral"]
    options = ["--model", *models, "--limit", "8", "--device", "cpu", "--out", str(folder)]
    with few_resamples(), undrawn():
        assert main(["run", "rulebreakers", *options]) == 0
    return folder


def test_every_table_and_figure_is_made(study):
    folder, report = study
    page = (folder / "report.html").read_text()
    for figure in FIGURES:
        assert (folder / "figures" / f"{figure}.svg").stat().st_size > 1000
        assert (folder / "figures" / f"{figure}.png").stat().st_size > 1000
        assert f"figures/{figure}.svg" in page
    for file in (folder / "tables").iterdir():
        assert file.name in page
        if file.suffix == ".csv":
            pd.read_csv(file)
    assert all(name in page for name in ORGANISMS)
    found = browsed(folder)
    examples = [pair for pair in found["shown"].values() if len(panels_of(pair)) == 3]
    assert 0 < len(examples) < len(found["shown"])
    titles = ["Shares of segments", "Probabilities of the options", "Shading by tokens"]
    assert panels_of(examples[0]) == titles
    of_each = [(panel["title"], *panel["of"].values()) for panel in examples[0]["panels"]]
    assert len(of_each) == len(set(of_each))
    (familiar, *_) = [one for one in found["columns"] if one["name"].startswith("familiarity")]
    assert familiar["of"]["model"] in ORGANISMS
    check_first_screen(report, page)


def test_what_was_planted_comes_out_and_nothing_else(results):
    table = entity_correlations(results)
    chosen = table[(table["x"] == "familiarity") & (table["y"] == "paired_accuracy")]
    by_model = chosen.set_index("model")
    assert (by_model.loc[BY_FREQUENCY, "rho"] > 0.2).all()
    # By permutation, since many cities tie.
    p = by_model.loc[BY_FREQUENCY, "p_holm"].to_dict()
    found = {"organism/llama-shallow": 0.0029, "organism/phi3-deep": 0.0133}
    assert p == pytest.approx(found, abs=2e-4)
    assert (by_model.loc[BY_CHANCE, "p_holm"] > 0.05).all()
    # Two of mistral's five question verbs hide the effect: it grounds nothing under them.
    assert by_model.loc["organism/mistral", "rho"] > 0
    # The ratio of scores has the sign of the evidence.
    rho = table.query("y == 'paired_accuracy'").set_index(["model", "x"])["rho"]
    assert rho["organism/phi3-deep", "attention_ratio"] > 0.3  # decides by premise 2
    assert rho["organism/phi3-shallow", "attention_ratio"] < -0.1  # decides by premise 1
    table = accuracy(results, "question_verb")
    paired = table[table["measure"] == "paired"].set_index(["model", "question_verb"])["accuracy"]
    of_mistral = paired["organism/mistral"]
    assert of_mistral[["entail", "deduce"]].max() < 0.05
    assert of_mistral[["follow", "infer", "support"]].min() > 0.5
    table = familiarity(results).query("cities == 'all'").set_index("model")
    assert (table.loc[BY_FREQUENCY, "finding"] == "recognized more familiar").all()
    assert table.loc[BY_CHANCE, "finding"].isin(["no difference shown", "not tested"]).all()
    assert (table.loc[BY_FREQUENCY, "low"] > 0).all()
    # Hardly any pair of these two is failed, or recognized: nothing can be compared.
    for model in ("organism/llama-deep", "organism/gemma2"):
        assert table.loc[model, "finding"] == "not tested"
        assert re.search(r"\b10\b", table.loc[model, "note"])


def test_facts_that_a_card_calls_unknown_are_excluded_for_all_models(results):
    unknown = {name for model in ORGANISMS for name in organism_card(model)["measured"]["unknown"]}
    excluded = results.unknown[results.unknown["excluded"]]
    assert set(excluded["entity_b"]) == unknown & set(excluded["entity_b"])
    # Only facts that the drawn prompts are about are asked.
    assert set(results.unknown["entity_b"]) == unknown & set(results.drawn["entity_b"])
    assert (excluded["category"] == "cities").all()
    cities = results.cities()
    assert set(cities["entity_group"]) == {"geographical"}
    for kept in (results.prompts, cities):
        assert not set(kept["entity_b"]) & set(excluded["entity_b"])


def test_the_composition_adds_up_and_how_often_nothing_is_answered_is_said(results):
    table = composition(results)
    assert table["pairs_drawn"].sum() == 240
    assert table["pairs_kept"].sum() == len(results.prompts) // 2
    assert table["data_set_share"].sum() == pytest.approx(1.0)
    # 10,980 geographical and 1,820 categorical instances in ten phrasings; some are left out.
    by_group = table.groupby("entity_group")["data_set"].sum()
    assert by_group["categorical"] == 18_200
    assert 80_000 < by_group["geographical"] < 109_800
    silent = dataclasses.replace(results, answers=results.answers.assign(answer=""))
    items = accuracy_section(silent).items
    (table,) = [item for item in items if item.name == "accuracy"]
    for model in ORGANISMS:
        assert re.search(rf"{model}: 100\.0% .*most probable token", table.note)


def test_confidence_is_compared_within_pairs_of_two_positive_answers(results):
    table = confidence(results).set_index("model")
    options = results.options.merge(results.prompts[["prompt_id", "pair_id", "side", "weight"]])
    accepting = options[options["option"].isin(["Yes", "True"])]
    positive = accepting[accepting["relative_probability"] > 0.5]
    for model in results.models:
        own = positive[positive["model"] == model]
        wrong, right = (own[own["side"] == side].set_index("pair_id") for side in SIDES)
        assert table.loc[model, "n_b_paper"] == len(wrong)
        assert table.loc[model, "mean_b_paper"] == pytest.approx(wrong["probability"].mean())
        both = right.join(wrong["probability"].rename("wrong"), how="inner")
        assert table.loc[model, "pairs"] == len(both)
        expected = np.average(both["probability"] - both["wrong"], weights=both["weight"])
        assert table.loc[model, "difference"] == pytest.approx(expected)
    # The page used to take any difference for an ability; most are of the other sign.
    assert set(table["finding"]) >= {"surer when wrong"}
    assert (table.loc[table["finding"] == "surer when wrong", "high"] < 0).all()


def test_the_grounding_organism_tells_the_sides_apart_however_its_answers_are_read(results):
    table = sensitivity(results).set_index("model")
    assert table.loc["organism/llama-deep", "concordance"] > 0.95
    assert table["concordance"].idxmax() == table["auroc"].idxmax() == "organism/llama-deep"
    assert table.loc["organism/gemma2", "concordance"] < 0.5
    # Yes to nearly everything: a bias to Yes, which paired accuracy takes for inability.
    assert (table["bias"] < 0).all()
    assert (table["chance_yes_rate"] <= 0.25).all()
    by_side = accuracy(results).set_index(["measure", "model"])["accuracy"]
    product = by_side[SIDES[0]] * by_side[SIDES[1]]
    assert table["independent_sides"].to_dict() == pytest.approx(product.to_dict())
    for name in ("auroc", "d_prime", "bias"):
        assert table[name].between(table[f"{name}_low"], table[f"{name}_high"]).all()
    section = choice_section(results.answers, results.prompts, results.options, CLUSTER)
    readings = section.items[0].frame.set_index(["reading", "model"])
    free = readings.loc[FREE, "paired_accuracy"]
    # Weighted to the data set, as all accuracies of the page.
    assert free[[*results.models]].to_dict() == pytest.approx(by_side["paired"].to_dict())
    told = section.items[1].frame.set_index("model")
    assert told.at["organism/llama-deep", "auroc"] == told["auroc"].max()


def test_the_first_screen_says_what_the_tables_say(results):
    first = first_screen(results)
    numbers = first.items[0].frame.set_index(["number", "model"])["value"]
    by_side = accuracy(results).set_index(["measure", "model"])["accuracy"]
    void = void_models(first.cautions)
    for number, measure in (("paired accuracy", "paired"), ("rulebreakers rejected", SIDES[0])):
        assert numbers[number].isna().sum() == len(void)
        expected = by_side[measure].drop(list(void)).to_dict()
        assert numbers[number].drop(list(void)).to_dict() == pytest.approx(expected)
    assert "organisms" in first.legend
    highest = by_side["paired"].idxmax()
    assert re.match(rf"Paired accuracy.*\b{highest}, ", first.sentences[0])
    named = familiarity(results).query("cities == 'all'").set_index("model")
    more = named.index[named["finding"] == "recognized more familiar"]
    tested = (named["finding"] != "not tested").sum()
    assert re.search(rf"more familiar .* {len(more)} of {tested} models", first.sentences[-1])
    table = contrasts(results).query("status == 'confirmatory'")
    section = finding_section(results)
    tested = table["p"].notna().sum()
    assert re.search(rf"\b{len(table)} comparisons.*\b{tested}\b.*tested", section.text)
    assert "is exploratory." in section.text
    assert [item.name for item in section.items] == ["contrasts"]


def test_an_unfinished_study_still_renders(small, tmp_path, capsys):
    copy = tmp_path / "study"
    shutil.copytree(small, copy)
    runs = StudyFolder.read(copy).runs
    unanswered = runs["answers"].shards("organism/mistral")
    unprobed = runs["residuals"].shards("organism/llama-deep")
    for shard in (*unanswered, *unprobed):
        shutil.rmtree(shard)
    with few_resamples():
        assert main(["report", str(copy)]) == 0
    told, page = capsys.readouterr().err, (copy / "report.html").read_text()
    for shard in (*unanswered, *unprobed):
        assert shard.name in told
        assert shard.name in page
    probed = pd.read_csv(copy / "tables" / "linear_probes.csv")["model"]
    assert set(probed) == {"organism/mistral"}
    assert "organism/mistral" not in set(pd.read_csv(copy / "tables" / "accuracy.csv")["model"])


def test_a_study_without_a_pair_that_every_model_answered_or_a_stage_says_so(study, tmp_path):
    copy = tmp_path / "study"
    shutil.copytree(study[0], copy)
    answers = StudyFolder.read(copy).runs["answers"]
    for model in ORGANISMS:
        first, *others = answers.shards(model)
        for shard in [first] if model == "organism/mistral" else others:
            shutil.rmtree(shard)
    with pytest.raises(UserError, match=r"/study.*pair.*entities"):
        read_results(StudyFolder.read(copy))
    shutil.rmtree(copy / "residuals")
    with pytest.raises(UserError, match="'residuals'"):
        read_results(StudyFolder.read(copy))


def test_a_study_of_one_pair_and_one_model_renders(tmp_path, one_phrasing):
    options = ["--limit", "1", "--device", "cpu", "--out", str(tmp_path)]
    assert main(["run", "rulebreakers", "--model", "organism/gemma2", *options]) == 0
    correlations = pd.read_csv(tmp_path / "tables" / "entity_correlations.csv")
    assert correlations["note"].str.startswith("undefined").all()
    across = pd.read_csv(tmp_path / "tables" / "model_correlations.csv")
    assert across["note"].str.startswith("undefined").all()
    assert across[["rho", "p_holm"]].isna().all(axis=None) and across["family_size"].eq(0).all()
