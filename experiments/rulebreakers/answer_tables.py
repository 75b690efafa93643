"""Tables about answers: accuracy, contrasts, the sample, sensitivity and confidence.

Tables have one row per model and group, with counts and intervals; if a quantity is undefined, a
note says why. Shares and means describe the whole data set: each prompt counts with its weight.
Tests are over entity pairs, because answers to prompts about one entity are alike; p_holm is
corrected over all tests in its table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import pandas as pd

from interp.analysis.accuracy import accuracy_by, pairs_of, without_answer
from interp.prompts.systems import Contrast
from interp.statistics.classical import welch_table
from interp.statistics.clusters import ClusterContrast
from interp.statistics.contrasts import contrast_table
from interp.statistics.decisions import SIGNIFICANT, holm
from interp.statistics.discrimination import concordance, discrimination_table
from interp.statistics.means import ClusterMean, cluster_mean_table
from interp_experiments.rulebreakers.prompts import POSITIVE, SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results
from interp_experiments.rulebreakers.system import NAMED
from interp_experiments.rulebreakers.templates import NEGATIONS, PHRASINGS, RULES
from interp_experiments.scaffold import in_order

WEIGHT = "weight"
"""The column with the number of prompts in the data set that a prompt represents."""

_ORDER: Mapping[str, Sequence[str]] = {
    "rule": RULES,
    "entity_group": ("geographical", "categorical"),
    "verb": tuple(NEGATIONS),
    "phrasing": tuple(phrasing.id for phrasing in PHRASINGS),
    "question_verb": tuple(dict.fromkeys(phrasing.verb for phrasing in PHRASINGS)),
}
"""The values of each factor, in the paper's order."""


NOT_SHOWN = "no difference shown"
"""The finding when a test shows no difference."""


def every_model(
    table: pd.DataFrame, results: Results, kind: type[ClusterMean] | type[ClusterContrast]
) -> pd.DataFrame:
    """The table with a row for every model, in order; values of missing models are undefined."""
    nothing = asdict(kind(np.nan, note="undefined: no such pairs"))
    absent = [model for model in results.models if model not in set(table["model"])]
    rows = pd.DataFrame([{"model": model, **nothing} for model in absent])
    whole = pd.concat([part for part in (table, rows) if len(part)], ignore_index=True)
    whole = whole.reindex(columns=table.columns)
    return whole.set_index("model").loc[list(results.models)].reset_index()


def finding_words(
    table: pd.DataFrame, *, more: str, less: str, value: str = "difference"
) -> list[str]:
    """For each row, the finding that its interval and its corrected p-value support."""
    difference, low, high, p = table[[value, "low", "high", "p_holm"]].to_numpy(float).T
    open_ = (p >= SIGNIFICANT) | ((low <= 0) & (high >= 0))
    chosen = [np.isnan(p), open_, difference > 0]
    return list(np.select(chosen, ["not tested", NOT_SHOWN, more], less))


def papers_test(
    rows: pd.DataFrame, *, value: str, group: str, groups: tuple[str, str]
) -> pd.DataFrame:
    """The paper's test (Welch's, over prompts), in columns that end in _paper."""
    table = welch_table(rows, value=value, group=group, groups=groups)
    shown = ["difference", "t", "df", "p", "g", "n_a", "n_b", "mean_a", "mean_b"]
    return table[["model", *shown]].rename(columns={name: f"{name}_paper" for name in shown})


def accuracy(results: Results, *factors: str) -> pd.DataFrame:
    """Paired accuracy and the accuracy of each side, by model and factors (Figures 3, 4, 7 and 8).

    Intervals are clustered by entity pair. Rows are in the order of the study's models and of the
    paper's rules, verbs and phrasings.
    """
    table = accuracy_by(
        results.answers,
        results.prompts,
        factors=factors,
        sides=SIDES,
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    order = {name: _ORDER[name] for name in factors}
    models = results.answers["model"].unique().tolist()
    return in_order(table, {"model": models, **order}).reset_index(drop=True)


MOST_NAMED = 2
"""Up to this number, phrasings with the same accuracy are named; otherwise, they are counted."""


def phrasings(results: Results) -> pd.DataFrame:
    """The spread of paired accuracy over phrasings, one row per model (Appendix D).

    Columns are model, range, mean, sd (the sample standard deviation), lowest and highest with
    their phrasings (several if equal). In small samples, part of the spread is chance.
    """
    paired = accuracy(results, "phrasing").query("measure == 'paired'").set_index("phrasing")
    # Accuracies that should be equal may differ by rounding errors in their sums.
    paired["accuracy"] = paired["accuracy"].round(12)
    table = paired.groupby("model", sort=False)["accuracy"].agg(
        mean=pd.Series.mean,
        sd="std",
        lowest="min",
        highest="max",
        lowest_phrasing=lambda own: _phrasings_at(own, own.min()),
        highest_phrasing=lambda own: _phrasings_at(own, own.max()),
    )
    # Without rounding, the standard deviation of equal numbers is not exactly 0.
    table["sd"] = table["sd"].round(12)
    table.insert(0, "range", table["highest"] - table["lowest"])
    return table.reset_index()


def _phrasings_at(accuracy: pd.Series, end: float) -> str:
    """The phrasings with this accuracy, or their number if they are more than `MOST_NAMED`."""
    names = [str(name) for name in accuracy.index[accuracy == end]]
    number = "all" if len(names) == len(accuracy) else f"{len(names)}"
    return ", ".join(names) if len(names) <= MOST_NAMED else f"{number} phrasings"


EXPLORATORY = (Contrast("question_verb"),)
"""Further contrasts in the report; their p-values are not corrected."""


def contrasts(results: Results) -> pd.DataFrame:
    """Weighted differences in paired accuracy, as computed by `contrast_table`."""
    factors = ["rule", "entity_group", "phrasing", "question_verb", CLUSTER, WEIGHT]
    pairs = pairs_of(results.answers, results.prompts, keep=factors, sides=SIDES)
    return contrast_table(
        pairs, named=NAMED, exploratory=EXPLORATORY, cluster=CLUSTER, weight=WEIGHT
    )


def composition(results: Results) -> pd.DataFrame:
    """The composition of the sample, one row per rule and entity group (Figure 2).

    Columns are rule, entity_group; the counts entity_pairs, pairs_drawn and pairs_kept (without
    excluded entity pairs); data_set and data_set_share, the number and the share of the pairs in
    the data set that the kept pairs represent; and weight, the mean weight of the kept pairs. For
    overall numbers in the report, each combination is weighted by data_set_share, not by the number
    of pairs drawn.
    """
    factors = ["rule", "entity_group"]
    drawn, kept = (
        prompts.drop_duplicates("pair_id").groupby(factors)
        for prompts in (results.drawn, results.prompts)
    )
    table = pd.DataFrame(
        {
            "entity_pairs": kept[CLUSTER].nunique(),
            "pairs_drawn": drawn.size(),
            "pairs_kept": kept.size(),
            "data_set": kept[WEIGHT].sum().round(),
            "weight": kept[WEIGHT].mean(),
        }
    ).fillna({"entity_pairs": 0, "pairs_kept": 0, "data_set": 0.0})
    table.insert(4, "data_set_share", table["data_set"] / table["data_set"].sum())
    counts = ["entity_pairs", "pairs_drawn", "pairs_kept", "data_set"]
    table = table.astype(dict.fromkeys(counts, int)).reset_index()
    return in_order(table, {name: _ORDER[name] for name in factors}).reset_index(drop=True)


def filters(results: Results) -> pd.DataFrame:
    """Paired accuracy without cities not completed as asked, by model and filter (Section 4.1).

    "all models" omits the cities that at least one model of the study fails to complete, as in the
    paper, so adding a model may change every other model's numbers; "own" omits the cities that the
    model itself fails to complete; "none" omits nothing. Columns are model, filter, left_out
    (number of cities), accuracy, low, high, pairs, clusters, note.
    """
    geographical = results.known[results.known["entity_group"] == "geographical"]
    rows = []
    for model in results.models:
        own = geographical[geographical["model"] == model]
        answers = results.drawn_answers[results.drawn_answers["model"] == model]
        chosen = {"all models": own["excluded"], "own": ~own["known"].astype(bool)}
        for name, left_out in {**chosen, "none": own["excluded"] & False}.items():
            prompts = results.drawn[~results.drawn[CLUSTER].isin(own.loc[left_out, CLUSTER])]
            table = accuracy(replace(results, answers=answers, prompts=prompts))
            paired = table[table["measure"] == "paired"].drop(columns="measure")
            paired.insert(1, "filter", name)
            paired.insert(2, "left_out", int(left_out.sum()))
            rows.append(paired)
    return pd.concat(rows, ignore_index=True)


def competence(results: Results) -> pd.DataFrame:
    """Whether the models can be asked at all, one row per model.

    Columns are model, competent, no_answer, accepted, why. A model is competent if its most likely
    token is an answer for most prompts, and if it accepts most non-rulebreakers, as both the rule
    and the facts require. Other models' answers say nothing about rulebreakers.
    """
    sides = accuracy(results).set_index(["measure", "model"])["accuracy"]
    silent = without_answer(results.answers).reindex(results.models, fill_value=0.0)
    accepted = sides[SIDES[1]].reindex(results.models)
    why = np.select(
        [(silent >= 0.5).to_numpy(), (accepted < 0.5).to_numpy()],
        ["most answers are neither option", "most non-rulebreakers are rejected"],
        "",
    )
    table = pd.DataFrame({"competent": why == "", "no_answer": silent, "accepted": accepted})
    return table.assign(why=why).rename_axis("model").reset_index()


def positive_answers(results: Results) -> pd.DataFrame:
    """One row per model and prompt: the probability of the positive answer (formulas 4, 5).

    Columns are model, prompt_id, pair_id, side, entity_pair, weight; confidence (the probability of
    the positive answer), relative (its share of the two answers' total probability),
    accepted_by_probability (whether it is the more likely answer) and accepted (whether it was
    given).
    """
    chosen = results.options["option"].isin(POSITIVE)
    names = {"probability": "confidence", "relative_probability": "relative"}
    positive = results.options[chosen].rename(columns=names)
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
    """How well each model distinguishes the sides of a pair, one row per model.

    Columns are model; finding, in words; concordance with low, high, p, p_holm: the share of pairs
    whose non-rulebreaker has the higher relative probability of the positive answer, tested
    against one half; p is at most 0.05 if and only if the interval excludes one half
    (`interp.statistics.clusters`). Then come paired_accuracy with its interval, and the columns of
    `interp.statistics.discrimination`: AUROC of the relative probability, d' and bias of the
    answers, and the paired accuracies that the rates of positive answers would predict.

    Concordance and AUROC use every prompt and do not depend on a threshold between Yes and No.
    """
    positive = positive_answers(results)
    pairs = answered_pairs(positive)
    order = concordance(pairs[f"relative_{SIDES[1]}"], pairs[f"relative_{SIDES[0]}"])
    table = cluster_mean_table(
        pairs.assign(excess=order - 0.5), value="excess", cluster=CLUSTER, weight=WEIGHT
    )
    table = holm(every_model(table, results, ClusterMean), family="concordance")
    more, less = "more often in the right order", "more often in the wrong order"
    table["finding"] = finding_words(table, value="mean", more=more, less=less)
    table = table.rename(columns={"mean": "concordance"})
    shares = ["concordance", "low", "high"]
    table[shares] = (table[shares] + 0.5).clip(0.0, 1.0)
    separate = discrimination_table(
        positive.assign(positive=positive["side"] == SIDES[1]),
        score="relative",
        yes="accepted",
        positive="positive",
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    paired = accuracy(results).query("measure == 'paired'")[["model", "accuracy", "low", "high"]]
    paired.columns = pd.Index(["model", "paired_accuracy", "paired_low", "paired_high"])
    first = ["model", "finding", "concordance", "low", "high", "p", "p_holm"]
    counts = ["trials", "clusters", "note", "family", "family_size"]
    separate = separate.drop(columns="clusters").rename(columns={"note": "note_auroc"})
    return (
        table[first]
        .merge(paired, on="model", how="left")
        .merge(separate, on="model", how="left")
        .join(table[counts].rename(columns={"trials": "pairs"}))
    )


def confidence(results: Results) -> pd.DataFrame:
    """Confidence in positive answers, right and wrong, one row per model (Figure 5; formulas 4-7).

    `difference` is computed within pairs with a positive answer on both sides: the probability of
    that answer on the non-rulebreaker, where it is right, minus that on the rulebreaker, where it
    is wrong. Pairs about one entity are one cluster (`interp.statistics.clusters`); `share` is the
    share of pairs compared. Intervals are cut at -1 and 1.

    The columns that end in `_paper` are Welch's test of all positive answers on either side, as in
    the paper. It treats prompts about one entity as independent; and it compares different
    entities, because rulebreakers are answered positively only if the model fails them.
    """
    positive = positive_answers(results)
    compared = _both_accepted(positive)
    table = cluster_mean_table(compared, value="difference", cluster=CLUSTER, weight=WEIGHT)
    table = every_model(table, results, ClusterMean).rename(columns={"mean": "difference"})
    table[["low", "high"]] = table[["low", "high"]].clip(-1.0, 1.0)
    table = holm(table.rename(columns={"trials": "pairs"}), family="confidence")
    table.insert(
        1, "finding", finding_words(table, more="surer when right", less="surer when wrong")
    )
    pairs = positive.groupby("model")["pair_id"].nunique()
    table.insert(7, "share", table["pairs"] / table["model"].map(pairs))
    accepted = positive[positive["accepted_by_probability"]]
    return table.merge(
        papers_test(accepted, value="confidence", group="side", groups=(SIDES[1], SIDES[0])),
        on="model",
        how="left",
    )


def confidence_differences(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: mean difference in confidence, and number of pairs."""
    compared = _both_accepted(positive_answers(results))
    by_entity = compared.groupby(["model", CLUSTER], sort=False)["difference"]
    return by_entity.agg(difference="mean", pairs="size").reset_index()


def _both_accepted(positive: pd.DataFrame) -> pd.DataFrame:
    pairs = answered_pairs(positive)
    accepted = pairs[[f"accepted_by_probability_{side}" for side in SIDES]]
    both: pd.DataFrame = pairs[accepted.eq(True).all(axis=1)]
    right, wrong = (both[f"confidence_{side}"].astype(float) for side in reversed(SIDES))
    return both.assign(difference=right - wrong)
