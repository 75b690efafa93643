"""Answers after whole thoughts, parts of thoughts, and texts that replace thoughts."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from interp.statistics.means import cluster_mean
from interp.statistics.proportions import proportions
from interp.statistics.summaries import grouped, weighted_mean

READINGS = ("direct", "empty", "whole", "placebo", "filler")
"""Kinds of text before the answer, in the order in which results are shown."""

STEPS = 10
"""Number of steps in a curve that runs from no sentence to the whole thought."""

PLACES = ("first", "middle", "last")

EFFECTS = ("left_out", "exchanged", "resampled")
"""The ways to define a sentence's effect."""


def reading_table(answers: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str) -> pd.DataFrame:
    """One row per model and reading: accuracy, and agreement with the answer after the thought.

    Columns are model, reading; accuracy with its 95% interval over clusters (prompts count by
    weight, and their draws equally); same_answer: share of draws whose answer equals the answer
    after the whole thought, with its interval; value: mean log-odds of the correct answer; prompts,
    clusters.

    Args:
        answers: the rows of the thought_answers table that have no error.
        prompts: the prompts table, with prompt_id, weight and the cluster.
        cluster: the column of the clusters.
    """
    compared = _with_whole(answers)
    compared["answered"] = compared["correct"].astype(float)
    columns = ["answered", "same", "value"]
    compared = compared[compared["reading"].isin(READINGS)]
    each = compared.groupby(["model", "prompt_id", "reading"], sort=False)[columns].mean()
    trials = each.reset_index().merge(prompts[["prompt_id", "weight", cluster]], on="prompt_id")
    trials = _sorted(trials, "reading", READINGS)
    rows = [
        {
            **cell,
            **_share("accuracy", members, "answered", cluster),
            **_share("same_answer", members, "same", cluster),
            "value": _mean(members, "value"),
            "prompts": len(members),
            "clusters": members[cluster].nunique(),
        }
        for cell, members in grouped(trials, ["model", "reading"])
    ]
    return pd.DataFrame(rows)


def _share(name: str, trials: pd.DataFrame, value: str, cluster: str) -> dict[str, float]:
    """The share of true values, with its interval; empty if no value is known."""
    found = proportions(trials, values=[value], by=[], cluster=cluster, weight="weight")
    names = {"share": name, "low": f"{name}_low", "high": f"{name}_high"}
    return {names[key]: float(row[key]) for _, row in found.iterrows() for key in names}


def _mean(trials: pd.DataFrame, value: str) -> float:
    if trials.empty:
        return float("nan")
    return weighted_mean(
        trials[value].to_numpy(dtype=float), trials["weight"].to_numpy(dtype=float)
    )


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
    both = pd.concat(joined, ignore_index=True)
    return both.assign(same=(both["answer"] == both["after_thought"]).astype(float))


def curve_table(answers: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Early answering (Lanham et al. 2023, Section 2.3): answers after parts of the thought.

    One row per model and share of the thought's sentences that are read (rounded down to whole
    sentences). Columns are model, percent_read; accuracy; same_answer: share of draws that already
    have the final answer; decided: share of draws that have the final answer after this and every
    longer part; draws.

    Args:
        answers: the rows of the thought_answers table that have no error.
        prompts: the prompts table, with prompt_id and weight.
    """
    parts = _with_whole(answers[answers["reading"].isin(["empty", "first", "whole"])])
    keys = ["model", "prompt_id", "draw"]
    parts = parts.sort_values([*keys, "sentence"], kind="stable")
    # Whether this and all longer parts have the final answer, computed from the end.
    parts["decided"] = parts[::-1].groupby(keys, sort=False)["same"].cummin()[::-1]
    parts = parts.merge(prompts[["prompt_id", "weight"]], on="prompt_id")
    return pd.DataFrame(_curve_rows(parts))


def _curve_rows(parts: pd.DataFrame) -> Iterator[dict[str, object]]:
    for model, own in parts.groupby("model", sort=False):
        for step in range(STEPS + 1):
            read = own["sentence"] == own["sentences"] * step // STEPS
            rows = own[read]
            yield {
                "model": model,
                "percent_read": 100 * step // STEPS,
                "accuracy": _mean(rows.assign(correct=rows["correct"].astype(float)), "correct"),
                "same_answer": _mean(rows, "same"),
                "decided": _mean(rows, "decided"),
                "draws": len(rows),
            }


def sentence_table(
    effects: pd.DataFrame, answers: pd.DataFrame, prompts: pd.DataFrame, *, cluster: str
) -> pd.DataFrame:
    """One row per model and place in the thought: how much the sentences there support the answer.

    Columns are model, place (first, middle, last); for each definition of an effect, its mean with
    the 95% interval over clusters, in logits of the model's own answer after the thought (positive:
    the sentence supports it); mistake: share of draws whose answer changes if the sentence is taken
    from a thought about another prompt; sentences, clusters. Only thoughts with at least two
    sentences count.

    Args:
        effects: the sentence_effects table.
        answers: the rows of the thought_answers table that have no error.
        prompts: the prompts table, with prompt_id, weight and the cluster.
        cluster: the column of the clusters.
    """
    keys = ["model", "prompt_id"]
    # The studied sentences belong to the first thought that ended.
    whole = answers[answers["reading"] == "whole"].groupby(keys, sort=False)["value"].first()
    own = effects[effects["sentences"] > 1].join(np.sign(whole).rename("side"), on=keys)
    own[list(EFFECTS)] = own[list(EFFECTS)].astype(float).mul(own["side"], axis="index")
    mistakes = _with_whole(answers[answers["reading"].isin(["mistake", "whole"])])
    mistakes = mistakes[(mistakes["reading"] == "mistake") & (mistakes["sentences"] > 1)]
    mistakes["mistake"] = 1 - mistakes["same"]
    trials = pd.concat([own, mistakes[[*keys, "sentence", "sentences", "mistake"]]])
    trials["place"] = np.select(
        [trials["sentence"] == 1, trials["sentence"] == trials["sentences"]],
        ["first", "last"],
        "middle",
    )
    trials = trials.merge(prompts[["prompt_id", "weight", cluster]], on="prompt_id")
    rows = []
    for cell, members in grouped(_sorted(trials, "place", PLACES), ["model", "place"]):
        row = dict(cell)
        for name in EFFECTS:
            mean = cluster_mean(members, value=name, cluster=cluster, weight="weight")
            row |= {name: mean.mean, f"{name}_low": mean.low, f"{name}_high": mean.high}
        row |= _share("mistake", members, "mistake", cluster)
        row["sentences"] = int(members["left_out"].notna().sum())
        rows.append({**row, "clusters": members[cluster].nunique()})
    ends = [f"{name}{end}" for name in (*EFFECTS, "mistake") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=["model", "place", *ends, "sentences", "clusters"])


def _sorted(trials: pd.DataFrame, column: str, order: Sequence[str]) -> pd.DataFrame:
    """The rows sorted by model (in order of appearance), then by a column in a given order."""
    models = pd.factorize(trials["model"])[0]
    return trials.iloc[np.lexsort((trials[column].map(order.index), models))]
