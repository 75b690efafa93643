"""What results show of themselves in a notebook: HTML without scripts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pandas as pd
from markupsafe import Markup

from interp.report.heatmap import token_heat_map
from interp.report.html import render
from interp.statistics.summaries import grouped

Titled = tuple[str, pd.DataFrame]
"""A table under its title."""


@dataclass(frozen=True, slots=True)
class Display:
    """HTML that a notebook shows, without scripts, in the notebook's light or dark theme."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def notebook_html(tables: Sequence[Titled], heat_maps: Sequence[Markup] = ()) -> str:
    """Tables under their titles, and heat maps below them, with the styles that they need."""
    return render("notebook.html.jinja", tables=tables, heat_maps=heat_maps)


def heat_maps(
    shares: pd.DataFrame, *, prompts: pd.DataFrame, answers: pd.DataFrame
) -> Iterator[Markup]:
    """The heat map of some prompts by each model and method.

    Args:
        shares: what `interp.analysis.segments.token_shares` gives.
        prompts: the rows of the prompts table to show, such as the two sides of a pair.
        answers: the answers table.

    Raises:
        UserError: a prompt that has no answer or no scores.
    """
    for group, rows in grouped(shares, ["model", "method"]):
        method = str(group["method"])
        yield token_heat_map(rows, prompts=prompts, answers=answers, method=method)
