"""Score ratios and familiarity: data set and sample, published figures, cities, prompts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.controls.tables import NOTHING, rulebreakers
from interp.analysis.accuracy import accuracy_by
from interp.measurements.attribution.ratios import ratio_table
from interp.prompts.systems import load_prompts
from interp_experiments.rulebreakers import knowledge
from interp_experiments.rulebreakers import ratios as paper
from interp_experiments.rulebreakers.entities import entities
from interp_experiments.rulebreakers.prompts import SIDES
from tests.support.rulebreakers import results_of

GEOGRAPHICAL = 10_980 / 12_800
"""Share of the data set."""


def test_overall_numbers_are_those_of_the_data_set():
    """A model that recognizes exactly the geographical pairs, whose ratios are 2 there, else 8."""
    prompts = load_prompts("rulebreakers", limit=480).to_frame()
    geographical = prompts["entity_group"] == "geographical"
    asked = prompts[["prompt_id"]].assign(model="m")
    ratio = np.where(geographical, 2.0, 8.0)
    ratios = asked.assign(method="attention", target="predicted", ratio=ratio)
    ratios["ratio_unnormalized"] = ratio
    answers = asked.assign(correct=geographical)
    # The sample is another mixture.
    assert (prompts["entity_group"] == "geographical").mean() < 0.6
    table = accuracy_by(answers, prompts, factors=(), sides=SIDES, weight="weight")
    assert table["accuracy"].tolist() == pytest.approx([GEOGRAPHICAL] * 3)
    summed = ratio_table(ratios, prompts, cluster="entity_b")
    mean = 2 * GEOGRAPHICAL + 8 * (1 - GEOGRAPHICAL)
    assert summed["mean"].tolist() == pytest.approx([mean] * 2)
    # The numbers compared with the published ones come from these two tables.
    cities = pd.DataFrame({"model": "m", "entity_pair": prompts["entity_b"], "familiarity": 0.5})
    named = prompts.assign(entity_pair=prompts["entity_b"])
    tables = {"prompts": named, "ratios": ratios, "familiarity": cities.drop_duplicates()}
    (row,) = paper.attribution(results_of(answers=answers, **tables)).to_dict("records")
    assert row["paired_accuracy"] == pytest.approx(GEOGRAPHICAL)
    assert row["attention_mean_ratio"] == pytest.approx(mean)
    assert row["attention_geometric"] == pytest.approx(2**GEOGRAPHICAL * 8 ** (1 - GEOGRAPHICAL))


@pytest.fixture
def results(tmp_path):
    """A simulated study: two cities are left out, whose familiarity differs from all others'."""
    found = rulebreakers(np.random.default_rng(0), NOTHING, tmp_path)
    left_out = found.prompts["entity_b"].unique()[:2]
    odd = found.familiarity["entity_b"].isin(left_out)
    other = found.familiarity["entity_group"] == "categorical"
    return replace(
        found,
        prompts=found.prompts[~found.prompts["entity_b"].isin(left_out)],
        unknown=pd.DataFrame({"entity_b": left_out, "excluded": True}),
        familiarity=found.familiarity.assign(
            familiarity=found.familiarity["familiarity"].mask(odd | other, 1.0),
            shared_with=(odd | other).astype(int),
        ),
    )


def kept(results):
    table = results.familiarity
    cities = table[table["entity_group"] == "geographical"]
    return cities[~cities["entity_b"].isin(results.unknown["entity_b"])]


def test_a_models_mean_familiarity_and_its_comparison_are_over_the_cities_of_the_study(results):
    means = kept(results).groupby("model")["familiarity"].mean()
    table = paper.attribution(results).set_index("model")
    assert table["familiarity"].to_dict() == pytest.approx(means.to_dict())
    everything = results.familiarity.groupby("model")["familiarity"].mean()
    assert (table["familiarity"] < everything - 0.1).all()
    # Across models it is this mean that is ranked.
    across = paper.model_correlations(results).set_index("x")
    assert across.loc["familiarity", "n"] == len(means)
    # Comparisons and entity pairs have the same cities.
    compared = knowledge.familiarity(results).query("cities == 'all'")
    assert (compared["clusters"] == kept(results)["entity_b"].nunique()).all()
    table = entities(results)
    familiar = table[table["familiarity"].notna()]
    assert set(familiar["entity_group"]) == {"geographical"}
    assert familiar.groupby("model").size().tolist() == [kept(results)["entity_b"].nunique()] * 2


def test_a_model_is_one_test_and_the_other_rows_describe(results):
    """The same cities by the whole name are the same test again, which is not corrected for."""
    table = knowledge.familiarity(results)
    tested = table["cities"] == "all"
    assert table.loc[tested, "model"].tolist() == list(results.models)
    assert (table.loc[tested, "family_size"] == table.loc[tested, "p"].notna().sum()).all()
    smallest = table["p"].min()
    assert table["p_holm"].min() == pytest.approx(min(smallest * len(results.models), 1))
    assert table.loc[~tested, ["p", "p_holm", "family"]].isna().all(axis=None)
    assert (table.loc[~tested, "finding"] == "").all()
    described = table[table["cities"] == "all, by P(whole name)"]
    assert described[["difference", "low", "high", "p_paper"]].notna().all(axis=None)
    echoed = results.familiarity.assign(after_echo=1 - results.familiarity["familiarity"])
    table = knowledge.familiarity(replace(results, familiarity=echoed)).set_index("cities")
    after = -table.loc["all, after an echo", "difference"]
    assert after.tolist() == pytest.approx(table.loc["all", "difference"].tolist())


def test_a_set_of_cities_without_any_is_no_row(results):
    shared = replace(results, familiarity=results.familiarity.assign(shared_with=1))
    assert set(knowledge.familiarity(shared)["cities"]) == {"all", "all, by P(whole name)"}
    alone = results.familiarity["entity_b"] == kept(results)["entity_b"].iloc[0]
    few = replace(shared, familiarity=shared.familiarity.assign(shared_with=(~alone).astype(int)))
    table = knowledge.familiarity(few)
    assert table.loc[table["cities"] == "own first token", "clusters"].tolist() == [1, 1]
