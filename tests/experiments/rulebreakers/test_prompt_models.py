"""What goes with a correct answer, on data of which that is known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from interp_experiments.rulebreakers.prompt_models import prompt_models, without_constant_levels

ENTITIES, EACH = 60, 20


def results(*, between=0.0, within=0.0, spread=0.8, seed=0):
    """Answers whose log-odds depend on an entity's mean ratio and on a prompt's deviation."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(ENTITIES), EACH)
    prompts = pd.DataFrame(
        {
            "prompt_id": [f"p{number}" for number in range(len(entity))],
            "side": "rulebreaker",
            "entity_pair": [f"e{number}" for number in entity],
            "rule": rng.choice(["mt", "ds"], len(entity)),
            "verb": rng.choice(["be", "go"], len(entity)),
            "phrasing": rng.choice(["yn", "tf"], len(entity)),
        }
    )
    mean, deviation = rng.normal(size=ENTITIES)[entity], rng.normal(size=len(entity))
    # The rule changes the ratio and the answer alike, which no model may take for an effect.
    rule = prompts["rule"].eq("mt").to_numpy(dtype=float)
    log_odds = between * mean + within * deviation + 1.5 * rule
    log_odds += spread * rng.normal(size=ENTITIES)[entity]
    ids = {"model": "m", "prompt_id": prompts["prompt_id"]}
    correct = rng.random(len(entity)) < expit(log_odds - 0.75)
    familiarity = pd.DataFrame(
        {
            "model": "m",
            "entity_pair": [f"e{number}" for number in range(ENTITIES)],
            "familiarity": rng.random(ENTITIES),
        }
    )
    ratio = 3 + 0.3 * (mean + deviation) + 0.3 * rule
    ratios = pd.DataFrame({**ids, "method": "attention", "ratio": ratio})
    return SimpleNamespace(
        prompts=prompts,
        answers=pd.DataFrame({**ids, "correct": correct}),
        ratios=ratios.assign(ratio_unnormalized=ratio),
        familiarity=familiarity,
    )


def by_term(**effects):
    return prompt_models(results(**effects)).set_index("term")


@pytest.mark.parametrize("effects", [{"between": 1.0}, {"within": 1.0}])
def test_effects_between_and_within_entities_are_told_apart(effects):
    table = by_term(**effects)
    (place,) = effects
    found, other = ("ratio_of_entity", "ratio_within_entity")[:: 1 if place == "between" else -1]
    assert table.loc[found, "low"] > 0.5
    assert table.loc[found, "p_holm"] < 1e-4
    assert table.loc[other, "low"] < 0 < table.loc[other, "high"]
    assert table.loc["familiarity", "p"] > 0.05
    assert table["fitted"].str.startswith("mixed logistic regression with random intercepts").all()
    assert set(table["adjusted_for"]) == {"rule, phrasing, verb"}


def test_entities_that_decide_every_answer_are_the_observations():
    table = by_term(between=1.0, spread=60.0)
    assert table["fitted"].str.startswith("quasi-binomial regression over levels of entity").all()
    assert table.loc[["ratio_of_entity", "familiarity"], "estimate"].notna().all()
    assert table.loc["ratio_within_entity", "note"].startswith("undefined: it varies within")


def test_what_entities_decide_by_chance_is_found_as_often_as_chance_has_it():
    """A regression over prompts takes the 20 of an entity for as many observations."""
    found = [
        by_term(spread=60.0, seed=seed)["p"][["ratio_of_entity", "familiarity"]]
        for seed in range(12)
    ]
    assert (np.array(found, dtype=float) < 0.05).mean() <= 0.15


def test_what_belongs_to_entities_is_tested_over_them():
    table = by_term()
    between = ["ratio_of_entity", "familiarity"]
    # The intercept and these two tell entities apart; rule, verb and phrasing vary within each.
    assert table.loc[between, "df"].tolist() == [ENTITIES - 3] * 2
    assert np.isinf(table.loc["ratio_within_entity", "df"])


def test_nothing_is_tested_below_ten_entities():
    few = results()
    few.prompts = few.prompts[few.prompts["entity_pair"].isin([f"e{n}" for n in range(9)])]
    table = prompt_models(few)
    assert table["estimate"].notna().any()
    assert table[["p", "p_holm", "low", "high"]].isna().all(axis=None)
    assert set(table["note"]) == {"not tested: there are 9 clusters, at least 10 needed"}


def test_levels_of_a_single_outcome_are_left_out_until_none_is():
    rows = pd.DataFrame(
        {
            "verb": ["a", "a", "b", "b", "b", "c"],
            "rule": ["x", "x", "x", "y", "y", "x"],
            "correct": [True, True, True, False, False, False],
        }
    )
    # Verb c and rule y are always wrong, verb a always right; then verb b is right alone.
    assert without_constant_levels(rows, outcome="correct", factors=("verb", "rule")).empty
    assert without_constant_levels(rows, outcome="correct", factors=("verb",)).index.tolist() == [
        2,
        3,
        4,
    ]


def test_nothing_measured_is_an_empty_table():
    nothing = results()
    nothing.ratios = nothing.ratios[:0]
    assert prompt_models(nothing).empty
