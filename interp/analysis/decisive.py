"""Do attributions find the segments that decide, where the data say which they are?

Some systems know it: one rule among several answers the question, or a few facts and rules prove
the statement. Each prompt then is a small ranking problem: deciding segments among others.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from interp.analysis.proportions import proportions
from interp.prompts.prompt_set import Decisive

KEY = ["model", "prompt_id", "method", "target"]

COLUMNS = [*KEY, "segment", "tokens", "score", "error"]
"""Columns of the segment_scores table that `finds` reads."""

SUM, MEAN = "sum over tokens", "mean of a token"
"""How the score of a segment is read; published tables report either."""

LENGTH, POSITION = "control: length", "control: position"
"""Scores that know nothing of the model: a segment's tokens, and its place, later ones higher."""


def finds(segment_scores: pd.DataFrame, prompts: pd.DataFrame, decisive: Decisive) -> pd.DataFrame:
    """How each method ranks the deciding segments of each prompt, and how the controls do.

    One row per model, prompt, method, target and reading. Columns are these five; hit, 1 where a
    deciding segment has the largest size of score, 0 where another has, and the share of deciding
    ones among those that tie for it; auc, the area under the ROC curve over the prompt's segments:
    the share of pairs of a deciding segment and another in which the first has the larger size
    (ties count half); share, the part of all sizes that deciding segments have; chance, their part
    of the number of segments, which hit has in a random order. Prompts in which no segment decides,
    or all do, are left out, as are scores that are not finite.

    Args:
        segment_scores: rows of the segment_scores table, with `COLUMNS`.
        prompts: the prompts table.
        decisive: where it says which segments decide, and among which.
    """
    names = segment_scores["segment"]
    rows = segment_scores[names.str.startswith(decisive.among) & (segment_scores["error"] == "")]
    rows = rows.merge(_places(prompts, decisive), on=["prompt_id", "segment"])
    deciding = prompts[decisive.factor].astype(str).str.split().explode()
    known = pd.MultiIndex.from_arrays([prompts["prompt_id"].reindex(deciding.index), deciding])
    rows["decides"] = pd.MultiIndex.from_frame(rows[["prompt_id", "segment"]]).isin(known)
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


def _places(prompts: pd.DataFrame, decisive: Decisive) -> pd.DataFrame:
    """Where each of the segments begins in its prompt."""
    starts = [
        column
        for column in prompts.columns
        if column.startswith(decisive.among) and column.endswith("_start")
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
    """One row per prompt: hit, auc, share and chance of the deciding segments."""
    sizes = rows.groupby(key)["size"]
    rows = rows[sizes.transform("count") == sizes.transform("size")]  # whole prompts
    own, beside = rows[rows["decides"]], rows[~rows["decides"]]
    pairs = own[[*key, "size"]].merge(beside[[*key, "size"]], on=key, suffixes=("_own", "_beside"))
    larger = (pairs["size_own"] > pairs["size_beside"]).astype(float)
    won = larger + 0.5 * (pairs["size_own"] == pairs["size_beside"])
    auc = won.groupby([pairs[name] for name in key], sort=False).mean()
    largest = rows[rows["size"] == rows.groupby(key)["size"].transform("max")]
    hit, chance = (part.groupby(key, sort=False)["decides"].mean() for part in (largest, rows))
    deciding, total = (part.groupby(key, sort=False)["size"].sum() for part in (own, rows))
    share = deciding / total.where(total > 0)
    columns = {"hit": hit, "auc": auc, "share": share, "chance": chance}
    # Prompts with segments of one kind alone have no pairs.
    return pd.concat(columns, axis=1, join="inner").reset_index()
