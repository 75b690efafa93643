"""Linear mixed models against lme4 and statsmodels, and on simulated data.

The numbers under LME4 are what lme4 1.1-31 and emmeans 1.8.4 give in R 4.2 for the sleepstudy data.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from interp.analysis.mixed.design import MixedFormula
from interp.analysis.mixed.linear import fit_mixed_model, likelihood_ratio_test
from interp.analysis.mixed.marginal_means import marginal_means, pairwise_tests
from interp.analysis.mixed.r_squared import r_squared
from interp.errors import UserError
from tests.analysis.mixed.examples import simulated, sleepstudy

DAYS = MixedFormula("reaction", ("days",), "subject", "days")
PHASES = MixedFormula("reaction", ("phase", "days"), "subject", "days")
LEVELS = ("early", "middle", "late")


@pytest.fixture(scope="module")
def sleep():
    return sleepstudy()


def test_sleepstudy_by_restricted_maximum_likelihood(sleep):
    model = fit_mixed_model(sleep, DAYS)
    coefficients = model.coefficients()
    assert coefficients["term"].tolist() == ["Intercept", "days"]
    assert coefficients["estimate"].tolist() == pytest.approx([251.4051048, 10.4672860])
    assert coefficients["standard_error"].tolist() == pytest.approx(
        [6.82459669, 1.54578964], rel=2e-5
    )
    spread = model.random_spread()
    assert spread["sd"].tolist() == pytest.approx([24.7406580, 5.9221377, 25.5917957], rel=2e-5)
    assert spread["correlation"][1] == pytest.approx(0.0655512, abs=1e-5)
    assert model.fit.deviance == pytest.approx(1743.62827196, abs=1e-6)
    assert model.note == ""
    assert model.equation == "reaction ~ days + (1 + days | subject)"
    first = model.random_effects().iloc[:3]
    assert first["subject"].tolist() == ["308", "309", "310"]
    assert first["intercept"].tolist() == pytest.approx([2.25855, -40.39874, -38.96041], abs=1e-3)
    assert first["days"].tolist() == pytest.approx([9.198976, -8.619681, -5.448857], abs=1e-3)


def test_sleepstudy_by_maximum_likelihood(sleep):
    model = fit_mixed_model(sleep, DAYS, reml=False)
    assert model.log_likelihood == pytest.approx(-875.969672244, abs=1e-7)
    sds = model.random_spread()["sd"].tolist()
    assert sds == pytest.approx([23.7797596, 5.7167985, 25.5919070], rel=5e-5)


def test_random_intercepts_alone(sleep):
    model = fit_mixed_model(sleep, MixedFormula("reaction", ("days",), "subject"))
    assert model.random_spread()["sd"].tolist() == pytest.approx([37.1238268, 30.9912339])
    assert model.fit.deviance == pytest.approx(1786.46508539)
    assert list(model.random_effects()) == ["subject", "intercept"]


def test_likelihood_ratio_test(sleep):
    test = likelihood_ratio_test(sleep, DAYS, without="days")
    assert (test["chi_square"], test["df"]) == (pytest.approx(23.53654, abs=1e-5), 1)
    assert test["p"] == pytest.approx(1.2256e-06, rel=1e-4)
    weak = likelihood_ratio_test(sleep, PHASES, without="phase")
    assert (weak["chi_square"], weak["df"]) == (pytest.approx(0.1675906918, abs=1e-6), 2)


def test_marginal_means_and_pairs_as_emmeans_gives_them(sleep):
    model = fit_mixed_model(sleep, PHASES)
    means = marginal_means(model, "phase")
    assert means["level"].tolist() == list(LEVELS)
    assert means["mean"].tolist() == pytest.approx([301.5197176, 299.0080435, 295.8739083])
    assert means["standard_error"].tolist() == pytest.approx([11.8602219, 9.5668509, 11.1483087])
    assert means["low"].tolist() == pytest.approx([278.2741098, 280.2573602, 274.0236247])
    assert means["high"].tolist() == pytest.approx([324.7653253, 317.7587268, 317.7241920])
    tests = pairwise_tests(model, "phase")
    assert tests[["first", "second"]].values.tolist() == [
        ["early", "middle"],
        ["early", "late"],
        ["middle", "late"],
    ]
    assert tests["difference"].tolist() == pytest.approx([2.5116741, 5.6458093, 3.1341352])
    assert tests["standard_error"].tolist() == pytest.approx([7.8374283, 13.9468059, 8.4653901])
    assert tests["p"].tolist() == pytest.approx([0.7486108, 0.6856170, 0.7112117])
    assert tests["p_holm"].tolist() == [1.0, 1.0, 1.0]


def test_r_squared_by_the_formula_worked_out_in_r(sleep):
    shares = r_squared(fit_mixed_model(sleep, PHASES))
    assert shares.marginal == pytest.approx(0.2770936154, rel=1e-6)
    assert shares.conditional == pytest.approx(0.7967724415, rel=1e-6)


def test_chosen_pairs_are_their_own_family(sleep):
    model = fit_mixed_model(sleep, PHASES)
    tests = pairwise_tests(model, "phase", pairs=[("late", "early")])
    assert tests["difference"].tolist() == pytest.approx([-5.6458093])
    assert tests["p_holm"].tolist() == tests["p"].tolist()
    assert tests["family_size"].tolist() == [1]


SIMULATED = MixedFormula("y", ("one", "two", "x"), "model", "x")
TRUTH = {
    "one[T.b]": 0.2,
    "one[T.c]": -0.1,
    "two[T.u]": 0.15,
    "x": -0.05,
}


def test_simulated_coefficients_lie_in_their_intervals():
    """95% intervals cover the truth about 95 times in a hundred, here in 40 simulations of each."""
    covered = []
    for seed in range(40):
        table = fit_mixed_model(simulated(seed, groups=40, rows=20), SIMULATED).coefficients()
        table = table.set_index("term").loc[list(TRUTH)]
        apart = (table["estimate"] - pd.Series(TRUTH)).abs() / table["standard_error"]
        covered.append(apart < 1.96)
    shares = pd.concat(covered, axis=1).mean(axis=1)
    assert shares.mean() > 0.9
    assert shares.min() > 0.8


def test_simulated_variances_are_recovered():
    model = fit_mixed_model(simulated(0, groups=400, rows=40), SIMULATED)
    spread = model.random_spread()
    assert spread["sd"].tolist() == pytest.approx([0.3, 0.1, 0.2], rel=0.1)
    assert spread["correlation"][1] == pytest.approx(0.4, abs=0.15)


@settings(max_examples=10, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 10_000), reml=st.booleans())
def test_never_less_likely_than_statsmodels(seed, reml):
    """Both maximise the same likelihood; where statsmodels converges, they agree."""
    frame = simulated(seed, groups=6, rows=30)
    ours = fit_mixed_model(frame, SIMULATED, reml=reml)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        theirs = smf.mixedlm("y ~ one + two + x", frame, groups="model", re_formula="~x").fit(
            reml=reml, method="lbfgs"
        )
    assert ours.log_likelihood >= theirs.llf - 1e-4
    if not caught and ours.log_likelihood - theirs.llf < 1e-4:
        expected = theirs.fe_params.to_numpy()
        assert ours.fit.coefficients == pytest.approx(expected, abs=1e-3)


@settings(max_examples=15, phases=[Phase.explicit, Phase.generate])
@given(scale=st.floats(1e-3, 1e6), shift=st.floats(-50, 50), stretch=st.floats(1e-3, 1e3))
def test_units_do_not_matter(scale, shift, stretch):
    """A covariate in other units, and from another origin, gives the same model."""
    frame = simulated(3, groups=6, rows=30)
    plain = fit_mixed_model(frame, SIMULATED, reml=False)
    changed = frame.assign(x=(frame["x"] + shift) * scale, y=frame["y"] * stretch)
    other = fit_mixed_model(changed, SIMULATED, reml=False)
    drop = len(frame) * np.log(stretch)
    assert other.log_likelihood == pytest.approx(plain.log_likelihood - drop, abs=1e-3)
    means = marginal_means(plain, "one")["mean"] * stretch
    assert marginal_means(other, "one")["mean"].tolist() == pytest.approx(means.tolist(), rel=1e-3)


def test_groups_that_do_not_differ_have_no_variance(sleep):
    """lme4 ends at the same boundary: Days 8.28736, residual 34.31812, criterion 386.0384825."""
    four = sleep[sleep["subject"].isin(["308", "309", "310", "330"])].copy()
    four["centred"] = four["reaction"] - four.groupby("subject")["reaction"].transform("mean")
    model = fit_mixed_model(four, MixedFormula("centred", ("days",), "subject"))
    assert "variance of zero" in model.note
    assert model.random_spread()["sd"].tolist() == pytest.approx([0.0, 34.318118], abs=1e-3)
    assert model.fit.deviance == pytest.approx(386.038482503, abs=1e-6)


@pytest.mark.parametrize("models", [1, 2])
def test_one_or_two_models_are_least_squares_and_said_to_be(models):
    frame = simulated(1, groups=models, rows=80)
    model = fit_mixed_model(frame, SIMULATED)
    terms = "one + two + x" + (" + model" if models == 2 else "")
    expected = smf.ols(f"y ~ {terms}", frame).fit()
    table = model.coefficients().set_index("term")
    estimates = expected.params.rename({"Intercept": "Intercept"})
    assert table["estimate"].to_dict() == pytest.approx(estimates[table.index].to_dict())
    assert table["standard_error"].to_dict() == pytest.approx(expected.bse[table.index].to_dict())
    assert "least squares" in model.note
    assert ("fixed effect" in model.note) == (models == 2)
    assert model.equation == f"y ~ {terms}"
    assert list(model.random_effects()) == ["model"]
    shares = r_squared(model)
    assert shares.conditional == pytest.approx(expected.rsquared, abs=0.02)
    assert (shares.marginal < shares.conditional) == (models == 2)
    assert likelihood_ratio_test(frame, SIMULATED, without="one")["df"] == 2
    assert len(marginal_means(model, "one")) == 3


def test_a_constant_response_explains_nothing():
    frame = simulated(1, groups=4, rows=20).assign(y=1.0)
    model = fit_mixed_model(frame, SIMULATED)
    assert model.coefficients()["estimate"].tolist() == pytest.approx([1, 0, 0, 0, 0], abs=1e-9)
    assert "does not vary" in model.note
    assert np.isnan(r_squared(model).marginal)
    assert np.isnan(likelihood_ratio_test(frame, SIMULATED, without="one")["p"])


def test_rows_without_a_value_are_left_out_and_counted():
    frame = simulated(1, groups=4, rows=20)
    whole = fit_mixed_model(frame, SIMULATED)
    gap = pd.concat([frame, frame.iloc[:3].assign(y=np.nan)])
    model = fit_mixed_model(gap, SIMULATED)
    assert model.note == "3 rows lack a value and were left out"
    assert model.fit.deviance == whole.fit.deviance


@pytest.mark.parametrize(
    ("change", "formula", "message"),
    [
        (lambda f: f.drop(columns="x"), SIMULATED, "lacks x"),
        (lambda f: f.iloc[:0], SIMULATED, "no row"),
        (lambda f: f.assign(two="t"), SIMULATED, "two is t in every row"),
        (lambda f: f.assign(two=f["one"]), SIMULATED, "cannot distinguish 6 coefficients"),
        (lambda f: f, MixedFormula("y", ("one +",), "model"), "lacks one \\+"),
    ],
)
def test_what_cannot_be_fitted_is_refused(change, formula, message):
    with pytest.raises(UserError, match=message):
        fit_mixed_model(change(simulated(1, groups=4, rows=20)), formula)


def test_unknown_terms_factors_and_levels_are_refused():
    frame = simulated(1, groups=4, rows=20)
    model = fit_mixed_model(frame, SIMULATED)
    with pytest.raises(UserError, match="no fixed effect 'three'"):
        likelihood_ratio_test(frame, SIMULATED, without="three")
    with pytest.raises(UserError, match="no factor 'x'; it has one, two"):
        marginal_means(model, "x")
    with pytest.raises(UserError, match="one has no level z"):
        pairwise_tests(model, "one", pairs=[("a", "z")])
