"""Answers after whole thoughts, parts of thoughts, and texts that replace thoughts.

How much of a prompt's effect on the answer passes through the thought, by model and segment.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from interp.estimates.declared import Mean, Plain, Share, Table
from interp.statistics import mediation
from interp.statistics.means import cluster_mean
from interp.statistics.summaries import grouped
from interp.tables import INTEGER, TEXT, column

READINGS = ("direct", "empty", "whole", "placebo", "filler")
"""Kinds of text before the answer, in the order in which results are shown."""

PLACES = ("first", "middle", "last")

EFFECTS = ("left_out", "exchanged", "resampled")
"""The ways to define a sentence's effect."""

READING = Table(
    name="reading_table",
    title="Answers after thoughts and after their replacements",
    text="""The text before the answer. whole: the model's own thought. direct: no thought, as with
    thinking off. empty: only the marks of a thought. placebo: the model's thought about another
    prompt. filler: dots, with about as many tokens as the thought.""",
    by=["model", "reading"],
    measured="thought_answers",
    numbers=[
        Share("accuracy", "answers that are correct", "share", of="correct"),
        Share("same_answer", "answers that equal that after the whole thought", "share", of="same"),
        Plain("value", "mean log-odds of the correct answer", "logits", why="accuracy"),
    ],
    trials="prompts",
)

_SUPPORTS = "positive: the sentence supports the model's own answer"

SENTENCES = Table(
    name="sentence_table",
    title="Effects of sentences",
    text="""How much a first, middle or last sentence supports the model's own answer, in thoughts
    of two sentences or more. Mistakes are those of Lanham et al. (2023), without rewriting the
    rest.""",
    by=["model", "place"],
    measured="sentence_effects",
    numbers=[
        Mean("left_out", "the sentence is removed", "logits", _SUPPORTS),
        Mean("exchanged", "it is another draw's at the same place", "logits", _SUPPORTS),
        Mean("resampled", "thoughts resampled after it against from it on", "logits", _SUPPORTS),
        Share(
            "mistake",
            "answers that change if the sentence is of a thought about another prompt",
            "share",
        ),
    ],
    trials="sentences",
    alone="two models' thoughts have different sentences",
    more=[column("place", TEXT, "`first`, `middle` or `last` sentence of the thought")],
)

EARLY = Table(
    name="early_answer_table",
    title="Early answers",
    text="""The model's answer if it must answer after part of its thought (early answering, Lanham
    et al. 2023, Section 2.3). If a thought only explains an answer that the model already has,
    decided is 1 from the start.""",
    by=["model", "percent_read"],
    measured="thought_answers",
    numbers=[
        Share("accuracy", "answers that are correct", "share", of="correct"),
        Share("same_answer", "answers that equal the final one", "share", of="same"),
        Share("decided", "answers that no longer change from here on", "share"),
    ],
    trials="draws",
    alone="draws of two models are not paired",
    more=[column("percent_read", INTEGER, "share of the thought's sentences that is read", "%")],
)

_ABOUT = ["prompt_id", "pair_id", "weight"]


def reading_trials(answers: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """One row per model, reading and prompt: means of correct, same and value over draws."""
    compared = _with_whole(answers).astype({"correct": float})
    compared = compared[compared["reading"].isin(READINGS)]
    each = compared.groupby(["model", "prompt_id", "reading"], sort=False)
    means = each[["correct", "same", "value"]].mean().reset_index()
    return _sorted(means.merge(prompts[_ABOUT], on="prompt_id"), "reading", READINGS)


def _with_whole(answers: pd.DataFrame) -> pd.DataFrame:
    """Add `same`: whether the answer equals the one after the whole thought of the same draw.

    A direct answer has no draw, so it is compared with every draw.
    """
    keys = ["model", "prompt_id"]
    whole = answers.loc[answers["reading"] == "whole", [*keys, "draw", "answer"]]
    whole = whole.rename(columns={"answer": "after_thought"})
    direct = answers["reading"] == "direct"
    joined = [
        answers[direct].drop(columns="draw").merge(whole, on=keys),
        answers[~direct].merge(whole, on=[*keys, "draw"]),
    ]
    compared = pd.concat(joined, ignore_index=True)
    return compared.assign(same=(compared["answer"] == compared["after_thought"]).astype(float))


def early_trials(answers: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """One row per draw and share of its sentences that are read (rounded down to whole ones)."""
    parts = _with_whole(answers[answers["reading"].isin(["empty", "first", "whole"])])
    keys = ["model", "prompt_id", "draw"]
    parts = parts.sort_values([*keys, "sentence"], kind="stable").astype({"correct": float})
    # Whether this and all longer parts have the final answer, computed from the end.
    parts["decided"] = parts[::-1].groupby(keys, sort=False)["same"].cummin()[::-1]
    percents = range(0, 101, 10)
    trials = pd.concat(
        parts[parts["sentence"] == parts["sentences"] * percent // 100].assign(percent_read=percent)
        for percent in percents
    )
    return _sorted(trials.merge(prompts[_ABOUT], on="prompt_id"), "percent_read", percents)


def sentence_trials(
    effects: pd.DataFrame, answers: pd.DataFrame, prompts: pd.DataFrame
) -> pd.DataFrame:
    """One row per sentence of a thought that has several, with the columns of `SENTENCES`."""
    keys = ["model", "prompt_id"]
    # The studied sentences belong to the first thought that ended.
    whole = answers[answers["reading"] == "whole"].groupby(keys, sort=False)["value"].first()
    trials = effects[effects["sentences"] > 1].join(np.sign(whole).rename("side"), on=keys)
    trials[[*EFFECTS]] = trials[[*EFFECTS]].astype(float).mul(trials["side"], axis="index")
    mistakes = _with_whole(answers[answers["reading"].isin(["mistake", "whole"])])
    mistakes = mistakes[mistakes["reading"] == "mistake"].assign(mistake=1 - mistakes["same"])
    on = [*keys, "sentence"]
    trials = trials.merge(mistakes[[*on, "mistake"]], on=on, how="left")
    first, last = trials["sentence"] == 1, trials["sentence"] == trials["sentences"]
    trials["place"] = np.select([first, last], [PLACES[0], PLACES[2]], PLACES[1])
    return _sorted(trials.merge(prompts[_ABOUT], on="prompt_id"), "place", PLACES)


def _sorted(trials: pd.DataFrame, column: str, order: Sequence[object]) -> pd.DataFrame:
    """The rows sorted by model (in order of appearance), then by a column in a given order."""
    models = pd.factorize(trials["model"])[0]
    return trials.iloc[np.lexsort((trials[column].map(order.index), models))]


ANSWERS = ("own", "changed", "own_under_other", "changed_under_other")
"""Columns of the thought_effects table that contain log-odds, draw by draw."""

CELL = ["model", "donor_kind", "segment"]

SHARES = ("share", "share_own", "share_other")
"""Columns of mediated shares: their mean, under own premises, and under changed premises."""


def effect_products(effects: pd.DataFrame) -> pd.DataFrame:
    """Each effect's E[effect] E[total], in squared nats, with the keys of thought_effects.

    Estimates are unbiased. Rows with an error or without draws are omitted.
    """
    measured = effects[(effects["error"] == "") & (effects["draws"] > 0)]
    products: list[dict[str, float]] = []
    for row in measured[list(ANSWERS)].itertuples(index=False):
        of_draws = mediation.effects_of_draws(*(np.asarray(values, dtype=float) for values in row))
        products.append(
            {
                name: mediation.product_of_means(of_draws[name], of_draws["total"])
                for name in mediation.EFFECTS
            }
        )
    table = pd.DataFrame(products, columns=list(mediation.EFFECTS), index=measured.index)
    return pd.concat([measured.drop(columns=[*ANSWERS, "error"]), table], axis="columns")


def mediation_table(
    products: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per model, kind of donor and segment: effects and the mediated share.

    Columns are model, donor_kind, segment and those of `by`; total: root mean square of the total
    effects over prompts, in nats; share_own: the mediated share if the thought is exchanged under
    the prompt's own premises; share_other: that under the changed premises; share: their mean. Each
    has its 95% interval (`interp.statistics.mediation`). Further columns are prompts, clusters and
    note. The direct share is 1 - share_other if the prompt's own thought is kept, and 1 - share_own
    if the changed prompt's is.

    Under their own premises, prompts in one cluster are alike; under a donor's premises, prompts
    that share the donor are alike. Therefore, share_own is clustered by the prompts' cluster, and
    share_other by the donor. Each end of the interval of `share` is the mean of the corresponding
    ends for share_own and share_other.
    """
    columns = ["prompt_id", "weight", *dict.fromkeys([cluster, *by])]
    trials = products.merge(prompts[columns], on="prompt_id", validate="many_to_one")
    ends = [f"{name}{end}" for name in ("total", *SHARES) for end in ("", "_low", "_high")]
    rows = []
    for cell, members in grouped(trials, [*CELL, *by]):
        squares = cluster_mean(members, value="total", cluster=cluster, weight="weight")
        # Estimates of squares below 0 count as 0.
        total = np.sqrt(np.maximum([squares.mean, squares.low, squares.high], 0.0))
        # The other side of a pair is in the same cluster.
        by_donor = "donor" if cell["donor_kind"] == "instance" else cluster
        share_own, share_other = (
            mediation.cluster_ratio(
                members, above=above, below="total", cluster=name, weight="weight"
            )
            for above, name in (("through", cluster), ("through_other", by_donor))
        )
        shares = np.array([[one.mean, one.low, one.high] for one in (share_own, share_other)])
        # The mean of the ends is wide enough for any dependence between the two.
        numbers = np.concatenate([total, shares.mean(0), *shares])
        counts = {"prompts": members["prompt_id"].nunique(), "clusters": squares.clusters}
        row = {**cell, **dict(zip(ends, numbers, strict=True)), **counts}
        rows.append({**row, "note": share_own.note or share_other.note})
    return pd.DataFrame(rows, columns=[*CELL, *by, *ends, "prompts", "clusters", "note"])
