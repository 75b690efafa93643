"""Planted causes: whether scores point at the segment that was made to decide."""

import numpy as np
from jaxtyping import Float

from interp.analysis.faithfulness.types import ByPrompt


def planted_hits(shares: ByPrompt, planted: Float[np.ndarray, " prompt"]) -> ByPrompt:
    """Whether the segment of the larger score is the planted one: 1 or 0, equal scores 0.5.

    Args:
        shares: the second segment's part of the |scores| of two (`agreement.share`).
        planted: the probability that the second segment decides, 0 or 1 where it is known; a
            probability between gives the expected hits. NaN where nothing is planted.
    """
    second = (1 + np.sign(shares - 0.5)) / 2
    return np.asarray(second * planted + (1 - second) * (1 - planted))
