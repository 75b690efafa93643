"""The result of one test on one simulated study."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tested:
    """One test of one study."""

    test: str
    p: float
    family: str = ""
    """The table within which p_holm is corrected; empty if the test is not corrected."""
    p_holm: float = np.nan
    naive: float = np.nan
    """p of a test that treats prompts as independent."""
    low: float = np.nan
    high: float = np.nan
