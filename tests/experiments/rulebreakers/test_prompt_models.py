"""The clustered regression across prompts: by hand, by simulation, and where it has no estimate."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from interp_experiments.rulebreakers import prompt_models as module
from tests.support.rulebreakers import results_of


def simulated(*, between=0.0, within=0.0, spread=0.8, seed=0, entities=60, each=20):
    """Answers whose log-odds depend on an entity's mean ratio and on a prompt's deviation."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(np.arange(entities), each)
    prompts = pd.DataFrame({"entity_pair": [f"e{number}" for number in entity]})
    prompts = prompts.assign(prompt_id="p" + prompts.index.astype(str), side="rulebreaker")
    for factor, levels in (("rule", "mt ds"), ("verb", "be go"), ("phrasing", "yn tf")):
        prompts[factor] = rng.choice(levels.split(), len(entity))
    mean, deviation = rng.normal(size=entities)[entity], rng.normal(size=len(entity))
    # The rule changes the ratio and the answer alike, which no model may take for an effect.
    rule = prompts["rule"].eq("mt").to_numpy(dtype=float)
    log_odds = between * mean + within * deviation + 1.5 * rule
    log_odds += spread * rng.normal(size=entities)[entity]
    ids = {"model": "m", "prompt_id": prompts["prompt_id"]}
    correct = rng.random(len(entity)) < expit(log_odds - 0.75)
    familiarity = prompts[["entity_pair"]].drop_duplicates(ignore_index=True)
    familiarity = familiarity.assign(model="m", familiarity=rng.random(entities))
    ratio = 3 + 0.3 * (mean + deviation) + 0.3 * rule
    ratios = pd.DataFrame({**ids, "method": "attention", "ratio": ratio})
    return results_of(
        prompts=prompts,
        answers=pd.DataFrame({**ids, "correct": correct}),
        ratios=ratios.assign(ratio_unnormalized=ratio),
        familiarity=familiarity,
    )


@pytest.mark.parametrize("effects", [{"between": 1.0}, {"within": 1.0}])
def test_effects_between_and_within_entities_are_told_apart(effects):
    table = module.prompt_models(simulated(**effects)).set_index("term")
    terms = ("ratio_of_entity", "ratio_within_entity")
    found, other = terms if "between" in effects else terms[::-1]
    # The planted effect of 1 is that of each entity. The average over entities, whose intercepts
    # have a standard deviation of 0.8, is closer to zero (Zeger, Liang and Albert 1988).
    averaged = 1 / np.sqrt(1 + (16 * np.sqrt(3) / (15 * np.pi) * 0.8) ** 2)
    assert averaged / 2 < table.loc[found, "low"] < averaged < table.loc[found, "high"]
    assert table.loc[found, "p_holm"] < 1e-4
    assert table.loc[other, "low"] < 0 < table.loc[other, "high"]
    assert table.loc["familiarity", "p"] > 0.05
    assert set(table["adjusted_for"]) == {"rule, phrasing, verb"}
    assert (table[["n", "clusters", "left_out"]] == [1200, 60, 0]).all(axis=None)


def table_of(results):
    """The rows that the regression is about, made without the module."""
    rows = results.ratios.merge(results.answers).merge(results.prompts).merge(results.familiarity)
    mean = rows.groupby("entity_pair")["ratio"].transform("mean")
    return rows.assign(ratio_of_entity=mean, ratio_within_entity=rows["ratio"] - mean)


def by_hand(rows, factors):
    """Estimates by Newton's method, and the covariance of Mancl and DeRouen, by its formula."""
    z = [(rows[name] - rows[name].mean()) / rows[name].std() for name in module.PREDICTORS]
    dummies = [rows[name] == level for name in factors for level in sorted(set(rows[name]))[1:]]
    x = np.column_stack([np.ones(len(rows)), *z, *dummies]).astype(float)
    y = rows["correct"].to_numpy(dtype=float)
    beta = np.zeros(x.shape[1])
    for _ in range(30):
        p = expit(x @ beta)
        beta += np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]), x.T @ (y - p))
    weights = p * (1 - p)
    bread, meat = np.linalg.inv(x.T @ (x * weights[:, None])), 0
    for entity in rows["entity_pair"].unique():
        own = (rows["entity_pair"] == entity).to_numpy()
        hat = (x[own] * weights[own, None]) @ bread @ x[own].T
        score = x[own].T @ np.linalg.inv(np.eye(own.sum()) - hat) @ (y - p)[own]
        meat = meat + np.outer(score, score)
    return beta, np.sqrt(np.diag(bread @ meat @ bread))


@pytest.mark.parametrize("factors", [(), ("rule", "phrasing", "verb")])
def test_estimates_and_clustered_errors_are_those_computed_by_hand(factors):
    rows = table_of(simulated(between=0.5, within=0.5, entities=14, each=9))
    table = module.regression(rows, factors)
    beta, errors = by_hand(rows, factors)
    assert table["term"].tolist() == list(module.PREDICTORS)
    assert table["estimate"].tolist() == pytest.approx(beta[1:4], rel=1e-6)
    assert table["se"].tolist() == pytest.approx(errors[1:4], rel=1e-6)
    # The intercept, the entity's ratio and its familiarity are constant within entities.
    freedom = 14 - 3
    assert table["df"].tolist() == [freedom] * 3
    assert table["odds_ratio"].tolist() == pytest.approx(np.exp(beta[1:4]))
    t = beta[1:4] / errors[1:4]
    assert table["t"].tolist() == pytest.approx(t)
    assert table["p"].tolist() == pytest.approx(2 * stats.t.sf(np.abs(t), freedom))
    half = stats.t.ppf(0.975, freedom) * errors[1:4]
    assert (table["high"] - table["low"]).tolist() == pytest.approx(2 * half)


def test_nothing_is_tested_below_ten_entities():
    table = module.prompt_models(simulated(entities=9))
    assert table["estimate"].notna().any()
    assert table[["p", "p_holm", "low", "high"]].isna().all(axis=None)
    assert table["note"].str.fullmatch("not tested: 9 clusters.* 10 .*").all()
    assert set(table["clusters"]) == {9}


def test_a_model_without_usable_rows_is_left_out_with_the_reason():
    """Its estimates used to be printed, from the rows that say nothing."""
    found = simulated(within=1.0)
    # Each verb has one outcome, whatever the ratios.
    answers = found.answers.assign(correct=found.prompts["verb"].eq("be"))
    alone = replace(found, answers=answers)
    tables = ("answers", "ratios", "familiarity")
    pairs = {name: (getattr(alone, name), getattr(found, name)) for name in tables}
    both = {name: pd.concat([one.assign(model="n"), own]) for name, (one, own) in pairs.items()}
    both = replace(found, **both)
    for table in (module.prompt_models(alone), module.prompt_models(both).query("model == 'n'")):
        assert len(table) == 3
        assert table[[*module.NUMBERS, "p_holm"]].isna().all(axis=None)
        assert table["note"].str.match("left out: .*phrasing or verb").all()
        assert (table["left_out"] == len(found.prompts)).all()
    measured = module.prompt_models(both).query("model == 'm'")
    assert measured["estimate"].notna().all()
    assert (measured["family_size"] == 3).all()


def by_familiarity(results):
    """Correct answers exactly to the entities that are more familiar than others."""
    familiar = results.prompts.merge(results.familiarity)["familiarity"] > 0.5
    return replace(results, answers=results.answers.assign(correct=familiar.to_numpy()))


def by_ratio(results):
    """Entities are as familiar as their mean ratio is large."""
    mean = results.ratios.groupby(results.prompts["entity_pair"], sort=False)["ratio"].mean()
    return replace(results, familiarity=results.familiarity.assign(familiarity=mean.to_numpy()))


UNDEFINED = {
    "a constant outcome": (
        lambda found: replace(found, answers=found.answers.assign(correct=True)),
        "alike",
    ),
    "separation": (by_familiarity, "separate"),
    "one entity": (
        lambda found: replace(found, prompts=found.prompts[found.prompts["entity_pair"] == "e0"]),
        "same for all prompts|single entity pair",
    ),
    "dependence": (by_ratio, "linearly"),
}


@pytest.mark.parametrize("case", UNDEFINED)
def test_without_an_estimate_cells_are_empty_and_say_why(case):
    change, reason = UNDEFINED[case]
    table = module.prompt_models(change(simulated(within=0.5)))
    assert table["term"].tolist() == list(module.PREDICTORS)
    assert table[[*module.NUMBERS, "p_holm"]].isna().all(axis=None)
    assert table["note"].str.contains(reason).all()


def test_a_search_that_does_not_converge_is_an_empty_cell(monkeypatch):
    monkeypatch.setattr(module, "_undefined", lambda design, outcomes, clusters: "")
    table = module.prompt_models(by_familiarity(simulated()))
    assert table[module.NUMBERS].isna().all(axis=None)
    assert table["note"].str.contains("converge").all()


def test_a_constant_predictor_is_undefined_and_the_rest_is_fitted():
    """Equal ratios differ from their mean by rounding, which is no variation."""
    found = simulated()
    ratio = 0.1 + found.prompts["entity_pair"].str[1:].astype(int) / 10
    alike = replace(found, ratios=found.ratios.assign(ratio=ratio))
    table = module.prompt_models(alike).set_index("term")
    assert "same" in table.loc["ratio_within_entity", "note"]
    assert table["estimate"].notna().tolist() == [True, False, True]
    assert table["p"].notna().tolist() == [True, False, True]


def test_a_verb_of_one_entity_is_not_among_the_factors():
    """Its residuals would be zero on average, so the error of a verb would be undefined."""
    found = simulated()
    first = found.prompts["entity_pair"] == "e0"
    verbs = found.prompts["verb"].where(~first, "own")
    table = module.prompt_models(replace(found, prompts=found.prompts.assign(verb=verbs)))
    assert set(table["adjusted_for"]) == {"rule, phrasing"}
    assert table["p"].notna().all()


def test_as_many_coefficients_as_entities_leave_no_test():
    rows = table_of(simulated(entities=4, spread=0.0))
    half = rows["entity_pair"].isin(["e0", "e1"])
    table = module.regression(rows.assign(verb=np.where(half, "be", "go")), ("verb",))
    assert table["p"].isna().all()
    assert table["note"].str.contains("single entity pair").all()


def test_separation_is_found_also_if_some_rows_are_on_the_border():
    x = np.column_stack([np.ones(6), [-2.0, -1.0, 0.0, 0.0, 1.0, 2.0]])
    assert module.separated(x, np.array([0.0, 0, 0, 1, 1, 1]))
    assert not module.separated(x, np.array([0.0, 1, 0, 1, 0, 1]))


def test_levels_of_a_single_outcome_are_left_out_until_none_is():
    rows = pd.DataFrame(
        {
            "verb": ["a", "a", "b", "b", "b", "c"],
            "rule": ["x", "x", "x", "y", "y", "x"],
            "correct": [True, True, True, False, False, False],
        }
    )
    # Verb c and rule y are always wrong, verb a always right; then verb b is right alone.
    assert module.without_constant_levels(rows, ("verb", "rule")).empty
    assert module.without_constant_levels(rows, ("verb",)).index.tolist() == [2, 3, 4]


def test_nothing_measured_is_an_empty_table():
    nothing = simulated()
    assert module.prompt_models(replace(nothing, ratios=nothing.ratios[:0])).empty
