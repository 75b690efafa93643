"""Linear mixed models against pystatistics, an independent implementation of lme4's likelihood."""

import numpy as np
import pytest

from interp_experiments.logical_forms.mixed.design import MixedFormula
from interp_experiments.logical_forms.mixed.linear import fit_mixed_model
from tests.experiments.logical_forms.mixed.examples import between_models, simulated, sleepstudy

mixed = pytest.importorskip("pystatistics.mixed")


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize(
    ("data", "formula"),
    [
        (sleepstudy, MixedFormula("reaction", ("days",), "subject", "days")),
        (sleepstudy, MixedFormula("reaction", ("days",), "subject")),
        (simulated, MixedFormula("y", ("one", "two", "x"), "model", "x")),
    ],
)
def test_linear_models_agree(data, formula, reml):
    frame = data(0, groups=12, rows=40) if data is simulated else data()
    ours = fit_mixed_model(frame, formula, reml=reml)
    slopes = [] if formula.slope is None else [formula.slope]
    theirs = mixed.lmm(
        ours.design.response,
        ours.design.fixed,
        {formula.group: frame[formula.group].to_numpy()},
        random_effects={formula.group: ["1", *slopes]},
        random_data={name: frame[name].to_numpy(dtype=float) for name in slopes},
        reml=reml,
    )
    errors = np.sqrt(np.diag(ours.fit.covariance))
    spread = [part.std_dev for part in theirs.var_components]
    assert theirs.converged
    assert ours.fit.coefficients == pytest.approx(theirs.coefficients, abs=1e-6)
    assert errors == pytest.approx(theirs.standard_errors, rel=5e-5)
    assert ours.fit.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-6)
    assert ours.fit.random_spread["sd"].tolist()[:-1] == pytest.approx(spread, rel=5e-5)
    order = dict.fromkeys(frame[formula.group])
    modes = dict(zip(sorted(order), theirs.ranef[formula.group], strict=True))
    expected = np.array([modes[group] for group in order])
    assert ours.fit.random_effects.iloc[:, 1:].to_numpy() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("seed", [5, 24])
def test_variances_are_the_most_likely_ones_where_one_is_zero(seed):
    """A search by simplexes ended 0.6 and 0.9 below."""
    frame = between_models(seed, models=6, rows=30, sd=0.02)
    formula = MixedFormula("y", ("one", "two"), "model", varying=("one", "two"))
    ours, group = fit_mixed_model(frame, formula), frame["model"].to_numpy(dtype=object)
    crossed = {name: frame[name].to_numpy(dtype=object) + group for name in formula.varying}
    with pytest.warns(RuntimeWarning, match="singular"):
        theirs = mixed.lmm(ours.design.response, ours.design.fixed, {"model": group, **crossed})
    assert ours.fit.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-6)
    spread = [part.std_dev for part in theirs.var_components]
    assert ours.fit.random_spread["sd"].tolist()[:-1] == pytest.approx(spread, abs=1e-4)
    assert min(spread) < 1e-4 and "variance of zero" in ours.note
