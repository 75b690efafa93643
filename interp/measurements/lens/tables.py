"""How often readings name the right word, by layer, with their controls.

Readings are centred: from each word's score, its mean over the prompts of all other clusters is
subtracted. A score is linear in the stream, so this centres the stream by a mean that the prompt
and its entity have no part in.
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.statistics.summaries import grouped

PLACE = ["model", "group", "method", "layer"]
"""The columns that say what a row of readings is about."""

COLUMNS = [
    *(*PLACE, "prompt_id", "words", "fact", "right"),
    *("scores", "from_embedding", "log_odds"),
]
"""The columns of lens_readings that results read."""


def judged(readings: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """One row per reading that has a right word, and whether this word comes first.

    Columns: `PLACE`, prompt_id, cluster, and those of the table of readings. accuracy: m words with
    the highest score share the point; missing if there is no other cluster over which could be
    centred. shuffled: the expectation over all shuffles of the right words among the clusters.
    margin: in logits; above 0 if the right word comes first, and 0, up to rounding, if it shares
    the point. why: why numbers are missing, or empty.
    """
    asked = with_words(readings, clusters)
    parts = [_judged(rows) for _, rows in grouped(asked, [*PLACE, "among"])]
    columns = [*PLACE, "prompt_id", "cluster", *_FOUND]
    if not parts:
        return pd.DataFrame(columns=columns)
    every = pd.concat(parts, ignore_index=True)
    some = every.groupby(PLACE)["accuracy"].transform("count") > 0
    return every.assign(why=every["why"].mask(some, ""))


def with_words(readings: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """The readings that have a right word among others, with the columns cluster and among."""
    asked = readings[readings["right"].notna() & (readings["words"].map(len) > 1)]
    return asked.assign(cluster=asked["prompt_id"].map(clusters), among=asked["words"].map(tuple))


_FOUND = (
    *("accuracy", "embedding", "raw_accuracy", "shuffled"),
    *("chance", "margin", "log_odds", "why"),
)


def _judged(rows: pd.DataFrame) -> pd.DataFrame:
    """The readings of one place and layer among the same words."""
    words = rows["among"].iloc[0]
    right = rows["right"].map(words.index).to_numpy()
    codes = pd.factorize(rows["cluster"])[0]
    raw, alone = (np.stack(rows[name].tolist()) for name in ("scores", "from_embedding"))
    each = np.arange(len(rows))
    readings = rows[[*PLACE, "prompt_id", "cluster", "log_odds"]].assign(
        raw_accuracy=shared_first(raw, raw)[each, right], chance=1 / len(words)
    )
    if codes.max() == 0:
        nothing = dict.fromkeys(("accuracy", "embedding", "shuffled", "margin"), np.nan)
        return readings.assign(**nothing, why="there is no other cluster to centre by")
    centred = raw - others_mean(raw, codes)
    # The probability that each word is the right one of a cluster that is drawn at random.
    drawn = pd.DataFrame(np.eye(len(words))[right]).groupby(codes).mean().mean().to_numpy()
    first = shared_first(centred, raw)
    of_right = centred[each, right]
    centred[each, right] = -np.inf
    return readings.assign(
        accuracy=first[each, right],
        embedding=shared_first(alone - others_mean(alone, codes), alone)[each, right],
        shuffled=(drawn * first).sum(1),
        margin=of_right - centred.max(1),
        why="",
    )


_ROUNDING = 1e-6
"""Differences below this share of a reading's largest score are ties: scores are stored in fp32,
and readings of one token have one embedding."""


def leading(
    scores: Float[np.ndarray, "reading word"], raw: Float[np.ndarray, "reading word"]
) -> Bool[np.ndarray, "reading word"]:
    """Which words have the highest score of a reading, centred or not; `raw` are those stored."""
    return np.asarray(scores >= scores.max(1, keepdims=True) - _near(raw))


def shared_first(
    scores: Float[np.ndarray, "reading word"], raw: Float[np.ndarray, "reading word"]
) -> Float[np.ndarray, "reading word"]:
    """Each word's part of the point of a reading, which the leading words share."""
    first = leading(scores, raw)
    return np.asarray(first / first.sum(1, keepdims=True))


def mean_rank(scores: Float[np.ndarray, " word"], right: int) -> float:
    """The rank of a word, from 1; words with equal scores share the mean of their ranks."""
    beyond = np.delete(scores, right) - scores[right]
    near = _near(scores[None]).item()
    return float(1 + (beyond > near).sum() + (np.abs(beyond) <= near).sum() / 2)


def _near(raw: Float[np.ndarray, "reading word"]) -> Float[np.ndarray, "reading 1"]:
    """The differences of scores that count as none."""
    return np.asarray(_ROUNDING * np.abs(raw).max(1, keepdims=True))


def others_mean(
    scores: Float[np.ndarray, "reading word"],
    clusters: Int[np.ndarray, " reading"],
    counted: Bool[np.ndarray, "reading word"] | None = None,
) -> Float[np.ndarray, "reading word"]:
    """For each reading, the mean over the readings of all other clusters, of which there are some.

    Of a word of which no score is `counted`, all count.
    """
    every = np.ones(scores.shape, dtype=bool)
    means, number = _of_others(scores, every if counted is None else counted, clusters)
    if (number == 0).any():
        means = np.where(number == 0, _of_others(scores, every, clusters)[0], means)
    return means


def _of_others(
    scores: Float[np.ndarray, "reading word"],
    counted: Bool[np.ndarray, "reading word"],
    clusters: Int[np.ndarray, " reading"],
) -> tuple[Float[np.ndarray, "reading word"], Float[np.ndarray, "reading word"]]:
    """The mean over the readings of all other clusters that count, and their number."""
    sums, numbers = np.zeros((2, clusters.max() + 1, scores.shape[1]))
    np.add.at(sums, clusters, np.where(counted, scores, 0.0))
    np.add.at(numbers, clusters, counted)
    sums, numbers = (by_cluster.sum(0) - by_cluster for by_cluster in (sums, numbers))
    return np.asarray(sums / np.maximum(numbers, 1))[clusters], np.asarray(numbers[clusters])


def word_trials(readings: pd.DataFrame) -> pd.DataFrame:
    """One row per reading and word: its part of the point (`shared_first`), and its scores."""
    scores = map(np.atleast_2d, readings["scores"])
    named = {"words": "word", "scores": "score", "from_embedding": "embedding_score"}
    each = readings.assign(first=[shared_first(reading, reading)[0] for reading in scores])
    each = each.explode([*named, "first"]).rename(columns=named)
    return each.astype(dict.fromkeys(["first", "score", "embedding_score"], float))


BAND = 0.38, 0.92
"""The middle layers, as shares of the depth: where Gurnee et al. (2026) intervene by default."""


def in_middle(readings: pd.DataFrame) -> pd.DataFrame:
    """The rows at middle layers; all rows if none is.

    The depth is that of the last layer that was read.
    """
    depth = readings["layer"].groupby(readings["model"]).transform("max") + 1
    inside = readings[((readings["layer"] + 1) / depth).between(*BAND)]
    return inside if len(inside) else readings
