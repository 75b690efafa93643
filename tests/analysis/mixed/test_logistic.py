import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit

from interp.analysis.mixed.laplace import LaplaceFit
from interp.analysis.mixed.logistic import TERM_COLUMNS, mixed_logistic, mixed_logistic_table
from interp.errors import UserError

TERMS = ["intercept", "ratio", "familiarity", "ratio:familiarity"]
TRUTH = np.array([0.4, 0.6, -0.7, 0.3])
SDS = {"entity": 0.9, "phrasing": 0.4}


def simulated(seed, *, rows=3000, entities=60, phrasings=10):
    """Outcomes of the model itself, by standardised predictors."""
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


def fit(frame, predictors=("ratio", "familiarity"), groups=("entity", "phrasing")):
    return mixed_logistic(frame, outcome="correct", predictors=predictors, groups=groups)


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
    assert result.fitted == (
        "mixed logistic regression with random intercepts for entity and phrasing (Laplace)"
    )
    row = result.terms.iloc[1]
    assert row["z"] == pytest.approx(row["estimate"] / row["se"])
    assert row["odds_ratio"] == pytest.approx(np.exp(row["estimate"]))
    assert (row["low"] + row["high"]) / 2 == pytest.approx(row["estimate"])


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
    assert result.terms["note"].tolist() == ["", "", *["undefined: a constant predictor"] * 2]
    alone = fit(frame, predictors=("ratio",))
    assert result.terms["estimate"].tolist()[:2] == pytest.approx(alone.terms["estimate"])
    assert result.terms["p"].isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"correct": True}, "the outcome is always True"),
        ({"correct": False}, "the outcome is always False"),
        ({"correct": lambda d: d["ratio"] > 3}, "the predictors separate the outcomes"),
        ({"familiarity": lambda d: d["ratio"]}, "depend on each other linearly"),
        ({"ratio": np.nan}, "no row has all values"),
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
    assert result.fitted == "mixed logistic regression with random intercepts for entity (Laplace)"
    assert result.groups["note"].tolist() == ["", "left out: one level"]
    assert result.groups["sd"].isna().tolist() == [False, True]


def test_groupings_of_one_level_leave_an_ordinary_regression(frame):
    result = fit(frame.assign(phrasing="p", entity="e"))
    assert result.fitted == "logistic regression: no grouping has two levels"
    assert result.terms["se"].notna().all()


def test_a_grouping_that_decides_the_outcome_gives_robust_errors(frame):
    decided = frame.assign(correct=frame["entity"].str[-1].astype(int) % 2 == 0)
    result = fit(decided)
    assert not result.converged
    assert result.fitted == (
        "logistic regression with errors robust to clusters of entity, because the mixed model "
        "did not converge: entity alone decides nearly every outcome"
    )
    a, b = ((x - x.mean()) / x.std() for x in (decided["ratio"], decided["familiarity"]))
    expected = sm.Logit(
        decided["correct"].astype(float), np.column_stack([np.ones(600), a, b, a * b])
    ).fit(disp=0, cov_type="cluster", cov_kwds={"groups": pd.factorize(decided["entity"])[0]})
    assert result.terms["estimate"].tolist() == pytest.approx(expected.params.tolist(), abs=1e-6)
    assert result.terms["se"].tolist() == pytest.approx(expected.bse.tolist(), rel=1e-5)
    assert result.groups["sd"].isna().all()


def test_a_fit_without_a_maximum_gives_robust_errors(frame, monkeypatch):
    def lost(design, outcomes, levels):
        nan = np.full(design.shape[1], np.nan)
        return LaplaceFit(nan, nan, np.ones(levels.shape[1]), -1.0, False)

    monkeypatch.setattr("interp.analysis.mixed.logistic.fit_laplace", lost)
    result = fit(frame)
    assert result.fitted.endswith("did not converge: its likelihood has no clear maximum")
    assert result.terms["se"].notna().all()


def test_one_table_for_all_models(frame):
    both = pd.concat([frame.assign(model="z"), frame.assign(model="a", correct=True)])
    table = mixed_logistic_table(
        both, outcome="correct", predictors=("ratio", "familiarity"), groups=("entity", "phrasing")
    )
    assert table["model"].tolist() == ["z"] * 4 + ["a"] * 4
    assert table["term"].tolist() == TERMS * 2
    assert table["entity_sd"].notna().tolist() == [True] * 4 + [False] * 4
    assert table["fitted"].nunique() == 2


@pytest.mark.parametrize(
    ("predictors", "groups", "message"),
    [
        (("ratio", "shape"), ("entity",), "lacks the columns shape"),
        ((), ("entity",), "at least one predictor and one grouping"),
        (("ratio",), (), "at least one predictor and one grouping"),
    ],
)
def test_bad_columns_are_refused(frame, predictors, groups, message):
    with pytest.raises(UserError, match=message):
        fit(frame, predictors=predictors, groups=groups)
