"""Mixed models against pystatistics, an independent implementation of lme4's likelihoods.

pystatistics stops its search earlier than we do: its coefficients differ by up to 3e-4, where the
likelihood is flat, and its likelihood is never higher than ours.
"""

import numpy as np
import pytest
from scipy.special import expit

from interp.statistics.mixed.design import MixedFormula
from interp.statistics.mixed.laplace import fit_laplace
from interp.statistics.mixed.linear import fit_mixed_model
from tests.statistics.mixed.examples import cbpp, crossed, simulated, sleepstudy

mixed = pytest.importorskip("pystatistics.mixed")


def unbalanced():
    """800 rows drawn from the model: 30 levels crossed with 8, of different sizes."""
    rng = np.random.default_rng(0)
    shares = [rng.dirichlet(np.full(size, 3.0)) for size in (30, 8)]
    levels = np.column_stack([rng.choice(len(share), 800, p=share) for share in shares])
    design = np.column_stack([np.ones(800), rng.normal(size=(800, 2))])
    log_odds = design @ [0.3, 0.8, -0.5] + rng.normal(0, 0.9, 30)[levels[:, 0]]
    log_odds += rng.normal(0, 0.5, 8)[levels[:, 1]]
    return design, (rng.random(800) < expit(log_odds)).astype(float), levels


@pytest.mark.parametrize("data", [cbpp, crossed, unbalanced])
def test_logistic_models_agree(data):
    design, outcomes, levels = data()
    ours = fit_laplace(design, outcomes, levels)
    groups = {f"group {place}": column for place, column in enumerate(levels.T)}
    theirs = mixed.glmm(outcomes, design, groups, family="binomial")
    assert (ours.converged, theirs.converged) == (True, True)
    assert ours.coefficients == pytest.approx(theirs.coefficients, abs=3e-4)
    assert ours.sds == pytest.approx([part.std_dev for part in theirs.var_components], rel=5e-4)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-5)
    assert ours.log_likelihood > theirs.log_likelihood - 1e-8
    # Theirs take the spread of the random effects as known, ours do not.
    assert ours.standard_errors == pytest.approx(theirs.standard_errors, rel=0.03)


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
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-6)
    assert ours.random_spread()["sd"].tolist()[:-1] == pytest.approx(spread, rel=5e-5)
    order = dict.fromkeys(frame[formula.group])
    modes = dict(zip(sorted(order), theirs.ranef[formula.group], strict=True))
    expected = np.array([modes[group] for group in order])
    assert ours.fit.random_effects == pytest.approx(expected, abs=2e-3)
