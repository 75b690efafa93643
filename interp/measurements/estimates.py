"""The estimates of patching and of edges, with their options; this module does not import torch."""

from typing import Annotated, get_args

from pydantic import Field

from interp.choices import INTEGRATION_STEPS, EdgeMethod, PatchEstimate
from interp.options import Options
from interp.variants import NoOptions, Variants


class Points(Options):
    """The option of estimates that average over points between base and source."""

    steps: Annotated[int, Field(ge=1, le=1000)] = INTEGRATION_STEPS
    """number of points: the midpoints of equal intervals"""


def _options_of(name: str) -> type[Options]:
    return Points if name in ("integrated", "activations") else NoOptions


PATCHING = Variants("estimate", lambda: get_args(PatchEstimate), _options_of)
"""The estimates of patching."""

EDGES = Variants("method", lambda: get_args(EdgeMethod), _options_of)
"""The methods of edges."""
