"""Whether models distinguish the sides of a pair, and are surer when they are right."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from interp.extend import figures, page, statistics
from interp_experiments.rulebreakers.accuracy import accuracy
from interp_experiments.rulebreakers.prompts import POSITIVE, SIDES
from interp_experiments.rulebreakers.results import CLUSTER, WEIGHT, Results

NOT_SHOWN, NOT_TESTED = "no difference shown", "not tested"


def of_every_model(trials: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The trials, after one without a value for each model, so that each has a row."""
    return pd.concat([pd.DataFrame({"model": results.models}), trials], ignore_index=True)


def judged(table: pd.DataFrame, *, family: str, more: str, less: str) -> pd.DataFrame:
    """The table of differences by model, corrected over its rows, with each finding.

    A finding is `more` or `less` if its interval and p_holm show a difference above or below 0.
    """
    table = statistics.holm(table, family=family)
    difference, low, high, p = table[["difference", "low", "high", "p_holm"]].to_numpy(float).T
    open_ = (p >= statistics.SIGNIFICANT) | ((low <= 0) & (high >= 0))
    findings = np.select([np.isnan(p), open_, difference > 0], [NOT_TESTED, NOT_SHOWN, more], less)
    return table.assign(finding=findings)


def papers_test(
    rows: pd.DataFrame, *, value: str, group: str, groups: tuple[str, str]
) -> pd.DataFrame:
    """The paper's test (Welch's, over prompts), in columns that end in _paper."""

    def compared(members: pd.DataFrame) -> statistics.WelchTest:
        return statistics.welch(*(members.loc[members[group] == name, value] for name in groups))

    table = statistics.table_by(rows, ["model"], statistics.WelchTest, compared)
    shown = ["difference", "t", "df", "p", "g", "n_a", "n_b", "mean_a", "mean_b"]
    return table[["model", *shown]].rename(columns={name: f"{name}_paper" for name in shown})


def positive_answers(results: Results) -> pd.DataFrame:
    """One row per model and prompt: the positive answer (formulas 4, 5).

    confidence is its probability, relative its share of the two answers' total probability;
    accepted_by_probability: whether it is the more likely answer; accepted: whether it was given.
    """
    names = {"probability": "confidence", "relative_probability": "relative"}
    positive = results.options[results.options["option"].isin(POSITIVE)].rename(columns=names)
    prompts = results.prompts[["prompt_id", "pair_id", "side", CLUSTER, WEIGHT]]
    table = positive[["model", "prompt_id", *names.values()]].merge(prompts, on="prompt_id")
    answers = results.answers[["model", "prompt_id", "answer"]]
    table = table.merge(answers, on=["model", "prompt_id"])
    table["accepted_by_probability"] = table["relative"] > 0.5
    return table.assign(accepted=table["answer"].isin(POSITIVE)).drop(columns="answer")


def answered_pairs(positive: pd.DataFrame) -> pd.DataFrame:
    """One row per model and pair: columns of `positive_answers` by side, such as relative_SIDE."""
    values = ["confidence", "relative", "accepted_by_probability"]
    keys = ["model", "pair_id", CLUSTER, WEIGHT]
    wide = positive.pivot(index=keys, columns="side", values=values)
    wide.columns = pd.Index([f"{value}_{side}" for value in values for side in wide[value].columns])
    return wide.reset_index()


def sensitivity(results: Results) -> pd.DataFrame:
    """How well each model distinguishes the sides of a pair.

    Concordance and AUROC use every prompt, and no threshold between Yes and No.
    """
    positive = positive_answers(results)
    pairs = answered_pairs(positive)
    order = statistics.concordance(pairs[f"relative_{SIDES[1]}"], pairs[f"relative_{SIDES[0]}"])
    shares = ["concordance", "low", "high"]
    trials = of_every_model(pairs.assign(concordance=order), results)
    table = _means(trials, "concordance", statistics.mean_concordance)
    table[["mean", "low", "high"]] -= 0.5
    table = judged(
        table.rename(columns={"mean": "difference"}),
        family="concordance",
        more="more often in the right order",
        less="more often in the wrong order",
    ).rename(columns={"difference": "concordance", "trials": "pairs"})
    table[shares] = (table[shares] + 0.5).clip(0.0, 1.0)
    separate = statistics.table_by(
        positive.assign(positive=positive["side"] == SIDES[1]),
        ["model"],
        statistics.Discrimination,
        statistics.discrimination,
        score="relative",
        yes="accepted",
        positive="positive",
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    separate = separate.drop(columns="clusters").rename(columns={"note": "note_auroc"})
    paired = accuracy(results).query("measure == 'paired'")[["model", "accuracy", "low", "high"]]
    paired.columns = pd.Index(["model", "paired_accuracy", "paired_low", "paired_high"])
    first = ["model", "finding", *shares, "p", "p_holm"]
    counts = ["model", "pairs", "clusters", "note", "family", "family_size"]
    whole = table[first]
    for others in (paired, separate, table[counts]):
        whole = whole.merge(others, on="model", how="left")
    return whole


def _means(
    trials: pd.DataFrame,
    value: str,
    mean: Callable[..., statistics.ClusterMean] = statistics.cluster_mean,
) -> pd.DataFrame:
    """The mean over cities of a column, one row per model."""
    how = {"value": value, "cluster": CLUSTER, "weight": WEIGHT}
    return statistics.table_by(trials, ["model"], statistics.ClusterMean, mean, **how)


def confidence(results: Results) -> pd.DataFrame:
    """Confidence in positive answers, right and wrong, by model (Figure 5; formulas 4-7).

    Intervals are cut at -1 and 1. The paper's test, over all positive answers, compares different
    entities: rulebreakers are answered positively only if the model fails them.
    """
    positive = positive_answers(results)
    trials = of_every_model(_both_accepted(positive), results)
    table = _means(trials, "difference")
    table = table.rename(columns={"mean": "difference", "trials": "pairs"})
    table[["low", "high"]] = table[["low", "high"]].clip(-1.0, 1.0)
    words = {"more": "surer when right", "less": "surer when wrong"}
    table = judged(table, family="confidence", **words)
    pairs = positive.groupby("model")["pair_id"].nunique()
    table["share"] = table["pairs"] / table["model"].map(pairs)
    first = ["model", "finding", "difference", "low", "high", "p", "p_holm", "share"]
    accepted, sides = positive[positive["accepted_by_probability"]], (SIDES[1], SIDES[0])
    paper = papers_test(accepted, value="confidence", group="side", groups=sides)
    return table[[*first, *table.columns.drop(first)]].merge(paper, on="model", how="left")


def _both_accepted(positive: pd.DataFrame) -> pd.DataFrame:
    """The pairs with positive answers on both sides: `answered_pairs` and the difference."""
    pairs = answered_pairs(positive)
    accepted = pairs[[f"accepted_by_probability_{side}" for side in SIDES]]
    both: pd.DataFrame = pairs[accepted.eq(True).all(axis=1)]
    right, wrong = (both[f"confidence_{side}"].astype(float) for side in reversed(SIDES))
    return both.assign(difference=right - wrong)


def sensitivity_section(results: Results) -> page.Section:
    """Figure 5, and the table `sensitivity`."""
    table = confidence(results)
    compared = _both_accepted(positive_answers(results))
    return page.Section(
        "Sensitivity and confidence",
        "Does a model distinguish the sides of a pair, wherever it draws the line between Yes "
        "and No? It does if concordance and AUROC are above 0.5 and d' is above 0. A bias above "
        "0 leans towards No; a bias below 0 leans towards Yes. A model with high concordance and "
        "low paired accuracy notices rulebreakers but accepts them anyway.",
        (
            page.TableItem(
                "sensitivity",
                "How well the sides are distinguished",
                sensitivity(results),
                "concordance: share of pairs in which the relative probability of the positive "
                "answer, c+ / (c+ + c-), is higher on the non-rulebreaker. Its interval and the "
                "p of its difference from one half are those of a share over entity pairs, which "
                "agree. auroc: the same share for any two prompts, one from each side. "
                "chance_yes_rate: paired accuracy expected from the rate of positive answers if "
                "the model ignores the side. independent_sides: paired accuracy expected from "
                "both sides' accuracies if the answers to them are independent.",
            ),
            page.FigureItem(
                "figure5_confidence",
                "Confidence in positive answers, right and wrong (Figure 5)",
                partial(_draw_confidence, table, compared),
                "Dots: mean difference for one entity pair, over pairs of prompts both of which "
                "are answered positively; area: number of pairs. Large points: mean over pairs; "
                "whiskers: 95% interval, clustered by entity pair; n: entity pairs. p: "
                "studentized bootstrap over entity pairs, corrected by Holm's method over the "
                "models. Above 0, a model is more confident when the answer is right.",
            ),
            page.TableItem(
                "confidence",
                "Confidence in positive answers",
                table,
                "difference: non-rulebreaker, where the positive answer is right (formula 6), "
                "minus rulebreaker, where it is wrong (7), within pairs whose sides are both "
                "answered positively; share: these pairs as a share of all pairs. Columns that "
                "end in _paper are Welch's test over all positive answers, as in the paper: it "
                "treats prompts about one entity as independent and compares different entities.",
            ),
        ),
    )


def _draw_confidence(table: pd.DataFrame, pairs: pd.DataFrame) -> Axes:
    by_entity = pairs.groupby(["model", CLUSTER], sort=False)["difference"]
    dots = by_entity.agg(difference="mean", pairs="size").reset_index()
    groups = (rows.assign(group="difference") for rows in (dots, table))
    ax = draw_clusters(*groups, x="difference")
    ax.axvline(0, color="black", linewidth=0.8, linestyle=":")
    ax.set_xlabel("confidence if right minus confidence if wrong, within pairs")
    figures.say_if_nothing_is_shown(ax, table, ("low", "high"))
    return ax


def draw_clusters(points: pd.DataFrame, means: pd.DataFrame, *, x: str) -> Axes:
    """Dots of entity pairs and means with intervals by model, in the color of their group."""
    return figures.cluster_points(
        points, means, x=x, y="model", hue="group", size="pairs", n="clusters",
        interval=("low", "high"), p="p_holm",
    )  # fmt: skip
