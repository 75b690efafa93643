"""Split conformal prediction: a limit that a new score exceeds with a known probability.

Scores of units that are exchangeable, such as units drawn at random from those of a run, rank in
every order with the same probability; so the limit needs no assumption on how scores are
distributed (Vovk, Gammerman and Shafer 2005; Lei et al. 2018, section 2.2).
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import betabinom

from interp.analysis.intervals import LEVEL


def conformal_limit(scores: Float[np.ndarray, " unit"], level: float) -> float:
    """The score that one more unit exceeds with a probability of at most 1 - level.

    It is the ceil((n + 1) level)-th smallest of the n scores; infinite if there are too few.
    """
    rank = _rank(len(scores), level)
    return math.inf if rank > len(scores) else float(np.sort(scores)[rank - 1])


def fewest(level: float) -> int:
    """How many scores a finite limit needs: level / (1 - level), rounded up."""
    return math.ceil(_exact(level / (1 - level)))


def covered_low(scored: int, others: int, level: float) -> float:
    """The share of the other units that the limit holds for, at least, in 95% of all draws.

    `level` is what the limit holds for on average over draws. Of one draw the number of units
    below it has a beta-binomial distribution, whatever that of the scores (Wilks 1941); where
    scores tie, it is more. NaN where there is no limit, or no other unit.
    """
    rank = _rank(scored, level)
    if rank > scored or not others:
        return math.nan
    return float(betabinom.ppf(1 - LEVEL, others, rank, scored + 1 - rank)) / others


def _rank(scored: int, level: float) -> int:
    return math.ceil(_exact((scored + 1) * level))


def _exact(product: float) -> float:
    """The product without the error of binary fractions, which would be rounded up to one more."""
    return round(product, 9)
