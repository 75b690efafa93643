import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit

from interp.errors import UserError
from interp.statistics.mixed.laplace import LaplaceFit, fit_laplace
from interp.statistics.mixed.logistic import (
    TERM_COLUMNS,
    mixed_logistic,
    mixed_logistic_table,
)

TERMS = ["intercept", "ratio", "familiarity", "ratio:familiarity"]
TRUTH = np.array([0.4, 0.6, -0.7, 0.3])
SDS = {"entity": 0.9, "phrasing": 0.4}


def simulated(seed, *, rows=3000, entities=60, phrasings=10):
    """Outcomes of the model itself, by standardized predictors."""
    rng = np.random.default_rng(seed)
    entity, phrasing = rng.integers(0, entities, rows), rng.integers(0, phrasings, rows)
    ratio, familiarity = rng.normal(size=rows), rng.normal(size=entities)[entity]
    a, b = ((x - x.mean()) / x.std(ddof=1) for x in (ratio, familiarity))
    log_odds = np.column_stack([np.ones(rows), a, b, a * b]) @ TRUTH
    log_odds += rng.normal(0, SDS["entity"], entities)[entity]
    log_odds += rng.normal(0, SDS["phrasing"], phrasings)[phrasing]
    return pd.DataFrame(
        {
            "correct": rng.random(rows) < expit(log_odds),
            "ratio": 3 + 0.2 * ratio,
            "familiarity": familiarity,
            "entity": [f"e{i}" for i in entity],
            "phrasing": [f"p{i}" for i in phrasing],
        }
    )


PREDICTORS = ("ratio", "familiarity", "ratio:familiarity")


def fit(frame, terms=PREDICTORS, groups=("entity", "phrasing")):
    return mixed_logistic(frame, outcome="correct", terms=terms, groups=groups)


@pytest.fixture(scope="module")
def frame():
    return simulated(0, rows=600, entities=20, phrasings=5)


def test_simulated_coefficients_are_found_within_their_intervals():
    found = [fit(simulated(seed)).terms for seed in range(12)]
    held = [(terms["low"] <= TRUTH) & (terms["high"] >= TRUTH) for terms in found]
    # 48 intervals of 95%: 42 and more of them hold in 99% of cases.
    assert np.sum(held) >= 42
    errors = [(terms["estimate"] - TRUTH) / terms["se"] for terms in found]
    assert np.abs(np.mean(errors)) < 0.6
    assert 0.6 < np.std(errors) < 1.4


def test_the_result_says_what_was_fitted(frame):
    result = fit(frame)
    assert result.terms["term"].tolist() == TERMS
    assert list(result.terms.columns) == list(TERM_COLUMNS)
    assert result.groups[["group", "levels"]].to_numpy().tolist() == [
        ["entity", 20],
        ["phrasing", 5],
    ]
    assert (result.n, result.converged) == (600, True)
    assert re.match("mixed logistic .* entity and phrasing", result.fitted)
    row = result.terms.iloc[1]
    assert row["t"] == pytest.approx(row["estimate"] / row["se"])
    assert row["odds_ratio"] == pytest.approx(np.exp(row["estimate"]))
    assert (row["low"] + row["high"]) / 2 == pytest.approx(row["estimate"])


def test_what_belongs_to_levels_has_degrees_of_freedom_over_them(frame):
    """20 entities have two coefficients that tell them apart, 5 phrasings have the intercept."""
    terms = fit(frame).terms.set_index("term")
    assert terms["df"].to_dict() == dict(zip(TERMS, (4, np.inf, 18, np.inf), strict=True))
    a, b = ((frame[name] - frame[name].mean()) / frame[name].std() for name in PREDICTORS[:2])
    design = np.column_stack([np.ones(len(frame)), a, b, a * b])
    codes = np.column_stack([pd.factorize(frame[name])[0] for name in ("entity", "phrasing")])
    by_likelihood = fit_laplace(design, frame["correct"].to_numpy(float), codes).standard_errors
    factors = np.sqrt([5 / 4, 1, 20 / 18, 1])
    assert terms["se"].to_numpy() == pytest.approx(by_likelihood * factors)
    row = terms.loc["familiarity"]
    assert row["p"] == pytest.approx(2 * stats.t.sf(abs(row["estimate"] / row["se"]), 18))
    half = stats.t.ppf(0.975, 18) * row["se"]
    assert row["high"] - row["low"] == pytest.approx(2 * half)


def test_what_belongs_to_levels_is_found_by_chance_as_often_as_stated():
    """The normal distribution, and errors of maximum likelihood, find it twice as often."""
    entities, studies = 10, 200
    entity = np.repeat(np.arange(entities), 20)
    found = []
    for seed in range(studies):
        rng = np.random.default_rng([3, seed])
        frame = pd.DataFrame(
            {
                "correct": rng.random(len(entity)) < expit(rng.normal(size=entities)[entity]),
                "familiarity": rng.normal(size=entities)[entity],
                "ratio": rng.normal(size=len(entity)),
                "entity": [f"e{number}" for number in entity],
            }
        )
        terms = fit(frame, terms=("familiarity", "ratio"), groups=("entity",)).terms
        found.append(terms.set_index("term")[["t", "p"]].T.stack())
    table = pd.DataFrame(found)
    by_likelihood = table["t", "familiarity"] * np.sqrt(entities / (entities - 2))
    assert (table["p"][["familiarity", "ratio"]] <= 0.05).mean().max() <= 0.07
    assert (by_likelihood.abs() > stats.norm.ppf(0.975)).mean() > 0.09


def test_as_many_coefficients_as_levels_leave_no_test(frame):
    two = frame[frame["entity"].isin(["e0", "e1"])]
    terms = fit(two, terms=("familiarity", "ratio"), groups=("entity",)).terms.set_index("term")
    assert terms.loc["familiarity", ["p", "low", "high"]].isna().all()
    assert re.fullmatch("no test: .*coefficients as levels", terms.loc["familiarity", "note"])
    assert np.isfinite(terms.loc["ratio", "p"])


def test_the_unit_of_a_predictor_does_not_matter(frame):
    rescaled = fit(frame.assign(ratio=frame["ratio"] * 1000 + 5))
    assert rescaled.terms["estimate"].tolist() == pytest.approx(fit(frame).terms["estimate"])


def test_rows_without_a_value_are_left_out(frame):
    holed = frame.assign(ratio=frame["ratio"].where(frame.index >= 100))
    result, whole = fit(holed), fit(frame[100:])
    assert result.n == 500
    pd.testing.assert_frame_equal(result.terms, whole.terms)


def test_a_constant_predictor_is_undefined_and_the_rest_is_fitted(frame):
    result = fit(frame.assign(familiarity=0.1))
    assert result.terms["note"].tolist() == ["", "", *["undefined: a constant term"] * 2]
    alone = fit(frame, terms=("ratio",))
    assert result.terms["estimate"].tolist()[:2] == pytest.approx(alone.terms["estimate"])
    assert result.terms["p"].isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"correct": True}, "the outcome is always True"),
        ({"correct": False}, "the outcome is always False"),
        ({"correct": lambda d: d["ratio"] > 3}, "the terms separate the outcomes"),
        ({"familiarity": lambda d: d["ratio"]}, "depend on each other linearly"),
        ({"ratio": np.nan}, "no row has a value in every column"),
    ],
)
def test_where_there_is_no_estimate_it_says_why(frame, changes, reason):
    result = fit(frame.assign(**changes))
    assert not result.converged
    assert result.fitted.startswith("nothing: ")
    assert reason in result.fitted
    assert result.terms["term"].tolist() == TERMS
    assert result.terms["estimate"].isna().all()
    assert result.terms["note"].str.contains(reason).all()


def test_a_grouping_of_one_level_is_left_out(frame):
    result = fit(frame.assign(phrasing="p"))
    assert re.fullmatch(r"mixed logistic .* for entity \(Laplace\)", result.fitted)
    assert result.groups["note"].tolist() == ["", "omitted: only one level"]
    assert result.groups["sd"].isna().tolist() == [False, True]


def test_groupings_of_one_level_leave_an_ordinary_regression(frame):
    result = fit(frame.assign(phrasing="p", entity="e"))
    assert re.fullmatch("logistic regression: no grouping .*", result.fitted)
    assert result.terms["se"].notna().all()


def by_levels(frame):
    """The regression over entities with equally many rows: of their shares, with one weight."""
    entities = frame.groupby("entity").agg(
        share=("correct", "mean"), familiarity=("familiarity", "first")
    )
    x = sm.add_constant((entities["familiarity"]).to_numpy())
    model = sm.GLM(entities["share"].to_numpy(dtype=float), x, family=sm.families.Binomial())
    return model.fit(scale="X2", use_t=True)


def test_a_grouping_that_decides_the_outcome_is_the_observation(frame):
    balanced = frame.groupby("entity").head(frame["entity"].value_counts().min())
    z = (balanced["familiarity"] - balanced["familiarity"].mean()) / balanced["familiarity"].std()
    decided = balanced.assign(
        correct=balanced["entity"].str[-1].astype(int) % 2 == 0, familiarity=z
    )
    result = fit(decided)
    assert not result.converged
    assert re.match("quasi-binomial .* entity; .*: entity .*decides", result.fitted)
    terms = result.terms.set_index("term")
    expected = by_levels(decided)
    known = terms.loc[["intercept", "familiarity"]]
    assert known["estimate"].tolist() == pytest.approx(expected.params.tolist(), abs=1e-6)
    assert known["se"].tolist() == pytest.approx(expected.bse.tolist(), rel=1e-5)
    assert known["p"].tolist() == pytest.approx(expected.pvalues.tolist(), rel=1e-5)
    assert known[["low", "high"]].to_numpy() == pytest.approx(expected.conf_int(), rel=1e-5)
    within = terms.loc[["ratio", "ratio:familiarity"]]
    assert within["estimate"].isna().all()
    assert within["note"].str.startswith("undefined: it varies within entity").all()
    assert result.groups["sd"].isna().all()
    assert np.isnan([result.log_likelihood, result.r_squared.marginal]).all()


def test_an_effect_within_levels_is_not_taken_for_one_between(frame):
    """Rows of an entity are no observations of what the entity decides: errors do not shrink."""
    decided = frame.assign(correct=frame["entity"].str[-1].astype(int) % 2 == 0)
    often = pd.concat([decided] * 5)
    once, more = (fit(rows).terms.set_index("term").loc["familiarity"] for rows in (decided, often))
    assert more["se"] == pytest.approx(once["se"], rel=0.02)


def test_a_fit_without_a_maximum_is_over_levels_too(frame, monkeypatch):
    def lost(design, outcomes, levels):
        nan = np.full(design.shape[1], np.nan)
        return LaplaceFit(nan, nan, np.ones(levels.shape[1]), -1.0, False)

    monkeypatch.setattr("interp.statistics.mixed.logistic.fit_laplace", lost)
    result = fit(frame)
    assert re.search("mixed model: .*no clear maximum$", result.fitted)
    assert result.terms["se"].notna().sum() == 2


def with_factors(seed=5, rows=1500):
    """An equation like that of the human answers: two factors, a covariate, people."""
    rng = np.random.default_rng(seed)
    person = rng.integers(0, 40, rows)
    modality, form = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    x = rng.normal(10, 2, rows)
    log_odds = 0.3 + np.array([0.0, -0.8, 0.5])[modality] + 0.6 * form - 0.2 * (x - 10)
    log_odds += rng.normal(0, 0.7, 40)[person]
    return pd.DataFrame(
        {
            "correct": rng.random(rows) < expit(log_odds),
            "modality": pd.Categorical.from_codes(modality, ["none", "box", "diamond"]),
            "form": np.array(["mp", "mt"])[form],
            "perplexity": x,
            "person": [f"person {number}" for number in person],
        }
    )


EQUATION = ("modality", "form", "perplexity")


def test_factors_are_fitted_as_by_an_independent_implementation():
    theirs = pytest.importorskip("pystatistics.mixed")
    frame = with_factors()
    ours = fit(frame, terms=EQUATION, groups=("person",))
    names = ["intercept", "modality[T.box]", "modality[T.diamond]", "form[T.mt]", "perplexity"]
    assert ours.terms["term"].tolist() == names
    z = (frame["perplexity"] - frame["perplexity"].mean()) / frame["perplexity"].std()
    design = np.column_stack(
        [
            np.ones(len(frame)),
            frame["modality"] == "box",
            frame["modality"] == "diamond",
            frame["form"] == "mt",
            z,
        ]
    ).astype(float)
    people = {"person": pd.factorize(frame["person"])[0]}
    outcomes = frame["correct"].to_numpy(dtype=float)
    full = theirs.glmm(outcomes, design, people, family="binomial")
    assert ours.terms["estimate"].tolist() == pytest.approx(full.coefficients.tolist(), abs=3e-4)
    assert ours.log_likelihood == pytest.approx(full.log_likelihood, abs=1e-4)


def test_r_squared_by_its_formula():
    frame = with_factors()
    ours = fit(frame, terms=EQUATION, groups=("person",))
    estimates = ours.terms.set_index("term")["estimate"]
    z = (frame["perplexity"] - frame["perplexity"].mean()) / frame["perplexity"].std()
    fixed = (
        estimates["modality[T.box]"] * (frame["modality"] == "box")
        + estimates["modality[T.diamond]"] * (frame["modality"] == "diamond")
        + estimates["form[T.mt]"] * (frame["form"] == "mt")
        + estimates["perplexity"] * z
    )
    by_terms, by_people = np.var(fixed), ours.groups["sd"][0] ** 2
    total = by_terms + by_people + np.pi**2 / 3
    assert ours.r_squared.marginal == pytest.approx(by_terms / total)
    assert ours.r_squared.conditional == pytest.approx((by_terms + by_people) / total)


def test_a_factor_of_one_level_is_undefined_and_the_rest_is_fitted():
    frame = with_factors().assign(form="mp")
    terms = fit(frame, terms=EQUATION, groups=("person",)).terms.set_index("term")
    assert terms.index.tolist()[-2:] == ["form", "perplexity"]
    assert terms.loc["form", "note"] == "undefined: a constant term"
    assert terms["estimate"].notna().sum() == 4


def test_one_table_for_all_models(frame):
    both = pd.concat([frame.assign(model="z"), frame.assign(model="a", correct=True)])
    table = mixed_logistic_table(
        both, outcome="correct", terms=PREDICTORS, groups=("entity", "phrasing")
    )
    assert list(table)[:2] == ["model", "term"]
    assert table["model"].tolist() == ["z"] * 4 + ["a"] * 4
    assert table["term"].tolist() == TERMS * 2
    assert table["entity_sd"].notna().tolist() == [True] * 4 + [False] * 4
    assert table["fitted"].nunique() == 2


@pytest.mark.parametrize(
    ("terms", "groups", "message"),
    [
        (("ratio", "shape"), ("entity",), "lacks the columns shape"),
        ((), ("entity",), "at least one term and one grouping"),
        (("ratio",), (), "at least one term and one grouping"),
    ],
)
def test_bad_columns_are_refused(frame, terms, groups, message):
    with pytest.raises(UserError, match=message):
        fit(frame, terms=terms, groups=groups)
