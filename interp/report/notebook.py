"""What results show of themselves in a notebook: HTML without scripts."""

import pandas as pd

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
    token_scores: pd.DataFrame | None,
) -> str:
    """The attribution table of a model and, from token scores, the heat maps of its first pair."""
    heat_maps = []
    if token_scores is not None:
        pair = prompts[prompts["pair_id"] == prompts["pair_id"].iloc[0]]
        heat_maps = [
            token_heat_map(token_scores, prompts=pair, answers=answers, method=method)
            for method in token_scores["method"].unique()
        ]
    title = "Premise 2 over premise 1: mean and standard deviation over prompts"
    return render("notebook.html.jinja", title=title, summary=summary, heat_maps=heat_maps)
