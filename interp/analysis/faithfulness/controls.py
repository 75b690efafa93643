"""Controls: scores of which it is known how faithful they are, beside the methods.

`oracle` scores each segment by its Shapley value, `reversed` the other way round, `random` is what
a random order is worth (in closed form, `metrics.Metric.chance`), `length` scores a segment by its
number of tokens, and `position` by its place in the prompt, later ones higher.
"""

import numpy as np
from jaxtyping import Float

from interp.analysis.faithfulness.types import Effects
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED

CONTROLS = (ORACLE, REVERSED, RANDOM, LENGTH, POSITION)

Segments = Float[np.ndarray, "prompt segment"]


def sizes(
    effects: Effects, tokens: Segments, places: Segments
) -> Float[np.ndarray, "control prompt segment"]:
    """How strong each control says that a segment is, in the order of `CONTROLS`."""
    strength = np.abs(effects)
    mirrored = strength.max(-1, keepdims=True) + strength.min(-1, keepdims=True) - strength
    return np.stack([strength, mirrored, np.ones_like(strength), tokens, places])


def signed(
    effects: Effects, tokens: Segments, places: Segments
) -> Float[np.ndarray, "control prompt segment"]:
    """The scores of each control, in the order of `CONTROLS`."""
    return np.stack([effects, -effects, np.ones_like(effects), tokens, places])
