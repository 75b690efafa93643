import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import approx_fprime
from scipy.special import expit
from statsmodels.api import GLM
from statsmodels.genmod.families import Binomial

from interp.statistics.mixed.laplace import _Likelihood, fit_laplace
from tests.statistics.mixed.examples import cbpp, crossed


def test_the_published_example_of_lme4():
    # lme4's documentation prints -1.3983, -0.9919, -1.1282, -1.5797 and a standard deviation of
    # 0.6421, at the default tolerance of its inner steps.
    fit = fit_laplace(*cbpp())
    assert fit.coefficients == pytest.approx([-1.3983, -0.9919, -1.1282, -1.5797], abs=1e-3)
    assert fit.sds == pytest.approx([0.6421], abs=1e-3)
    # R 4.2.2, lme4 1.1.31: glmer(y ~ period + (1 | herd), family = binomial, nAGQ = 1, control =
    # glmerControl("bobyqa", tolPwrss = 1e-13, optCtrl = list(rhoend = 1e-10, maxfun = 1e5)))
    exact = [-1.3985319910, -0.9923331456, -1.1286722325, -1.5803146178]
    assert fit.coefficients == pytest.approx(exact, abs=5e-6)
    assert fit.sds == pytest.approx([0.6422614319], abs=5e-6)
    assert fit.log_likelihood == pytest.approx(-277.5019416, abs=1e-6)
    # The errors by numDeriv::hessian of the same deviance.
    errors = [0.2324719005, 0.3066423089, 0.3266376192, 0.4274363519]
    assert fit.standard_errors == pytest.approx(errors, rel=1e-5)
    assert fit.converged


def test_crossed_groupings_are_fitted_as_lme4_does():
    # R as above: glmer(y ~ xs * fs + (1 | e) + (1 | p), ...)
    fit = fit_laplace(*crossed())
    exact = [0.253501531832, 0.451619626479, -0.480301962755, 0.473454372424]
    assert fit.coefficients == pytest.approx(exact, abs=1e-5)
    errors = [0.2451315148997, 0.0937362138719, 0.1668183704770, 0.0953262367881]
    assert fit.standard_errors == pytest.approx(errors, rel=1e-3)
    assert fit.sds == pytest.approx([0.4771999823, 0.4039519199], abs=1e-5)
    assert fit.log_likelihood == pytest.approx(-363.852087885, abs=1e-6)


def test_without_groupings_it_is_an_ordinary_logistic_regression():
    design, outcomes, levels = crossed()
    fit = fit_laplace(design, outcomes, levels[:, :0])
    expected = GLM(outcomes, design, family=Binomial()).fit()
    assert fit.coefficients == pytest.approx(expected.params, abs=1e-6)
    assert fit.standard_errors == pytest.approx(expected.bse, rel=1e-5)
    assert fit.log_likelihood == pytest.approx(expected.llf)


def test_the_gradient_is_that_of_the_value():
    likelihood = _Likelihood(*crossed())
    point = np.array([0.2, -0.5, 0.3, 0.2, 0.7, -0.4])
    numeric = approx_fprime(point, lambda p: likelihood(p)[0], 1e-6)
    assert likelihood(point)[1] == pytest.approx(numeric, abs=1e-3)


def test_a_value_does_not_depend_on_the_points_before():
    point = np.array([0.2, -0.5, 0.3, 0.2, 0.7, -0.4])
    after, alone = _Likelihood(*crossed()), _Likelihood(*crossed())
    for far in (point * 0, point * 100, -point):
        after(far)
    assert after(point)[0] == pytest.approx(alone(point)[0], rel=1e-12)
    assert after(point)[1] == pytest.approx(alone(point)[1], abs=1e-7)


def test_laplace_is_near_the_integral():
    # One grouping's integral, by 60 nodes of Gauss and Hermite.
    design, outcomes, levels = cbpp()
    point = np.array([-1.4, -1.0, -1.1, -1.6, 0.64])
    nodes, weights = hermegauss(60)
    log_odds = (design @ point[:4])[:, None] + point[4] * nodes
    rows = np.where(outcomes[:, None] == 1, expit(log_odds), expit(-log_odds))
    herds = [np.log(rows[levels[:, 0] == herd].prod(axis=0) @ weights) for herd in range(15)]
    integral = sum(herds) - 15 * np.log(weights.sum())
    assert -_Likelihood(design, outcomes, levels)(point)[0] == pytest.approx(integral, abs=0.3)


def test_a_grouping_without_effect_has_no_spread():
    design, _, _ = crossed()
    levels = np.arange(600)[:, None] // 2 % 2  # far less than chance tells apart
    fit = fit_laplace(design, np.tile([0.0, 1.0], 300), levels)
    assert fit.converged
    assert fit.sds == pytest.approx([0.0], abs=1e-3)


def test_the_order_of_rows_and_the_names_of_levels_do_not_matter():
    design, outcomes, levels = crossed()
    order = np.random.default_rng(0).permutation(len(outcomes))
    one = fit_laplace(design, outcomes, levels)
    other = fit_laplace(design[order], outcomes[order], levels.max(axis=0) - levels[order])
    assert other.coefficients == pytest.approx(one.coefficients, abs=1e-6)
    assert other.standard_errors == pytest.approx(one.standard_errors, rel=1e-5)


def test_the_other_outcome_has_the_opposite_coefficients():
    design, outcomes, levels = crossed()
    one, other = fit_laplace(design, outcomes, levels), fit_laplace(design, 1 - outcomes, levels)
    assert other.coefficients == pytest.approx(-one.coefficients, abs=1e-5)
    assert other.sds == pytest.approx(one.sds, abs=1e-5)


def test_a_likelihood_without_a_maximum_does_not_converge():
    design, _, levels = crossed()
    twice = np.column_stack([design, design[:, 1]])
    assert not fit_laplace(twice, crossed()[1], levels).converged
