"""The tables of the paper, each from the results of a study (Sections 5 and 6, Appendices D, F, G).

Every table is tidy: one row per model and group, with counts, intervals and, where a quantity is
undefined, a note that says why. Shares and means are those of the data set: each prompt counts by
its weight. What is tested is tested over entities, since the prompts about one entity are answered
alike; p_holm is corrected over all tests of its table.
"""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

import numpy as np
import pandas as pd

from interp.analysis.accuracy import accuracy_by, without_answer
from interp.analysis.clusters import (
    ClusterContrast,
    ClusterMean,
    cluster_contrast_table,
    cluster_mean_table,
)
from interp.analysis.corrections import holm
from interp.analysis.discrimination import concordance, discrimination_table
from interp.analysis.proportions import proportions
from interp.analysis.ratio_table import ratio_table
from interp.analysis.spearman import spearman_table
from interp.analysis.welch import welch_table
from interp_experiments.rulebreakers.entity_features import feature_contrast, most_and_least
from interp_experiments.rulebreakers.levels import entity_level, model_level
from interp_experiments.rulebreakers.prompts import POSITIVE, SIDES
from interp_experiments.rulebreakers.published_differences import published_difference
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.templates import NEGATIONS, PHRASINGS, RULES
from interp_probes.linear import linear_probes

CLUSTER, WEIGHT = "entity_pair", "weight"
"""Columns of the cluster of a prompt, and of how many prompts of the data set it represents."""

RATIOS = ("gradient_geometric", "attention_geometric")
"""Columns of the attribution table that are correlated with accuracy over models."""

ENTITY_RATIOS = ("gradient_ratio", "attention_ratio")
"""Columns of the table of entity pairs."""

_ORDER = {
    "rule": RULES,
    "entity_group": ("geographical", "categorical"),
    "verb": tuple(NEGATIONS),
    "phrasing": tuple(phrasing.id for phrasing in PHRASINGS),
    "question_verb": tuple(dict.fromkeys(phrasing.verb for phrasing in PHRASINGS)),
}
"""Values of each factor in the paper's order."""

EXTREMES = 10
"""Entity pairs named at either end of Appendix G's list."""

SIGNIFICANT = 0.05
"""p_holm below which a difference is said to be one."""


def composition(results: Results) -> pd.DataFrame:
    """What the sample is made of, one row per rule and entity group (Figure 2).

    Columns are rule, entity_group, entity_pairs (different ones), pairs_drawn, pairs_kept (without
    excluded entity pairs), data_set and data_set_share: how many pairs of the data set those kept
    represent, and their share; weight, the mean of those kept. An overall number of the report
    counts each combination by data_set_share, not by how many pairs were drawn.
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
    return _in_order(table.astype(dict.fromkeys(counts, int)).reset_index(), factors)


def accuracy(results: Results, *factors: str) -> pd.DataFrame:
    """Paired accuracy and accuracy by side, by model and factors (Figures 3, 4, 7 and 8).

    Prompts about one entity pair are a cluster, which the intervals take into account. Rows are in
    the order of the study's models and of the paper's rules, verbs and phrasings.
    """
    table = accuracy_by(
        results.answers,
        results.prompts,
        factors=factors,
        sides=SIDES,
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    return _in_order(table, factors, models=results.answers["model"].unique().tolist())


def phrasings(results: Results) -> pd.DataFrame:
    """How paired accuracy differs between phrasings, one row per model (Appendix D).

    Columns are model, mean, sd (of a sample), lowest and highest with their phrasings, range. The
    deviations of small samples are in part chance.
    """
    table = accuracy(results, "phrasing").query("measure == 'paired'")
    rows = []
    for model, own in table.groupby("model", sort=False):
        by_phrasing = own.set_index("phrasing")["accuracy"]
        rows.append(
            {
                "model": model,
                "range": by_phrasing.max() - by_phrasing.min(),
                "mean": by_phrasing.mean(),
                "sd": by_phrasing.std(),
                "lowest": by_phrasing.min(),
                "highest": by_phrasing.max(),
                "lowest_phrasing": by_phrasing.idxmin(),
                "highest_phrasing": by_phrasing.idxmax(),
            }
        )
    return pd.DataFrame(rows)


def filters(results: Results) -> pd.DataFrame:
    """Paired accuracy by what is left out as unknown, one row per model and filter (Section 4.1).

    "all models" leaves out the cities that any model of the study does not complete, as the paper
    does, so that a further model may change every other model's numbers; "own" those that the
    model itself does not complete; "none" nothing. Columns are model, filter, left_out (cities),
    accuracy, low, high, pairs, clusters, note.
    """
    geographical = results.known[results.known["entity_group"] == "geographical"]
    rows = []
    for model in results.models:
        own = geographical[geographical["model"] == model]
        chosen = {"all models": own["excluded"], "own": ~own["known"].astype(bool)}
        for name, left_out in {**chosen, "none": own["excluded"] & False}.items():
            table = _paired_without(results, model, own.loc[left_out, CLUSTER])
            table.insert(1, "filter", name)
            table.insert(2, "left_out", int(left_out.sum()))
            rows.append(table)
    return pd.concat(rows, ignore_index=True)


def _paired_without(results: Results, model: str, left_out: pd.Series) -> pd.DataFrame:
    answers = results.drawn_answers
    table = accuracy_by(
        answers[answers["model"] == model],
        results.drawn[~results.drawn[CLUSTER].isin(left_out)],
        factors=(),
        sides=SIDES,
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    return table[table["measure"] == "paired"].drop(columns="measure")


def sensitivity(results: Results) -> pd.DataFrame:
    """How well each model tells the sides of a pair apart, one row per model.

    Columns are model; finding, in words; concordance with low, high, p, p_holm: the share of pairs
    whose non-rulebreaker has the higher probability of the positive answer relative to both, held
    against a half; paired_accuracy with its interval; then those of
    `interp.analysis.discrimination`: AUROC of that relative probability, d' and bias of the
    answers, and the paired accuracies to be expected by the rates of positive answers.

    Concordance and AUROC use every prompt, and need no line between Yes and No.
    """
    positive = positive_answers(results)
    pairs = answered_pairs(positive)
    order = concordance(pairs[f"relative_{SIDES[1]}"], pairs[f"relative_{SIDES[0]}"])
    pairs = pairs.assign(concordance=order, excess=order - 0.5)
    tested = cluster_mean_table(pairs, value="excess", cluster=CLUSTER, weight=WEIGHT)
    tested = holm(_every_model(tested, results, ClusterMean), family="concordance")
    # The interval of a proportion, unlike Student's, has a width where every pair is in order.
    levels = proportions(
        pairs, values=["concordance"], by=["model"], cluster=CLUSTER, weight=WEIGHT
    ).set_index("model")
    table = tested.drop(columns=["low", "high"])
    table = table.join(levels[["share", "low", "high"]], on="model")
    table = table.rename(columns={"share": "concordance"})
    words = _findings(
        table.assign(low=table["low"] - 0.5, high=table["high"] - 0.5),
        value="mean",
        more="more often in the right order",
        less="more often in the wrong order",
    )
    table.insert(1, "finding", words)
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

    `difference` is that within pairs of which both sides are answered positively: the probability
    of the positive answer on the non-rulebreaker, where it is right, minus that on the rulebreaker,
    where it is wrong. Pairs of one entity hang together (`interp.analysis.clusters`); `share` is
    how many pairs are compared.

    The columns that end in `_paper` are the paper's: Welch's test of all positive answers on either
    side. It counts the prompts about one entity as independent, and it compares different entities,
    since the rulebreakers that are answered positively are those that the model fails.
    """
    positive = positive_answers(results)
    compared = _both_accepted(positive)
    table = cluster_mean_table(compared, value="difference", cluster=CLUSTER, weight=WEIGHT)
    table = _every_model(table, results, ClusterMean).rename(columns={"mean": "difference"})
    table = holm(table.rename(columns={"trials": "pairs"}), family="confidence")
    table.insert(1, "finding", _findings(table, more="surer when right", less="surer when wrong"))
    pairs = positive.groupby("model")["pair_id"].nunique()
    table.insert(7, "share", table["pairs"] / table["model"].map(pairs))
    accepted = positive[positive["accepted_by_probability"]]
    return table.merge(
        _papers_test(accepted, value="confidence", group="side", groups=(SIDES[1], SIDES[0])),
        on="model",
        how="left",
    )


def confidence_differences(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: mean difference of confidence within pairs, and pairs."""
    compared = _both_accepted(positive_answers(results))
    by_entity = compared.groupby(["model", CLUSTER], sort=False)["difference"]
    return by_entity.agg(difference="mean", pairs="size").reset_index()


def positive_answers(results: Results) -> pd.DataFrame:
    """One row per model and prompt: what speaks for the positive answer (formulas 4, 5).

    Columns are model, prompt_id, pair_id, side, entity_pair, weight; confidence, the probability of
    the positive answer; relative, its share of both answers' probability; accepted_by_probability,
    whether it is the likelier of the two; accepted, whether it was given.
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


def _both_accepted(positive: pd.DataFrame) -> pd.DataFrame:
    pairs = answered_pairs(positive)
    accepted = pairs[[f"accepted_by_probability_{side}" for side in SIDES]]
    both: pd.DataFrame = pairs[accepted.eq(True).all(axis=1)]
    right, wrong = (both[f"confidence_{side}"].astype(float) for side in reversed(SIDES))
    return both.assign(difference=right - wrong)


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized and failed cities, one row per model and set of cities (Figure 6).

    `difference` is the familiarity of recognized pairs minus that of failed ones, tested over
    cities: a city has one familiarity, however many of its prompts were asked
    (`interp.analysis.clusters`). Once all cities, once those whose country shares its first token
    with no other.

    The columns that end in `_paper` are the paper's: Welch's test that counts a city once for each
    of its pairs of prompts, and rejects most true hypotheses of no difference.
    """
    pairs = results.pairs()
    pairs["group"] = pairs["recognized"].map({True: "recognized", False: "failed"})
    sets = {"all": pairs, "own first token": pairs[pairs["shared_with"] == 0]}
    tables = []
    for name, chosen in sets.items():
        groups = ("recognized", "failed")
        table = cluster_contrast_table(
            chosen,
            value="familiarity",
            group="group",
            groups=groups,
            cluster=CLUSTER,
            weight=WEIGHT,
        )
        table = _every_model(table, results, ClusterContrast)
        paper = _papers_test(chosen, value="familiarity", group="group", groups=groups)
        table.insert(1, "cities", name)
        tables.append(table.merge(paper, on="model", how="left"))
    table = holm(pd.concat(tables, ignore_index=True), family="familiarity")
    words = _findings(table, more="recognized more familiar", less="recognized less familiar")
    first = ["model", "cities", "finding", "difference", "low", "high", "p", "p_holm"]
    names = {
        f"{value}_{letter}": f"{value}_{group}"
        for value in ("mean", "low", "high", "clusters", "trials")
        for letter, group in zip("ab", groups, strict=True)
    }
    table = table.assign(finding=words).drop(columns=["group_a", "group_b"])
    return table[[*first, *table.columns.drop(first)]].rename(columns=names)


def city_familiarity(results: Results) -> pd.DataFrame:
    """One row per model, city and group: familiarity, group ("recognized", "failed"), pairs."""
    pairs = results.pairs()
    pairs["group"] = pairs["recognized"].map({True: "recognized", False: "failed"})
    grouped = pairs.groupby(["model", "entity_pair", "group"], sort=False)["familiarity"]
    return grouped.agg(familiarity="first", pairs="size").reset_index()


def shared_first_tokens(results: Results) -> pd.DataFrame:
    """How many countries share their first token with another, by model: answers, sharing."""
    cities = results.cities()
    answers = cities.assign(shared=cities["shared_with"] > 0)
    grouped = answers.drop_duplicates(["model", "entity_a"]).groupby("model", sort=False)["shared"]
    return grouped.agg(answers="size", sharing="sum").reset_index()


def attribution(results: Results) -> pd.DataFrame:
    """Score ratios next to accuracy and mean familiarity, one row per model (Tables 2 and 3)."""
    return model_level(accuracy(results), ratios(results), results.cities())


def ratios(results: Results) -> pd.DataFrame:
    """Score ratios summed up robustly, one row per model, method and ratio."""
    return ratio_table(results.ratios, results.prompts, cluster=CLUSTER)


def published() -> pd.DataFrame:
    """The paper's Tables 2 and 3; which column is which method is inferred from Section 6."""
    file = files("interp_experiments.rulebreakers") / "data" / "published_tables.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened)


def measured_and_published(results: Results) -> pd.DataFrame:
    """Measured next to published figures, for the models of the study that the paper measured."""
    measured = attribution(results)
    # The paper gives names without their owners: microsoft/Phi-3-mini-128k-instruct is its
    # Phi-3-mini-128k-instruct. An organism is never one of them.
    names = measured["model"].str.rpartition("/")[2]
    measured["model"] = names.where(~measured["model"].str.startswith("organism/"))
    columns = [column for column in published().columns if column != "model"]
    return published_difference(
        measured.dropna(subset="model"), published(), key="model", columns=columns
    )


def model_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations with paired accuracy across models.

    The score ratios are geometric means, whose order no single prompt decides.
    """
    pairs = [(name, "paired_accuracy") for name in (*RATIOS, "familiarity")]
    return holm(spearman_table(attribution(results), pairs=pairs), family="across models")


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: accuracies, mean ratios, familiarity, number of pairs.

    Familiarity is that of cities.
    """
    columns = ["entity_pair", "entity_group"]
    groups = results.prompts[columns].drop_duplicates()
    table = entity_level(
        results.answers,
        results.prompts,
        results.ratios,
        results.cities(),
        key="entity_pair",
        sides=SIDES,
    )
    table = table.merge(groups, on="entity_pair")
    return table[["entity_pair", "model", *table.columns.drop(["entity_pair", "model"])]]


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across the entity pairs of each model; of familiarity over cities."""
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *ENTITY_RATIOS)]
    pairs += [("familiarity", ratio) for ratio in ENTITY_RATIOS]
    table = spearman_table(entities(results), pairs=pairs, by=["model"])
    return holm(table, family="across entity pairs")


def extremes(results: Results) -> pd.DataFrame:
    """The entity pairs most and least often answered correctly, over all models (Appendix G)."""
    return most_and_least(entities(results), key="entity_pair", k=EXTREMES)


def names_within(results: Results) -> pd.DataFrame:
    """Cities that contain their country's name against the others (Appendix G)."""
    facts = results.familiarity.drop_duplicates("entity_pair").set_index("entity_pair")
    cities = entities(results).query("entity_group == 'geographical'")
    country = cities["entity_pair"].map(facts["entity_a"])
    city = cities["entity_pair"].map(facts["entity_b"])
    contained = [a in b for a, b in zip(country, city, strict=True)]
    table = feature_contrast(
        cities.assign(city_contains_country=contained),
        value="paired_accuracy",
        feature="city_contains_country",
    )
    return holm(table, family="cities that contain their country")


def competence(results: Results) -> pd.DataFrame:
    """Which models can be asked at all, one row per model: model, competent, no_answer, why.

    A model is competent if most of its likeliest tokens are one of the two answers, and if it
    accepts most non-rulebreakers, which the rule and the facts both ask for. What another one says
    of rulebreakers is no failure of theirs.
    """
    sides = accuracy(results).set_index(["measure", "model"])["accuracy"]
    silent = without_answer(results.answers).reindex(results.models, fill_value=0.0)
    accepted = sides[SIDES[1]].reindex(results.models)
    why = np.select(
        [(silent >= 0.5).to_numpy(), (accepted < 0.5).to_numpy()],
        ["most answers are neither option", "most non-rulebreakers are rejected"],
        "",
    )
    columns = {"model": results.models, "competent": why == "", "no_answer": silent.to_numpy()}
    return pd.DataFrame({**columns, "accepted": accepted.to_numpy(), "why": why})


def residual_probes(results: Results) -> pd.DataFrame:
    """How well a linear probe detects rulebreakers in the residual stream, layer by layer."""
    return linear_probes(results.residuals, results.probed, results.probed_answers)


def _findings(table: pd.DataFrame, *, more: str, less: str, value: str = "difference") -> list[str]:
    """What each row shows, in words that its interval and its corrected p-value support."""
    return [
        "not tested"
        if np.isnan(p)
        else "no difference shown"
        if p >= SIGNIFICANT or low <= 0 <= high
        else more
        if difference > 0
        else less
        for difference, low, high, p in table[[value, "low", "high", "p_holm"]].to_numpy(float)
    ]


def _papers_test(
    rows: pd.DataFrame, *, value: str, group: str, groups: tuple[str, str]
) -> pd.DataFrame:
    """Welch's test over prompts, as the paper makes it, in columns whose names say so."""
    table = welch_table(rows, value=value, group=group, groups=groups)
    shown = ["difference", "t", "df", "p", "g", "n_a", "n_b", "mean_a", "mean_b"]
    return table[["model", *shown]].rename(columns={name: f"{name}_paper" for name in shown})


def _every_model(
    table: pd.DataFrame, results: Results, kind: type[ClusterMean] | type[ClusterContrast]
) -> pd.DataFrame:
    """The table with a row for every model, in their order, also for those without such prompts."""
    nothing = asdict(kind(np.nan, note="undefined: no such pairs"))
    absent = [model for model in results.models if model not in set(table["model"])]
    rows = pd.DataFrame([{"model": model, **nothing} for model in absent])
    whole = pd.concat([part for part in (table, rows) if len(part)], ignore_index=True)
    whole = whole.reindex(columns=table.columns)
    return whole.set_index("model").loc[list(results.models)].reset_index()


def _in_order(
    table: pd.DataFrame, factors: Sequence[str], *, models: Sequence[str] = ()
) -> pd.DataFrame:
    """Rows in the order of the models, and of the paper's values of the factors."""
    order = {name: _ORDER[name] for name in factors}
    if models:
        order = {"model": tuple(models), **order}
    places = table.assign(
        **{name: pd.Categorical(table[name], values) for name, values in order.items()}
    )
    if not order:
        return table.reset_index(drop=True)
    return table.loc[places.sort_values(list(order), kind="stable").index].reset_index(drop=True)
