"""A small table, and the texts of a figure."""

import io

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

BARS = pd.DataFrame(
    {
        "rule": ["mt", "mt", "ds", "ds"],
        "model": ["a$1$", "b", "a$1$", "b"],
        "accuracy": [0.2, 0.4, np.nan, 0.8],
        "low": [0.1, 0.3, np.nan, 0.7],
        "high": [0.3, 0.5, np.nan, 0.9],
        "p": [0.2, 0.2, 1e-6, 1e-6],
        "n": [24, 24, 0, 1200],
    }
)
INTERVAL = ("low", "high")


def words(ax: Axes) -> str:
    """All texts of a figure, which has been drawn."""
    figure = ax.get_figure(root=True)
    figure.savefig(io.BytesIO(), format="svg")
    texts = figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return "\n".join(text.get_text() for text in texts)
