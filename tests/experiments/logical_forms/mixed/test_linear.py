"""Linear mixed models against lme4, pystatistics and statsmodels, and on simulated data.

The numbers of the sleepstudy data are those of lme4 1.1-31 and emmeans 1.8.4 in R 4.2; intervals
and p-values follow from them by Student's t with 17 degrees of freedom, for 18 subjects.
"""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
import torch
from scipy import stats

from interp.errors import UserError
from interp_experiments.logical_forms.mixed import linear
from interp_experiments.logical_forms.mixed.linear import MixedFormula
from interp_experiments.logical_forms.mixed.means import marginal_means, pairwise_tests, pool

DAYS = MixedFormula("reaction", ("days",), "subject", "days")
PHASES = MixedFormula("reaction", ("phase", "days"), "subject", "days")
LEVELS = ("early", "middle", "late")


@pytest.fixture(scope="module")
def sleep():
    file = Path(__file__).parent / "data" / "sleepstudy.csv"
    wide = pd.read_csv(file, comment="#", dtype={"subject": str}, index_col="subject")
    frame = wide.rename(columns=int).stack().rename_axis(["subject", "days"])
    frame = frame.rename("reaction").reset_index()
    frame["phase"] = pd.cut(frame["days"], [-1, 2, 5, 9], labels=["early", "middle", "late"])
    return frame


def between_models(seed, *, models=10, rows=120, sd=0.05):
    """Nothing has an effect on average; each level of `one` deviates in each model; x is noise."""
    rng = np.random.default_rng(seed)
    model = np.repeat(np.arange(models), rows)
    one, two = rng.integers(3, size=models * rows), rng.integers(2, size=models * rows)
    y = 0.6 + rng.normal(0, 0.1, models)[model] + rng.normal(0, sd, (models, 3))[model, one]
    y += 0.15 * rng.normal(size=models * rows)
    levels = {"one": np.array(list("abc"))[one], "two": np.array(list("tu"))[two]}
    x = rng.normal(size=models * rows)
    return pd.DataFrame({"y": y, **levels, "x": x, "model": [f"model {g}" for g in model]})


def test_sleepstudy_by_restricted_maximum_likelihood(sleep):
    model = linear.fit_mixed_model(sleep, DAYS)
    fixed, spread = model.coefficients(), model.random_spread
    assert fixed["term"].tolist() == ["Intercept", "days"]
    assert fixed["estimate"].tolist() == pytest.approx([251.4051048, 10.4672860])
    assert fixed["standard_error"].tolist() == pytest.approx([6.82459669, 1.54578964], rel=2e-5)
    # lmerTest has 17.00 degrees of freedom and p = 3.264e-06 for the slope.
    assert fixed["df"].tolist() == [17, 17]
    assert fixed["t"].tolist() == pytest.approx([36.838, 6.771], abs=1e-3)
    assert fixed["p"][1] == pytest.approx(3.264e-06, rel=1e-3)
    assert spread["sd"].tolist() == pytest.approx([24.7406580, 5.9221377, 25.5917957], rel=2e-5)
    assert spread["correlation"][1] == pytest.approx(0.0655512, abs=1e-5)
    assert -2 * model.log_likelihood == pytest.approx(1743.62827196, abs=1e-6)
    assert model.note == ""
    assert model.equation == "reaction ~ days + (1 + days | subject)"
    first = model.random_effects.iloc[:3]
    assert first["subject"].tolist() == ["308", "309", "310"]
    assert first["intercept"].tolist() == pytest.approx([2.25855, -40.39874, -38.96041], abs=1e-3)
    assert first["days"].tolist() == pytest.approx([9.198976, -8.619681, -5.448857], abs=1e-3)


def test_likelihood_ratio_tests_and_r_squared_as_in_r(sleep):
    test = linear.likelihood_ratio_test(sleep, DAYS, without="days")
    assert (test["chi_square"], test["df"]) == (pytest.approx(23.53654, abs=1e-5), 1)
    assert test["p"] == pytest.approx(1.2256e-06, rel=1e-4)
    weak = linear.likelihood_ratio_test(sleep, PHASES, without="phase")
    assert (weak["chi_square"], weak["df"]) == (pytest.approx(0.1675906918, abs=1e-6), 2)
    shares = linear.r_squared(linear.fit_mixed_model(sleep, PHASES))
    assert shares == pytest.approx((0.2770936154, 0.7967724415), rel=1e-6)


def test_marginal_means_and_pairs_as_emmeans_gives_them(sleep):
    model = linear.fit_mixed_model(sleep, PHASES)
    means = marginal_means(model, "phase")
    assert means["level"].tolist() == list(LEVELS)
    assert means["mean"].tolist() == pytest.approx([301.5197176, 299.0080435, 295.8739083])
    errors = means["standard_error"]
    assert errors.tolist() == pytest.approx([11.8602219, 9.5668509, 11.1483087])
    for end, sign in (("low", -1), ("high", 1)):
        expected = means["mean"] + sign * stats.t.ppf(0.975, 17) * errors
        assert means[end].tolist() == pytest.approx(expected.tolist())
    tests = pairwise_tests(model, "phase")
    pairs = list(zip(tests["first"], tests["second"], strict=True))
    assert pairs == list(combinations(LEVELS, 2))
    assert tests["difference"].tolist() == pytest.approx([2.5116741, 5.6458093, 3.1341352])
    assert tests["standard_error"].tolist() == pytest.approx([7.8374283, 13.9468059, 8.4653901])
    expected = 2 * stats.t.sf(tests["difference"] / tests["standard_error"], 17)
    assert tests["p"].tolist() == pytest.approx(expected)
    half = stats.t.ppf(0.975, 17) * tests["standard_error"]
    assert (tests["high"] - tests["low"]).tolist() == pytest.approx((2 * half).tolist())
    (chosen,) = pairwise_tests(model, "phase", pairs=[("late", "early")])["difference"]
    assert chosen == pytest.approx(-5.6458093)


SIMULATED = MixedFormula("y", ("one", "two", "x"), "model", "x")


@pytest.mark.parametrize("models", [1, 2])
def test_one_or_two_models_are_least_squares_and_said_to_be(models):
    frame = between_models(1, models=models, rows=80)
    model = linear.fit_mixed_model(frame, SIMULATED)
    terms = "one + two + x" + (" + model" if models == 2 else "")
    expected = smf.ols(f"y ~ {terms}", frame).fit()
    table = model.coefficients().set_index("term")
    for name, theirs in (("estimate", expected.params), ("standard_error", expected.bse)):
        assert table[name].to_dict() == pytest.approx(theirs[table.index].to_dict())
    assert "least squares" in model.note
    assert ("fixed effect" in model.note) == (models == 2)
    assert model.equation == f"y ~ {terms}"
    assert list(model.random_effects) == ["model"]
    marginal, conditional = linear.r_squared(model)
    assert conditional == pytest.approx(expected.rsquared, abs=0.02)
    assert (marginal < conditional) == (models == 2)
    assert linear.likelihood_ratio_test(frame, SIMULATED, without="one")["df"] == 2
    assert len(marginal_means(model, "one")) == 3


def test_a_constant_response_explains_nothing():
    frame = between_models(1, models=4, rows=20).assign(y=1.0)
    model = linear.fit_mixed_model(frame, SIMULATED)
    assert model.coefficients()["estimate"].tolist() == pytest.approx([1, 0, 0, 0, 0], abs=1e-9)
    assert re.search("vary", model.note)
    assert np.isnan(linear.r_squared(model)).all()
    assert np.isnan(linear.likelihood_ratio_test(frame, SIMULATED, without="one")["p"])


def test_rows_without_a_value_are_left_out_and_counted():
    frame = between_models(1, models=4, rows=20)
    whole = linear.fit_mixed_model(frame, SIMULATED)
    gap = pd.concat([frame, frame.iloc[:3].assign(y=np.nan)])
    model = linear.fit_mixed_model(gap, SIMULATED)
    assert re.fullmatch("3 rows .*omitted", model.note)
    assert model.log_likelihood == whole.log_likelihood


def test_what_cannot_be_fitted_is_refused():
    frame = between_models(1, models=4, rows=20)
    for rows, message in (
        (frame.iloc[:0], r"\brow.*\by ~ one \+ two"),
        (frame.assign(two="t"), r"^two\b.*\bt\b.*\by ~ one \+ two"),
        (frame.assign(two=frame["one"]), r"\b4\b.*\b6\b.*\bone\[T\.b\]"),
    ):
        with pytest.raises(UserError, match=message):
            linear.fit_mixed_model(rows, SIMULATED)


VARYING = MixedFormula("y", ("one", "two"), "model", varying=("one", "two"))


def log_likelihood(model, frame, sds, *, reml):
    """By the dense covariance of all rows; with the coefficients and their covariance."""
    formula, x, y = model.formula, model.fixed, model.response
    same = frame["model"].to_numpy()[:, None] == frame["model"].to_numpy()
    effects = [sds["intercept"] ** 2 * same, sds["residual"] ** 2 * np.eye(len(frame))]
    for name in formula.varying:
        levels = frame[name].to_numpy()
        effects.append(sds[name] ** 2 * (same & (levels[:, None] == levels)))
    dense = sum(effects)
    weighted = np.linalg.solve(dense, np.column_stack([x, y]))
    precision = x.T @ weighted[:, :-1]
    coefficients = np.linalg.solve(precision, x.T @ weighted[:, -1])
    left = y - x @ coefficients
    deviance = np.linalg.slogdet(dense)[1] + left @ np.linalg.solve(dense, left)
    deviance += (len(y) - reml * x.shape[1]) * np.log(2 * np.pi)
    deviance += reml * np.linalg.slogdet(precision)[1]
    return -deviance / 2, coefficients, np.linalg.inv(precision)


@pytest.mark.parametrize("sd", [0.15, 0.0])
@pytest.mark.parametrize("reml", [True, False])
def test_varying_effects_maximize_the_likelihood_of_the_dense_covariance(reml, sd):
    frame = between_models(3, models=6, rows=60, sd=sd)
    model = linear.fit_mixed_model(frame, VARYING, reml=reml)
    sds = model.random_spread.set_index("effect")["sd"]
    assert sds.index.tolist() == ["intercept", "one", "two", "residual"]
    best, coefficients, covariance = log_likelihood(model, frame, sds, reml=reml)
    assert model.log_likelihood == pytest.approx(best, abs=1e-6)
    assert model.estimates == pytest.approx(coefficients, abs=1e-6)
    assert model.covariance == pytest.approx(covariance, rel=1e-5, abs=1e-10)
    for name in sds.index:
        for other in (sds[name] * 1.05, sds[name] * 0.95, sds[name] + 1e-3):
            near = log_likelihood(model, frame, {**sds, name: other}, reml=reml)[0]
            assert near < best + 1e-6
    assert bool(model.note) == (min(sds) < 1e-4)
    assert model.equation == "y ~ one + two + (1 | model) + (1 | one:model) + (1 | two:model)"
    levels = ["one[a]", "one[b]", "one[c]", "two[t]", "two[u]"]
    assert list(model.random_effects) == ["model", "intercept", *levels]


def test_one_group_has_the_f_test_of_least_squares(sleep):
    one = sleep[sleep["subject"] == "308"]
    model = linear.fit_mixed_model(one, PHASES)
    theirs = smf.ols("reaction ~ C(phase) + days", one.assign(phase=one["phase"].astype(str))).fit()
    table = theirs.wald_test_terms(scalar=True).table
    test = linear.wald_test(model, "phase")
    assert test["F"] == pytest.approx(float(table.loc["C(phase)", "statistic"]))
    assert test["p"] == pytest.approx(float(table.loc["C(phase)", "pvalue"]))
    assert model.freedom == 6


def test_few_clusters_do_not_make_a_factor_of_many_levels_a_finding():
    """Nine coefficients and 20 clusters: plain F rejects 27 of 100."""
    rng = np.random.default_rng(5)
    item, level = np.repeat(np.arange(20), 20), np.tile(np.arange(10), 40)
    formula = MixedFormula("y", ("level",), "model")
    p, plain = [], []
    for _ in range(100):
        y = rng.normal(size=400) + rng.normal(size=(20, 10))[item, level]
        frame = pd.DataFrame({"y": y, "level": [f"l{n}" for n in level], "item": item})
        model = linear.fit_mixed_model(frame.assign(model="m"), formula, cluster="item")
        test = linear.wald_test(model, "level")
        assert (test["df1"], test["df2"]) == (9, 11)
        p.append(test["p"])
        plain.append(stats.f.sf(test["F"] * 19 / 11, 9, 19))
    # In all but one of 10,000 such simulations of a test at 5%.
    assert np.mean(np.array(p) <= 0.05) <= stats.binom.ppf(1 - 1e-4, 100, 0.05) / 100
    assert np.mean(np.array(plain) <= 0.05) > 0.2


def test_with_few_clusters_nothing_is_tested():
    frame = between_models(1, models=1, rows=90).assign(item=np.repeat(np.arange(9), 10))
    few = linear.fit_mixed_model(frame, MixedFormula("y", ("one",), "model"), cluster="item")
    assert re.search(r"test: .*\b10 clusters.*item$", few.note)
    assert few.coefficients()["estimate"].notna().all()
    assert few.coefficients()["p"].isna().all()
    assert np.isnan(linear.wald_test(few, "one")["p"])


@pytest.mark.parametrize(("seed", "likelihood"), [(5, 70.464700), (24, 63.898335)])
def test_variances_are_the_most_likely_ones_where_one_is_zero(seed, likelihood):
    """A search by simplexes ended 0.6 and 0.9 below, and so may the other library's."""
    mixed = pytest.importorskip("pystatistics.mixed")
    frame = between_models(seed, models=6, rows=30, sd=0.02)
    ours, group = linear.fit_mixed_model(frame, VARYING), frame["model"].to_numpy(dtype=object)
    crossed = {name: frame[name].to_numpy(dtype=object) + group for name in VARYING.varying}
    with pytest.warns(RuntimeWarning, match="singular"):
        theirs = mixed.lmm(ours.response, ours.fixed, {"model": group, **crossed})
    assert ours.log_likelihood == pytest.approx(likelihood, abs=1e-6)
    assert theirs.log_likelihood <= likelihood + 1e-6
    spread = ours.random_spread["sd"].tolist()[:-1]
    assert min(spread) < 1e-4 and "variance of zero" in ours.note
    if theirs.log_likelihood < likelihood - 1e-6:  # by 0.85, which was seen with AVX2 alone
        assert torch.backends.cpu.get_cpu_capability() != "AVX512"
    else:
        assert spread == pytest.approx([own.std_dev for own in theirs.var_components], abs=1e-4)


ESTIMATES = np.array([0.10, 0.22, 0.35, 0.15, -0.02])
ERRORS = np.array([0.03, 0.05, 0.04, 0.03, 0.06])


def test_five_models_by_hand():
    found = pool(ESTIMATES, ERRORS)
    expected = stats.ttest_1samp(ESTIMATES, 0)
    further = stats.t.ppf(0.975, 4) * ESTIMATES.std(ddof=1) * np.sqrt(6 / 5)
    for names, numbers in (
        (("estimate", "p", "t"), (0.16, expected.pvalue, expected.statistic)),
        (("low", "high"), expected.confidence_interval(0.95)),
        (("excluded_below", "excluded_above"), expected.confidence_interval(0.9)),
        (("predicted_low", "predicted_high"), (0.16 - further, 0.16 + further)),
        (("models", "df", "same_sign"), (5, 4, 4)),
    ):
        assert [found[name] for name in names] == pytest.approx(list(numbers))
    assert found["note"] == ""
    # One model with an error is not pooled.
    one = pool(np.array([0.2, 0.3]), np.array([0.1, np.nan]))
    assert np.isnan([one["estimate"], one["p"], one["predicted_low"]]).all()
    assert re.fullmatch("undefined: .*1 of .*2 models", one["note"])


@pytest.mark.parametrize("value", [0.0, 0.1])
def test_models_that_are_all_the_same_have_no_interval_of_rounding(value):
    found = pool(np.full(3, value), np.full(3, 0.1))
    assert found["estimate"] == pytest.approx(value)
    names = ("low", "p", "excluded_below", "predicted_low")
    assert np.isnan([found[name] for name in names]).all()
    assert re.search(r"interval: .*estimate", found["note"])
