"""Linear mixed models against pystatistics, an independent implementation of lme4's likelihood."""

import numpy as np
import pytest

from interp_experiments.logical_forms.mixed.design import MixedFormula
from interp_experiments.logical_forms.mixed.linear import fit_mixed_model
from tests.experiments.logical_forms.mixed.examples import simulated, sleepstudy

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
