"""Tables made of scores: shares of tokens, means by segment, and the ratio of two segments."""

import pandas as pd

KEY = ["model", "prompt_id", "method", "target"]
"""Columns that name what one method says of one prompt."""

RATIO_COLUMNS = [*KEY, "segment", "tokens", "share", "error"]
"""Columns of the segment_scores table that `segment_ratios` reads."""

TABLE_COLUMNS = ["model", "method", "target", "segment", "tokens", "score", "share"]
"""Columns of the segment_scores table that `segment_table` reads."""


def segment_ratios(segment_scores: pd.DataFrame, ratio: tuple[str, str]) -> pd.DataFrame:
    """The ratio of two segments' shares, one row per model, prompt, method and target.

    Columns are these four; ratio, of the mean shares of a token (Chan et al., Table 2);
    ratio_unnormalized, of the shares (Table 3); error, why both are missing.

    Args:
        segment_scores: rows of the segment_scores table, with `RATIO_COLUMNS`.
        ratio: the segment above the line and the one below it.
    """
    table = segment_scores[KEY].drop_duplicates()
    for name, segment in zip(("above", "below"), ratio, strict=True):
        rows = segment_scores.loc[segment_scores["segment"] == segment, RATIO_COLUMNS]
        columns = {column: f"{column}_{name}" for column in ("tokens", "share", "error")}
        rows = rows.drop(columns="segment").rename(columns=columns)
        table = table.merge(rows, on=KEY, how="left", validate="one_to_one")
    below = table["share_below"]
    unnormalized = table["share_above"] / below.where(below > 0)
    table["ratio"] = unnormalized * table["tokens_below"] / table["tokens_above"]
    table["ratio_unnormalized"] = unnormalized
    table["error"] = _errors(table, ratio)
    return table[[*KEY, "ratio", "ratio_unnormalized", "error"]]


def _errors(table: pd.DataFrame, ratio: tuple[str, str]) -> pd.Series:
    """Why each ratio is missing; empty where it is not."""
    above, below = ratio
    errors = table["error_below"].fillna("").astype(object)
    errors = errors.mask((errors == "") & ~(table["share_below"] > 0), f"{below} has no score")
    errors = errors.mask(table["error_below"].isna(), f"the prompt has no segment {below}")
    return errors.mask(table["error_above"].isna(), f"the prompt has no segment {above}")


def segment_table(segment_scores: pd.DataFrame) -> pd.DataFrame:
    """How much each segment gets, one row per model, method, target and segment.

    Columns are these four; prompts, that have a score of the segment; tokens, their mean number;
    score and score_sd, mean and sample standard deviation of the summed scores, in the method's
    unit; share and share_sd, the same of the segment's part of the prompt's absolute scores. Each
    prompt counts once, whatever its weight. Segments are in order of appearance.

    Args:
        segment_scores: rows of the segment_scores table, with `TABLE_COLUMNS`.
    """
    # A prompt that failed has a row without numbers; its tokens do not count either.
    rows = segment_scores.assign(
        tokens=segment_scores["tokens"].where(segment_scores["score"].notna())
    )
    table = rows.groupby(["model", "method", "target", "segment"], sort=False).agg(
        prompts=("score", "count"),
        tokens=("tokens", "mean"),
        score=("score", "mean"),
        score_sd=("score", "std"),
        share=("share", "mean"),
        share_sd=("share", "std"),
    )
    return table.reset_index()


def token_shares(token_scores: pd.DataFrame, tokens: pd.DataFrame) -> pd.DataFrame:
    """The token_scores table with each token's text and segment, and its share of the prompt.

    `share` is the part of the prompt's absolute scores, from 0 to 1.

    Args:
        token_scores: rows of the token_scores table, of whole prompts.
        tokens: their rows of the tokens table.
    """
    sizes = token_scores["score"].abs()
    totals = sizes.groupby([token_scores[name] for name in KEY], sort=False).transform("sum")
    place = ["model", "prompt_id", "position"]
    return token_scores.assign(share=sizes / totals).merge(
        tokens[[*place, "token", "segment"]], on=place, validate="many_to_one"
    )
