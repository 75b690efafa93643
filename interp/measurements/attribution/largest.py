"""Which segment has the largest effect on the answer, or the largest score.

Segments are compared within a prompt, by the absolute Shapley value of their exchange or by the
absolute sum of their tokens' scores; a segment that a prompt lacks cannot be its largest. Text
outside all segments is not compared, since donors do not replace it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from interp.attribution.games import shapley_values
from interp.choices import TEMPLATE
from interp.console import counted
from interp.errors import one_line
from interp.measurements.attribution.segments import with_whole_thoughts
from interp.report.formatting import segment_label
from interp.report.glance import with_interval
from interp.report.page import TableItem
from interp.results.result import Result
from interp.statistics.proportions import proportions
from interp.statistics.summaries import UPPER

VALUE_COLUMNS = ["model", "prompt_id", "donor_kind", "segments", "coalition", "values"]
"""Columns of the coalition_values table that `largest_effects` uses."""

SCORE_COLUMNS = ["model", "prompt_id", "method", "target", "segment", "score", "tokens", "share"]
"""Columns of the segment_scores table that `largest_scores` uses."""

LARGEST, TIE, NOISE, SIDES = "largest", "tie", "within the donors' spread", "sides differ"
"""Outcomes of a prompt or pair: one segment is the largest; several are, or none has any effect;
the lead of the largest is not clear of the spread over donors; or each side has its own."""

EQUAL = 1e-5
"""Sizes that differ by less than this share of the larger one are equal: fp32 rounds them."""


def largest_effects(coalition_values: pd.DataFrame) -> pd.DataFrame:
    """The segment with the largest effect in each prompt, for each kind of donor.

    Columns are model, donor_kind, prompt_id, segment (empty unless one segment is the largest),
    outcome (`LARGEST`, `TIE` or `NOISE`) and alone (whether no other segment has any effect). With
    two or more donors, the largest must lead each other segment clearly: the differences between
    their effects, each counted in the direction of its mean over donors, have a mean above zero by
    Student's t for paired samples (two-sided, 95%). Where donors replace a single segment, there is
    nothing to compare, and no row.
    """
    keys = ["model", "donor_kind", "prompt_id"]
    several = coalition_values[coalition_values["segments"].map(len) > 1]
    rows = [
        dict(zip(keys, key, strict=True)) | _by_donors(effects.sort_values("coalition"))
        for key, effects in several.groupby(keys, sort=False)
    ]
    return pd.DataFrame(rows, columns=[*keys, "segment", "outcome", "alone"])


def largest_scores(segment_scores: pd.DataFrame) -> pd.DataFrame:
    """The segment with the largest absolute score in each prompt, by each method.

    Columns are model, method, target, prompt_id, segment, outcome (`LARGEST` or `TIE`) and alone.
    The sentences of a thought count as one segment.
    """
    keys = ["model", "method", "target", "prompt_id"]
    named = segment_scores[segment_scores["segment"] != TEMPLATE]
    rows = with_whole_thoughts(named).dropna(subset="score")
    rows["size"] = rows["score"].abs()
    rows["close"] = rows["size"] >= (1 - EQUAL) * rows.groupby(keys)["size"].transform("max")
    rows["any"] = rows["size"] > 0
    each = rows.groupby(keys, sort=False)
    largest = rows.loc[each["size"].idxmax(), [*keys, "segment", "size"]].set_index(keys)
    counts = each[["close", "any"]].sum()
    first = (counts["close"] == 1) & (largest["size"] > 0)
    tops = largest[[]].assign(segment=largest["segment"].where(first, ""))
    tops = tops.assign(outcome=np.where(first, LARGEST, TIE), alone=first & (counts["any"] == 1))
    return tops.reset_index()


def _by_donors(rows: pd.DataFrame) -> dict[str, object]:
    """The segment with the largest mean effect, if its lead is clear of the spread over donors."""
    effects = shapley_values(np.stack(list(rows["values"])).astype(float).T)
    means, donors = effects.mean(0), len(effects)
    sizes = np.abs(means)
    top = int(sizes.argmax())
    unclear = {"segment": "", "alone": False}
    if not sizes[top] > 0 or (sizes >= (1 - EQUAL) * sizes[top]).sum() > 1:
        return {**unclear, "outcome": TIE}
    signed = effects * np.sign(means)
    leads = signed[:, [top]] - np.delete(signed, top, axis=1)
    if donors > 1:
        errors = leads.std(axis=0, ddof=1) / math.sqrt(donors)
        if (leads.mean(0) <= float(stdtrit(donors - 1, UPPER)) * errors).any():
            return {**unclear, "outcome": NOISE}
    segment = str(rows["segments"].iloc[0][top])
    return {"segment": segment, "outcome": LARGEST, "alone": bool((effects != 0).any(0).sum() == 1)}


def largest_of(
    result: Result,
    table: str,
    columns: Sequence[str],
    find: Callable[[pd.DataFrame], pd.DataFrame],
    *,
    by: Sequence[str],
) -> pd.DataFrame:
    """`largest_table` of a measured table, whose columns `find` reads part by part."""
    largest = pd.concat(map(find, result.measured.parts(table, columns)), ignore_index=True)
    return largest_table(largest, result.prompts, by=by, cluster=result.cluster or "pair_id")


def largest_table(
    largest: pd.DataFrame, prompts: pd.DataFrame, *, by: Sequence[str], cluster: str
) -> pd.DataFrame:
    """For how many pairs and prompts each segment is the largest, with the other outcomes.

    One row per combination of `by`, outcome and segment. Columns are those of `by`, segment (empty
    for other outcomes), outcome; pairs, share (of all counted pairs), low and high (the 95%
    interval of the share, over clusters), of_pairs; prompts, of_prompts; alone, the prompts in
    which no other segment has any effect or score; clusters and note. Each pair counts once,
    whatever its weight. `largest` is from `largest_effects` or `largest_scores`.
    """
    rows = largest.merge(prompts[[*{"prompt_id", "pair_id", cluster}]], on="prompt_id")
    by, names = list(by), ["segment", "outcome"]
    columns = ["pairs", "share", "low", "high", "of_pairs", "prompts", "of_prompts"]
    columns = [*by, *names, *columns, "alone", "clusters", "note"]
    if rows.empty:
        return pd.DataFrame(columns=columns)
    pairs = _by_pair(rows, prompts.groupby("pair_id").size(), by, cluster)
    each = rows.groupby([*by, *names], sort=False)
    counts = each.agg(prompts=("prompt_id", "size"), alone=("alone", "sum"))
    of_pairs = pairs.groupby([*by, *names], sort=False).size().rename("pairs")
    counts = counts.join(of_pairs, how="outer").fillna(0).astype(int)
    groups = rows.groupby(by, sort=False).size().to_frame("of_prompts")
    groups = groups.assign(of_pairs=pairs.groupby(by).size()).fillna(0).astype(int)
    groups["group"] = range(len(groups))
    cells = counts.index.to_frame(index=False)[names].drop_duplicates(ignore_index=True)
    cells = cells.rename(index=str)  # `proportions` takes and gives names
    hits: dict[Any, pd.Series] = {
        place: (pairs[names] == cell).all(axis=1) for place, cell in cells.iterrows()
    }
    shares = proportions(pairs.join(pd.DataFrame(hits)), values=list(hits), by=by, cluster=cluster)
    shares = shares.join(cells, on="measure").set_index([*by, *names])
    shares = shares[["share", "low", "high", "clusters", "note"]]
    table = counts.join(groups, on=by).join(shares).fillna({"note": ""}).reset_index()
    table["place"] = table["outcome"].map((LARGEST, SIDES, NOISE, TIE).index)
    order = ["group", "place", "pairs", "prompts"]
    table = table.sort_values(order, ascending=[True, True, False, False], kind="stable")
    return table[columns].reset_index(drop=True)


def _by_pair(rows: pd.DataFrame, sides: pd.Series, by: Sequence[str], cluster: str) -> pd.DataFrame:
    """One row per pair without a failed prompt: the segment of all its sides, or the outcome."""
    sizes = rows.groupby([*by, "pair_id"], sort=False)["prompt_id"].transform("size")
    rows = rows[sizes == rows["pair_id"].map(sides)]
    pairs = rows.groupby([*by, "pair_id"], sort=False).agg(
        segment=("segment", "first"),
        different=("segment", "nunique"),
        # `LARGEST` only if all sides have it.
        outcome=("outcome", lambda outcomes: min(outcomes, key=(TIE, NOISE, LARGEST).index)),
        **{cluster: (cluster, "first")} if cluster != "pair_id" else {},
    )
    pairs = pairs.reset_index()
    apart = (pairs["outcome"] == LARGEST) & (pairs["different"] > 1)
    pairs["outcome"] = pairs["outcome"].mask(apart, SIDES)
    pairs["segment"] = pairs["segment"].where(pairs["outcome"] == LARGEST, "")
    return pairs


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    names = table["segment"].map(segment_label).where(table["outcome"] == LARGEST, table["outcome"])
    ends = table[["share", "low", "high"]].itertuples(index=False)
    text = table.loc[:, :"segment"].drop(columns="segment")
    text = text.assign(largest=names, pairs="", share="", prompts="")
    for unit in ("pairs", "prompts"):
        counts = table[[unit, f"of_{unit}"]].itertuples(index=False)
        text[unit] = [f"{count:,} of {of:,}" for count, of in counts]
    return text.assign(share=[with_interval(*map(float, row)) for row in ends])


def sentence(rows: pd.DataFrame, who: str, what: str, prompts: pd.DataFrame) -> str:
    """The segment that is the largest in most pairs, in a sentence of at most 25 words.

    `rows` are those of one model, and of one method or kind of donor; `who` names them, and `what`
    is what is largest, such as "effect".
    """
    unit = "pair" if prompts["pair_id"].duplicated().any() else "prompt"
    of = int(rows["of_pairs"].iloc[0])
    with_pairs = rows[rows["pairs"] > 0]
    first, others = (with_pairs[with_pairs["outcome"] == name] for name in (LARGEST, SIDES))
    if first.empty:
        return f"{who}: no segment clearly has the largest {what} in any {unit}; n = {of:,}."
    row = first.iloc[0]
    name = one_line(segment_label(str(row["segment"])), 30)
    share = with_interval(*map(float, row[["share", "low", "high"]]))
    apart = f"; in {others['pairs'].sum():,}, the sides differ" if len(others) else ""
    count = f"{row['pairs']:,} of {counted(of, unit)}"
    if row["alone"] == row["prompts"]:
        return f"{who}: {name} alone has any {what} in {count}, {share}{apart}."
    return f"{who}: {name} has the largest {what} in {count}, {share}{apart}."


def item(table: pd.DataFrame, said: Sequence[str], title: str, note: str) -> TableItem:
    """The table of `largest_table`, with counts and shares as text.

    Of the sentences that are `said` about it, the terminal prints the first ones above the table.
    """
    text, alone = _shown(table), int(table["alone"].sum())
    note = f"{note} {_NOTE}"
    if alone:
        units = "prompt and method" if "method" in table else "prompt and kind of donor"
        note += f" In {alone:,} cases ({units}), no other segment has any effect or score."
    titled = " ".join([title, *said[:3]])
    return TableItem("largest_table", title, table, note, [(titled, text)], text)


_NOTE = (
    "A pair counts for a segment if the segment is the largest on every side; pairs with a failed "
    "prompt are left out, and each pair counts once, whatever its weight. share: of the pairs, "
    "with a 95% interval over clusters."
)
