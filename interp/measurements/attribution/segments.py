"""Tables of segments: their scores, and the ranks of the deciding segments.

Some systems record which segments decide the answer: the one rule that answers the question, or the
few facts and rules that prove the statement. The tables show whether attributions rank these
segments above the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from interp.estimates.compute import estimate
from interp.estimates.declared import Largest, Plain, Share, Table, deviation
from interp.prompts.prompt_set import Decisive
from interp.prompts.thought import PART, is_part
from interp.tables import TEXT, column

KEY = ["model", "prompt_id", "method", "target"]
"""Columns that identify the scores of one prompt by one method."""

RATIO_COLUMNS = [*KEY, "segment", "tokens", "share", "error"]
"""Columns of the segment_scores table that `segment_ratios` uses."""

TABLE_COLUMNS = [*KEY, "segment", "tokens", "score", "share"]
"""Columns of the segment_scores table that `segment_trials` uses."""


def segment_ratios(segment_scores: pd.DataFrame, ratio: tuple[str, str]) -> pd.DataFrame:
    """The ratio of two segments' shares, one row per model, prompt, method and target.

    Columns are those of `KEY`; ratio, from the mean share per token (Chan et al., Table 2);
    ratio_unnormalized, from the shares (Table 3); and error, the reason why the ratios are missing.
    """
    table = segment_scores[KEY].drop_duplicates()
    for name, segment in zip(("above", "below"), ratio, strict=True):
        rows = segment_scores.loc[segment_scores["segment"] == segment, RATIO_COLUMNS]
        columns = {column: f"{column}_{name}" for column in ("tokens", "share", "error")}
        rows = rows.drop(columns="segment").rename(columns=columns)
        table = table.merge(rows, on=KEY, how="left", validate="one_to_one")
    below = table["share_below"]
    plain = table["share_above"] / below.where(below > 0)
    normalized = plain * table["tokens_below"] / table["tokens_above"]
    errors = table["error_below"].fillna("").astype(object)
    errors = errors.mask((errors == "") & ~(below > 0), f"{ratio[1]} has no score")
    for name, segment in (("below", ratio[1]), ("above", ratio[0])):
        absent = table[f"error_{name}"].isna()
        errors = errors.mask(absent, f"the prompt has no segment {segment}")
    return table[KEY].assign(ratio=normalized, ratio_unnormalized=plain, error=errors)


SEGMENTS = Table(
    name="segment_table",
    title="Scores by segment: means over prompts",
    text="Each prompt with a score counts once, regardless of its weight.",
    by=["model", "method", "target", "segment"],
    measured="segment_scores",
    numbers=[
        Share("share", "mean share in the prompt's absolute scores", "share", continuous=True),
        Plain("tokens", "mean number of tokens", "tokens", why="share", aside=True),
        Plain(
            *("score", "mean of summed scores", "method's unit", "that of the method"),
            why="share",
            aside=True,
        ),
        *(
            deviation(f"{name}_sd", "sd over prompts", unit, of=name, why="share")
            for name, unit in (("score", "method's unit"), ("share", "share"))
        ),
    ],
    order=["prompts", "tokens", "score", "score_sd", "share", "share_sd"],
    trials="prompts",
    split=["method", "target"],
    headline=Largest(
        "share",
        "share of {segment} by {method}",
        within=["segment", "method"],
        first="method",
        by_size="share",
    ),
)


def segment_trials(
    segment_scores: pd.DataFrame, prompts: pd.DataFrame, cluster: str
) -> pd.DataFrame:
    """The trials of `SEGMENTS`; a failed prompt, which has no score, is no trial."""
    about = prompts.assign(cluster=pd.factorize(prompts[cluster])[0])
    about = about[["prompt_id", "pair_id", "cluster"]]
    rows = segment_scores.merge(about, on="prompt_id")
    return rows.assign(cluster=rows["cluster"].where(rows["score"].notna()))


def with_whole_thoughts(segment_scores: pd.DataFrame) -> pd.DataFrame:
    """The scores with one segment, `thought`, in place of the sentences of each thought."""
    parts = segment_scores["segment"].map(is_part)
    numbers = ["tokens", "score", "share"]
    joined = segment_scores.assign(segment=segment_scores["segment"].mask(parts, PART))
    # Without min_count, a thought whose scores are missing would have a score of zero.
    return joined.groupby([*KEY, "segment"], sort=False)[numbers].sum(min_count=1).reset_index()


def token_shares(token_scores: pd.DataFrame, tokens: pd.DataFrame) -> pd.DataFrame:
    """The scores of whole prompts' tokens, with text, segment and share of absolute scores."""
    sizes = token_scores["score"].abs()
    totals = sizes.groupby([token_scores[name] for name in KEY], sort=False).transform("sum")
    place = ["model", "prompt_id", "position"]
    return token_scores.assign(share=sizes / totals).merge(
        tokens[[*place, "token", "segment"]], on=place, validate="many_to_one"
    )


DECISIVE_COLUMNS = [*KEY, "segment", "tokens", "score", "error"]
"""Columns of the segment_scores table that `finds` uses."""

SUM, MEAN = "sum over tokens", "mean per token"
"""Ways to summarize a segment's scores; both occur in published tables."""

LENGTH, POSITION = "control: length", "control: position"
"""Scores that do not depend on the model: a segment's length in tokens, and its position."""


def finds(segment_scores: pd.DataFrame, prompts: pd.DataFrame, decisive: Decisive) -> pd.DataFrame:
    """The trials of `DECISIVE`: how methods and controls rank each prompt's deciding segments.

    One row per model, prompt, method, target and reading, which is `SUM` or `MEAN` (empty for
    controls). hit: in a tie, the share of deciding segments among the tied ones; auc: the share of
    pairs of a deciding and another segment in which the first has the larger absolute score (ties
    count half); chance: the share of segments that decide. Prompts in which no segment or every
    segment decides are omitted, as are scores that are not finite.
    """
    names = segment_scores["segment"]
    rows = segment_scores[names.str.startswith(decisive.among) & (segment_scores["error"] == "")]
    rows = rows.merge(_places(prompts, decisive), on=["prompt_id", "segment"])
    deciding = prompts[decisive.factor].astype(str).str.split().explode()
    deciders = pd.MultiIndex.from_arrays([prompts["prompt_id"].reindex(deciding.index), deciding])
    rows["decides"] = pd.MultiIndex.from_frame(rows[["prompt_id", "segment"]]).isin(deciders)
    parts = [part for part in _readings(rows) if len(part)]
    if not parts:
        return pd.DataFrame(columns=[*KEY, "reading", "hit", "auc", "share", "chance"])
    return pd.concat(parts, ignore_index=True)


DECISIVE = Table(
    name="decisive_table",
    title="Do attributions find the deciding segments?",
    text="Whether the segments that decide the answer have the largest scores of their prompt, by "
    "method and for controls that do not depend on the model.",
    by=["model", "target", "method", "reading"],
    measured="segment_scores",
    numbers=[
        Share("hit", "prompts in which a deciding segment has the largest one", "share"),
        Share("auc", "mean area under the ROC curve over the prompt's segments", "share"),
        Plain("share", "mean share of the deciding segments in all sizes", "share", why="hit"),
        Plain("chance", "hits of a random order", "share", why="hit"),
    ],
    trials="prompts",
    more=[column("reading", TEXT, f"how scores become one of a segment: `{SUM}` or `{MEAN}`")],
)


def decisive_table(ranks: pd.DataFrame, cluster: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """The table `DECISIVE` of the rows of `finds`, with a row for each value of `by` as well."""
    trials = ranks.assign(cluster=ranks[cluster]).drop(columns="weight", errors="ignore")
    return estimate(replace(DECISIVE, by=[*DECISIVE.by, *by]), trials)


def _places(prompts: pd.DataFrame, decisive: Decisive) -> pd.DataFrame:
    among = [name for name in prompts.columns if name.startswith(decisive.among)]
    starts = [name for name in among if name.endswith("_start")]
    places = prompts.melt(["prompt_id"], starts, "segment", "place").dropna(subset=["place"])
    return places.assign(segment=places["segment"].str.removesuffix("_start"))


def _readings(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """How each method, with each reading, and each control ranks the segments of each prompt."""
    sizes = rows["score"].abs()
    yield _ranked(rows.assign(size=sizes)).assign(reading=SUM)
    yield _ranked(rows.assign(size=sizes / rows["tokens"])).assign(reading=MEAN)
    once = rows.drop_duplicates(["model", "prompt_id", "target", "segment"])
    for name, size in ((LENGTH, "tokens"), (POSITION, "place")):
        controlled = once.assign(method=name, size=once[size].astype(float))
        yield _ranked(controlled).assign(reading="")


def _ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per prompt: hit, auc, share and chance of the deciding segments."""
    sizes = rows.groupby(KEY)["size"]
    rows = rows[sizes.transform("count") == sizes.transform("size")]  # whole prompts
    deciders, others = (p[[*KEY, "size"]] for p in (rows[rows["decides"]], rows[~rows["decides"]]))
    pairs = deciders.merge(others, on=KEY, suffixes=("_own", "_other"))
    larger = (pairs["size_own"] > pairs["size_other"]).astype(float)
    won = larger + 0.5 * (pairs["size_own"] == pairs["size_other"])
    auc = won.groupby([pairs[name] for name in KEY], sort=False).mean()
    largest = rows[rows["size"] == rows.groupby(KEY)["size"].transform("max")]
    hit, chance = (part.groupby(KEY, sort=False)["decides"].mean() for part in (largest, rows))
    deciding, total = (part.groupby(KEY, sort=False)["size"].sum() for part in (deciders, rows))
    share = deciding / total.where(total > 0)
    columns = {"hit": hit, "auc": auc, "share": share, "chance": chance}
    # Prompts with segments of only one kind have no pairs.
    return pd.concat(columns, axis=1, join="inner").reset_index()
