"""Familiarity is that of cities which every model completes, wherever it is summed up."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.controls.tables import NOTHING, rulebreakers
from interp_experiments.rulebreakers.tables.attribution import attribution, model_correlations
from interp_experiments.rulebreakers.tables.entities import entities
from interp_experiments.rulebreakers.tables.familiarity import familiarity, shared_first_tokens


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


def test_a_models_mean_familiarity_is_over_the_cities_of_the_study(results):
    means = kept(results).groupby("model")["familiarity"].mean()
    table = attribution(results).set_index("model")
    assert table["familiarity"].to_dict() == pytest.approx(means.to_dict())
    everything = results.familiarity.groupby("model")["familiarity"].mean()
    assert (table["familiarity"] < everything - 0.1).all()
    # Across models it is this mean that is ranked.
    across = model_correlations(results).set_index("x")
    assert across.loc["familiarity", "n"] == len(means)


def test_shared_first_tokens_are_counted_among_the_cities_of_the_study(results):
    table = shared_first_tokens(results).set_index("model")
    countries = kept(results).groupby("model")["entity_a"].nunique()
    assert table["answers"].to_dict() == countries.to_dict()
    assert (table["sharing"] == 0).all()


def test_comparisons_and_entity_pairs_have_the_same_cities(results):
    compared = familiarity(results).query("cities == 'all'")
    assert (compared["clusters"] == kept(results)["entity_b"].nunique()).all()
    table = entities(results)
    familiar = table[table["familiarity"].notna()]
    assert set(familiar["entity_group"]) == {"geographical"}
    assert familiar.groupby("model").size().tolist() == [kept(results)["entity_b"].nunique()] * 2


def test_a_model_is_one_test_and_the_other_rows_describe(results):
    """The same cities by the whole name are the same test again, which is not corrected for."""
    table = familiarity(results)
    tested = table["cities"] == "all"
    assert table.loc[tested, "model"].tolist() == list(results.models)
    assert (table.loc[tested, "family_size"] == table.loc[tested, "p"].notna().sum()).all()
    smallest = table["p"].min()
    assert table["p_holm"].min() == pytest.approx(min(smallest * len(results.models), 1))
    assert table.loc[~tested, ["p", "p_holm", "family"]].isna().all(axis=None)
    assert (table.loc[~tested, "finding"] == "").all()
    described = table[table["cities"] == "all, by P(whole name)"]
    assert described[["difference", "low", "high", "p_paper"]].notna().all(axis=None)


def test_a_set_of_cities_without_any_is_no_row(results):
    shared = replace(results, familiarity=results.familiarity.assign(shared_with=1))
    assert set(familiarity(shared)["cities"]) == {"all", "all, by P(whole name)"}
    alone = results.familiarity["entity_b"] == kept(results)["entity_b"].iloc[0]
    few = replace(shared, familiarity=shared.familiarity.assign(shared_with=(~alone).astype(int)))
    table = familiarity(few)
    assert table.loc[table["cities"] == "own first token", "clusters"].tolist() == [1, 1]
