"""Whether the right word is retrieved in a prompt: a verdict for each prompt, with its error.

A word's strength in a prompt is its score, averaged over the middle layers, minus its mean over the
prompts of other clusters in which it is wrong, minus the same of the prompt's other wrong words.
Strengths of wrong words show what a word gets without being the fact: in a prompt, a word counts as
retrieved if its strength exceeds `LEVEL` of the strengths of wrong words in the prompts of other
clusters. How many wrong words of the prompt itself exceed this threshold is the verdict's error.

Right words have no part in what is subtracted. Facts that are retrieved would otherwise lower the
strengths of wrong words, in their prompts and wherever their words are wrong, and with them the
threshold, so that the verdict would err more often where nothing is retrieved.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from interp.estimates.declared import Plain, Share, Table
from interp.measurements.lens.tables import in_middle, others_mean, with_words
from interp.statistics.summaries import LEVEL, grouped
from interp.tables import TEXT, column

PLACE = ["model", "group", "method"]


def retrieved(readings: pd.DataFrame, clusters: pd.Series) -> pd.DataFrame:
    """The verdicts on prompts that have a right word; missing with a single cluster.

    One row per prompt and `PLACE`: prompt_id, cluster, fact; strength of the right word, in logits;
    threshold, the `LEVEL` quantile of the strengths of wrong words in prompts of other clusters;
    retrieved, whether the strength exceeds it; error, the share of the prompt's wrong words whose
    strength does; embedding: `retrieved` for what is read from the token's embedding alone.
    """
    known = with_words(in_middle(readings), clusters)
    parts = [_verdicts(rows) for _, rows in grouped(known, [*PLACE, "among"])]
    about = ["strength", "threshold", "retrieved", "error", "embedding"]
    columns = [*PLACE, "prompt_id", "cluster", "fact", *about]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """The verdicts of prompts that are read among the same words at the same place."""
    words: Sequence[str] = rows["among"].iloc[0]
    first = rows.drop_duplicates("prompt_id").reset_index(drop=True)
    codes = pd.factorize(first["cluster"])[0]
    right = np.eye(len(words), dtype=bool)[first["right"].map(words.index)]
    facts = first[[*PLACE, "prompt_id", "cluster", "fact"]]
    if codes.max() == 0:
        nothing = dict.fromkeys(("strength", "threshold", "error"), np.nan)
        return facts.assign(**nothing, retrieved=None, embedding=None)
    strengths, alone = (
        _strengths(rows, name, right, codes) for name in ("scores", "from_embedding")
    )
    limits, limits_alone = (_thresholds(own, right, codes) for own in (strengths, alone))
    beyond = strengths > limits[:, None]
    return facts.assign(
        strength=strengths[right],
        threshold=limits,
        retrieved=beyond[right],
        error=(beyond & ~right).sum(1) / (len(words) - 1),
        embedding=(alone > limits_alone[:, None])[right],
    )


def _strengths(
    rows: pd.DataFrame,
    column: str,
    right: Bool[np.ndarray, "prompt word"],
    clusters: Int[np.ndarray, " prompt"],
) -> Float[np.ndarray, "prompt word"]:
    """Each word's strength in each prompt, in the order in which the prompts appear.

    Of two words, the other one is right for the wrong one; it is then subtracted all the same.
    """
    scores = pd.DataFrame(np.stack(rows[column].tolist()), index=rows["prompt_id"].to_numpy())
    means = scores.groupby(level=0, sort=False).mean().to_numpy()
    centred = means - others_mean(means, clusters, ~right)
    counted = ~right if right.shape[1] > 2 else np.ones_like(right)
    others = np.where(counted, centred, 0.0).sum(1, keepdims=True) - counted * centred
    return np.asarray(centred - others / (counted.sum(1, keepdims=True) - counted))


def _thresholds(
    strengths: Float[np.ndarray, "prompt word"],
    right: Bool[np.ndarray, "prompt word"],
    clusters: Int[np.ndarray, " prompt"],
) -> Float[np.ndarray, " prompt"]:
    """For each prompt, the quantile of wrong words' strengths in prompts of other clusters."""
    by_cluster = [
        np.quantile(strengths[clusters != own][~right[clusters != own]], LEVEL, method="higher")
        for own in range(clusters.max() + 1)
    ]
    return np.asarray(np.asarray(by_cluster)[clusters])


RETRIEVAL = Table(
    name="retrieval_table",
    title="Prompts in which the right word is retrieved",
    text="""A word counts as retrieved in a prompt if its strength, the centred score averaged over
    the middle layers minus the mean of the other words', exceeds 95% of the strengths of wrong
    words in prompts of other clusters. answered: which prompts, by the model's answer.""",
    by=[*PLACE, "answered"],
    measured="lens_readings",
    numbers=[
        Share("retrieved", "prompts in which the right word is retrieved", "share"),
        Plain(
            "embedding",
            "what the lens reads from the token's embedding alone would give",
            "share",
            why="retrieved",
        ),
        Plain("error", "the prompt's own wrong words that exceed it", "share", why="retrieved"),
        Plain("strength", "mean of the right word's", "logits", why="retrieved"),
    ],
    trials="prompts",
    split=["model"],
    more=[column("answered", TEXT, "`all` prompts, or those answered `right` or `wrong`")],
)


def retrieval_trials(found: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The rows of `retrieved`, once as answered all and, if judged, once as right or wrong."""
    judged = found.merge(answers[["model", "prompt_id", "correct"]], on=["model", "prompt_id"])
    kind = judged["correct"].map({True: "right", False: "wrong"})
    both = [judged.assign(answered="all"), judged.assign(answered=kind).dropna(subset="answered")]
    return pd.concat(both, ignore_index=True)
