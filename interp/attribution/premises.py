"""Token scores summed over each premise, and their ratio (paper, Section 6, Tables 2 and 3)."""

import math

import numpy as np
from numpy.typing import NDArray

from interp.errors import UserError
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row

NO_PREMISE1 = "premise 1 has no score"
"""Error of a prompt whose ratio is undefined, as where a sliding window hides premise 1."""


def premise_row(prompt: TokenizedPrompt, scores: NDArray[np.float32]) -> Row:
    """Sums, token counts and ratios of one prompt under the columns of the attributions table.

    Args:
        prompt: a prompt with the segments premise1 and premise2.
        scores: (token), the shares of the prompt's own tokens, without padding.

    Raises:
        UserError: the prompt lacks a premise.
    """
    row: Row = {"error": ""}
    for name in ("premise1", "premise2"):
        if name not in prompt.segments:
            raise UserError(
                f"prompt {prompt.prompt.id} has no segment {name!r}, which attribution by premise "
                f"needs; it has {', '.join(prompt.segments)}"
            )
        start, end = prompt.segments[name]
        row[f"{name}_sum"] = float(scores[start:end].sum(dtype=np.float64))
        row[f"{name}_tokens"] = end - start
    if not np.isfinite(scores).all():
        return _undefined(row, NOT_FINITE)
    if row["premise1_sum"] == 0:
        return _undefined(row, NO_PREMISE1)
    row["ratio_unnormalized"] = row["premise2_sum"] / row["premise1_sum"]
    row["ratio"] = row["ratio_unnormalized"] * row["premise1_tokens"] / row["premise2_tokens"]
    return row


def _undefined(row: Row, error: str) -> Row:
    finite = {
        name: value
        for name, value in row.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
    return {**finite, "error": error}
