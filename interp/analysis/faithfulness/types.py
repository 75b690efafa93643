"""Shapes of what metrics take and give."""

from jaxtyping import Float
from numpy import ndarray

Scores = Float[ndarray, "*methods prompt segment"]
"""Scores of the segments of some prompts, by any number of methods."""

Effects = Float[ndarray, "prompt segment"]
"""What each segment does, in logits: its Shapley value, or its leave-one-out effect."""

Values = Float[ndarray, "prompt coalition"]
"""v(S) in logits; bit i of a coalition's number says that segment i is kept."""

ByPrompt = Float[ndarray, "*methods prompt"]
"""A metric of each prompt; NaN where it is undefined."""

LEAST_EFFECT = 0.1
"""Effects below this, in nats, are too small to be told apart or to be divided by."""
