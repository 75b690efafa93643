"""Linear probes of the residual stream."""

import pandas as pd

from interp_experiments.rulebreakers.results import Results
from interp_probes.linear import linear_probes


def residual_probes(results: Results) -> pd.DataFrame:
    """How well a linear probe detects rulebreakers in the residual stream, layer by layer."""
    return linear_probes(results.residuals, results.probed, results.probed_answers)
