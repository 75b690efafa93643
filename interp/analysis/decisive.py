"""Do attributions find the segment that decides, where the data say which one it is?

Some systems know it: one rule among several answers the question. Each prompt then is a small
ranking problem, with one right segment among those beside it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from interp.analysis.proportions import proportions

KEY = ["model", "prompt_id", "method", "target"]

COLUMNS = [*KEY, "segment", "tokens", "score", "error"]
"""Columns of the segment_scores table that `finds` reads."""

SUM, MEAN = "sum over tokens", "mean of a token"
"""How the score of a segment is read; published tables report either."""

LENGTH, POSITION = "control: length", "control: position"
"""Scores that know nothing of the model: a segment's tokens, and its place, later ones higher."""


def finds(
    segment_scores: pd.DataFrame, prompts: pd.DataFrame, decisive: tuple[str, str]
) -> pd.DataFrame:
    """How each method ranks the decisive segment of each prompt, and how the controls do.

    One row per model, prompt, method, target and reading. Columns are these five; hit, 1 where the
    decisive segment has the largest size of score (tied with k - 1 others 1 / k); auc, the share of
    the segments beside it that have a smaller one (ties count half), which averages to the area
    under the ROC curve over segments, prompt by prompt; share, its part of the sizes of them all;
    chance, 1 / the number of segments, which hit and share have in a random order. Prompts without
    a segment beside the decisive one are left out, as are scores that are not finite.

    Args:
        segment_scores: rows of the segment_scores table, with `COLUMNS`.
        prompts: the prompts table.
        decisive: the segment that decides, and what the names of those beside it begin with.
    """
    own, beside = decisive
    names = segment_scores["segment"]
    rows = segment_scores[(names == own) | names.str.startswith(beside)]
    rows = rows[rows["error"] == ""].merge(_places(prompts, decisive), on=["prompt_id", "segment"])
    rows = rows.assign(decides=rows["segment"] == own)
    parts = [part for part in _readings(rows, KEY) if len(part)]
    if not parts:
        return pd.DataFrame(columns=[*KEY, "reading", "hit", "auc", "share", "chance"])
    return pd.concat(parts, ignore_index=True)


def decisive_table(found: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """One row per model, target, method, reading and combination of `by`: means over prompts.

    Columns are those, hit and auc with their 95% intervals (low and high), share, chance, prompts.

    Args:
        found: `finds`, with the columns of `by` added.
        by: further columns whose values are counted separately.
    """
    keys = ["model", "target", "method", "reading", *by]
    shares = proportions(found, values=["hit", "auc"], by=keys, cluster=None)
    table = found.groupby(keys, sort=False)[["share", "chance"]].mean()
    for measure in ("hit", "auc"):
        own = shares[shares["measure"] == measure].set_index(keys)
        named = {"share": measure, "low": f"{measure}_low", "high": f"{measure}_high"}
        table = table.join(own[list(named)].rename(columns=named))
    table["prompts"] = found.groupby(keys, sort=False).size()
    order = ["hit", "hit_low", "hit_high", "auc", "auc_low", "auc_high"]
    return table[[*order, "share", "chance", "prompts"]].reset_index()


def _places(prompts: pd.DataFrame, decisive: tuple[str, str]) -> pd.DataFrame:
    """Where each of the segments begins in its prompt."""
    starts = [
        column
        for column in prompts.columns
        if column == f"{decisive[0]}_start"
        or (column.startswith(decisive[1]) and column.endswith("_start"))
    ]
    places = prompts.melt(["prompt_id"], starts, "segment", "place").dropna(subset=["place"])
    return places.assign(segment=places["segment"].str.removesuffix("_start"))


def _readings(rows: pd.DataFrame, key: list[str]) -> Iterator[pd.DataFrame]:
    """The ranking of each prompt by each method and reading, and by the controls."""
    size = rows["score"].abs()
    yield _ranked(rows.assign(size=size), key).assign(reading=SUM)
    yield _ranked(rows.assign(size=size / rows["tokens"]), key).assign(reading=MEAN)
    once = rows.drop_duplicates(["model", "prompt_id", "target", "segment"])
    for name, column in ((LENGTH, "tokens"), (POSITION, "place")):
        controlled = once.assign(method=name, size=once[column].astype(float))
        yield _ranked(controlled, key).assign(reading="")


def _ranked(rows: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """One row per prompt: hit, auc, share and chance of the decisive segment."""
    decisive = rows[rows["decides"]].set_index(key)["size"]
    beside = rows[~rows["decides"]].set_index(key)["size"]
    own = decisive.reindex(beside.index)
    won = pd.DataFrame(
        {
            "below": np.where(beside < own, 1.0, np.where(beside == own, 0.5, 0.0)),
            "above": (beside > own).astype(float),
            "tied": (beside == own).astype(float),
            "size": beside.to_numpy(),
        },
        index=beside.index,
    ).dropna()
    grouped = won[own.notna().to_numpy()].groupby(level=key, sort=False)
    sums, count = grouped.sum(), grouped.size()
    size = decisive.reindex(sums.index)
    total = size + sums["size"]
    return pd.DataFrame(
        {
            "hit": np.where(sums["above"] > 0, 0.0, 1 / (1 + sums["tied"])),
            "auc": sums["below"] / count,
            "share": size / total.where(total > 0),
            "chance": 1 / (1 + count),
        }
    ).reset_index()
