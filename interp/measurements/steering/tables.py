"""Mean effects of steering over prompts, beside those of random directions."""

from collections.abc import Mapping

import pandas as pd

from interp.statistics.clusters import (
    LEAST_MEAN_P,
    NO_SPREAD,
    RESAMPLES,
    ClusterMean,
    cluster_mean,
)
from interp.statistics.decisions import LEAST, holm
from interp.statistics.resampling import least_sign_p
from interp.statistics.summaries import grouped

DIRECTION, PLACEBO, THIRD, BEYOND = "direction", "placebo", "third", "beyond"
"""Values of `source`, and the name of the effect of the direction minus that of the placebo."""

FAMILY = ["model", "side", "direction", "change", "dose"]
"""Columns whose values the tests that are corrected together share."""

CELL = [*FAMILY, "role", "layer"]
"""Columns of an effect that is averaged over prompts; the layer is NaN for a band."""

_EFFECTS = ("effect", PLACEBO, BEYOND, THIRD)


def steering_table(
    effects: pd.DataFrame, prompts: pd.DataFrame, clusters: Mapping[str, object]
) -> pd.DataFrame:
    """One row per model, side, direction, change, dose, role and layer.

    Columns are those of `CELL`; effect, placebo, beyond and third, in logits, each with _low and
    _high: means over prompts, with 95% intervals over clusters (`cluster_mean`). placebo: of random
    directions, averaged over draws; beyond: effect minus placebo, prompt by prompt; third: of the
    prompt's own word and a third one. p: two-sided, for a mean of beyond of 0; p_holm: corrected
    over the roles and layers of a model, side, direction, change and dose; p_holm_least: the
    smallest p_holm that so many tests allow, whatever the effects. turned, placebo_turned:
    shares of prompts (and draws) whose preferred answer changes; prompts; clusters; note: why there
    is no interval.

    Args:
        effects: rows of the steering_effects table.
        prompts: the prompts table.
        clusters: the cluster of each pair, by pair_id.
    """
    about = prompts[["prompt_id", "side", "pair_id"]]
    rows = effects.dropna(subset="effect").merge(about, on="prompt_id")
    keys = [*CELL, "prompt_id", "pair_id", "source"]
    means = rows.astype({"turned": float}).groupby(keys, sort=False, dropna=False)
    by_prompt = pd.DataFrame(means[["effect", "turned"]].mean().unstack("source"))
    found = [
        {**cell, **_numbers(own, clusters)}
        for cell, own in grouped(_flat(by_prompt).reset_index(), CELL)
    ]
    columns = [f"{name}{end}" for name in _EFFECTS for end in ("", "_low", "_high")]
    counts = ["p", "turned", "placebo_turned", LEAST, "prompts", "clusters", "note"]
    table = pd.DataFrame(found, columns=[*CELL, *columns, *counts])
    return _corrected(table)


def _flat(by_prompt: pd.DataFrame) -> pd.DataFrame:
    """One column for each effect and share of turned answers, NaN where a source is missing."""
    names = {"effect": "", "turned": "_turned"}
    flat = by_prompt.set_axis(
        by_prompt.columns.map(lambda column: f"{column[1]}{names[column[0]]}"), axis=1
    )
    known = [f"{source}{end}" for source in (DIRECTION, PLACEBO, THIRD) for end in names.values()]
    flat = flat.reindex(columns=known)
    flat[BEYOND] = flat[DIRECTION] - flat[PLACEBO]
    return flat.rename(columns={DIRECTION: "effect"})


def _numbers(rows: pd.DataFrame, clusters: Mapping[str, object]) -> dict[str, object]:
    trials = rows.assign(cluster=rows["pair_id"].map(clusters), weight=1.0)
    found: dict[str, object] = {}
    for name in _EFFECTS:
        mean = cluster_mean(trials, value=name, cluster="cluster", weight="weight")
        found |= {name: mean.mean, f"{name}_low": mean.low, f"{name}_high": mean.high}
        if name == BEYOND:
            found |= {"p": mean.p, LEAST: _least(mean)}
            found |= {"clusters": mean.clusters, "note": mean.note}
    return {
        **found,
        "turned": float(rows["direction_turned"].mean()),
        "placebo_turned": float(rows["placebo_turned"].mean()),
        "prompts": len(rows),
    }


def _least(mean: ClusterMean) -> float:
    """The smallest p that the test of a mean can give."""
    return least_sign_p(mean.clusters, RESAMPLES) if mean.note == NO_SPREAD else LEAST_MEAN_P


def _corrected(table: pd.DataFrame) -> pd.DataFrame:
    families = [rows for _, rows in grouped(table, FAMILY)] or [table]
    done = [holm(rows, family="cells").drop(columns=["family", "family_size"]) for rows in families]
    return pd.concat(done).sort_index()


def largest(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """For each group, the row whose effect beyond the placebo is largest in size."""
    rows = table.dropna(subset=BEYOND)
    size = rows[BEYOND].abs()
    places = size.groupby([rows[name] for name in by], sort=False).idxmax()
    return table.loc[places].reset_index(drop=True)


def as_lines(rows: pd.DataFrame) -> pd.DataFrame:
    """The effects, placebos and third words of one curve, one row per point and line."""
    change = str(rows["change"].iloc[0]) if len(rows) else ""
    names = {
        "effect": change,
        PLACEBO: "random direction, same norm",
        THIRD: f"{change} with a third word",
    }
    parts = [
        rows.assign(
            line=line, logits=rows[name], low=rows[f"{name}_low"], high=rows[f"{name}_high"]
        )
        for name, line in names.items()
        if rows[name].notna().any()
    ]
    return pd.concat(parts, ignore_index=True)
