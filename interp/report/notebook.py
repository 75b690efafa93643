"""What results show of themselves in a notebook: HTML without scripts."""

import pandas as pd

from interp.report.formatting import ratio_title
from interp.report.heatmap import token_heat_map
from interp.report.html import render


def scores_html(summary: pd.DataFrame) -> str:
    """The accuracies of a model."""
    return render("notebook.html.jinja", title="Accuracy", summary=summary, heat_maps=[])


def attributions_html(
    summary: pd.DataFrame,
    *,
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    shares: pd.DataFrame | None,
    ratio: tuple[str, str] | None,
) -> str:
    """The summary of a model's attributions and, from token shares, the heat maps of a pair.

    Args:
        summary: the attribution table where two segments are compared, else the segment table.
        prompts: the prompts table.
        answers: the answers table.
        shares: what `interp.analysis.segments.token_shares` gives; None where tokens were not kept.
        ratio: the segments that are compared.
    """
    heat_maps = []
    if shares is not None:
        pair = prompts[prompts["pair_id"] == prompts["pair_id"].iloc[0]]
        heat_maps = [
            token_heat_map(shares, prompts=pair, answers=answers, method=method)
            for method in shares["method"].unique()
        ]
    compared = "Scores by segment" if ratio is None else ratio_title(ratio)
    title = f"{compared}: mean and standard deviation over prompts"
    return render("notebook.html.jinja", title=title, summary=summary, heat_maps=heat_maps)
