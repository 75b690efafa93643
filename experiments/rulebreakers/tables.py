"""The tables of the paper, each from the results of a study (Sections 5 and 6, Appendices D, F, G).

Every table is tidy: one row per model and group, with counts, intervals and, where a quantity is
undefined, a note that says why.
"""

from dataclasses import asdict
from importlib.resources import files

import pandas as pd

from interp.analysis.accuracy import accuracy_by
from interp.analysis.corrections import holm
from interp.analysis.spearman import spearman_table
from interp.analysis.welch import welch, welch_table
from interp_experiments.rulebreakers.entity_features import feature_contrast, most_and_least
from interp_experiments.rulebreakers.levels import entity_level, model_level
from interp_experiments.rulebreakers.prompts import POSITIVE, SIDES
from interp_experiments.rulebreakers.published_differences import published_difference
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.templates import NEGATIONS, PHRASINGS, RULES
from interp_probes.linear import linear_probes

RATIOS = ("gradient_ratio", "attention_ratio")
UNNORMALIZED = ("gradient_ratio_unnormalized", "attention_ratio_unnormalized")

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


def accuracy(results: Results, *factors: str) -> pd.DataFrame:
    """Paired accuracy and accuracy by side, by model and factors (Figures 3, 4, 7 and 8).

    Prompts about one entity pair are a cluster, which the intervals take into account. Rows are in
    the order of the study's models and of the paper's rules, verbs and phrasings.
    """
    table = accuracy_by(
        results.answers, results.prompts, factors=factors, sides=SIDES, cluster="entity_pair"
    )
    order = {"model": results.models, **{name: _ORDER[name] for name in factors}}
    places = table.assign(
        **{name: pd.Categorical(table[name], values) for name, values in order.items()}
    )
    return table.loc[places.sort_values(list(order), kind="stable").index].reset_index(drop=True)


def confidence(results: Results) -> pd.DataFrame:
    """Confidence in positive answers by side, with Welch's test (Figure 5; formulas 6, 7)."""
    options = results.options.merge(results.prompts[["prompt_id", "side"]], on="prompt_id")
    accepts = options["option"].isin(POSITIVE)
    rejecting = options[~accepts].set_index(["model", "prompt_id"])["probability"]
    answers = options[accepts].join(rejecting.rename("rejecting"), on=["model", "prompt_id"])
    positive = answers[answers["probability"] > answers["rejecting"]]
    groups = (SIDES[1], SIDES[0])
    table = welch_table(positive, value="probability", group="side", groups=groups)
    return holm(_all_models(table, results, groups=groups), family="confidence, one test a model")


def familiarity(results: Results) -> pd.DataFrame:
    """Familiarity of recognized and failed pairs, with Welch's test (Figure 6).

    Geographical pairs, as in the paper; once all of them, once those whose country shares its first
    token with no other. A city's familiarity counts once for each pair of prompts about it, so that
    the paper's n overstates what was observed: `entity_correlations` counts cities.
    """
    pairs = results.pairs()
    pairs = pairs[pairs["entity_group"] == "geographical"]
    pairs = pairs.assign(group=pairs["recognized"].map({True: "recognized", False: "failed"}))
    sets = {"all": pairs, "own first token": pairs[pairs["shared_with"] == 0]}
    tables = []
    for name, chosen in sets.items():
        table = welch_table(
            chosen,
            value="familiarity",
            group="group",
            groups=("recognized", "failed"),
        )
        table = _all_models(table, results, groups=("recognized", "failed"))
        table.insert(1, "cities", name)
        tables.append(holm(table, family=f"familiarity, {name}"))
    return pd.concat(tables, ignore_index=True)


def shared_first_tokens(results: Results) -> pd.DataFrame:
    """How many answers share their first token with another, by model and entity group."""
    rows = results.familiarity.assign(shared=results.familiarity["shared_with"] > 0)
    answers = rows.drop_duplicates(["model", "entity_group", "entity_a"])
    grouped = answers.groupby(["model", "entity_group"], sort=False)["shared"]
    return grouped.agg(answers="size", sharing="sum").reset_index()


def attribution(results: Results) -> pd.DataFrame:
    """Score ratios next to accuracy and mean familiarity, one row per model (Tables 2 and 3)."""
    return model_level(
        results.answers, results.prompts, results.ratios, results.familiarity, sides=SIDES
    )


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
    """Spearman's correlation of score ratio and paired accuracy across models."""
    pairs = [(ratio, "paired_accuracy") for ratio in (*RATIOS, *UNNORMALIZED)]
    table = spearman_table(attribution(results), pairs=[*pairs, ("familiarity", "paired_accuracy")])
    return holm(table, family="across models")


def entities(results: Results) -> pd.DataFrame:
    """One row per model and entity pair: accuracies, mean ratios, familiarity, number of pairs."""
    columns = ["entity_pair", "entity_group"]
    groups = results.prompts[columns].drop_duplicates()
    table = entity_level(
        results.answers,
        results.prompts,
        results.ratios,
        results.familiarity,
        key="entity_pair",
        sides=SIDES,
    )
    return table.merge(groups, on="entity_pair")


def entity_correlations(results: Results) -> pd.DataFrame:
    """Spearman's correlations across the entity pairs of each model."""
    pairs = [(name, "paired_accuracy") for name in ("familiarity", *RATIOS)]
    pairs += [("familiarity", ratio) for ratio in RATIOS]
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
    return holm(table, family="cities that contain their country, one test a model")


def residual_probes(results: Results) -> pd.DataFrame:
    """How well a linear probe detects rulebreakers in the residual stream, layer by layer."""
    return linear_probes(results.residuals, results.probed, results.probed_answers)


def _all_models(table: pd.DataFrame, results: Results, *, groups: tuple[str, str]) -> pd.DataFrame:
    """A Welch table with a row for every model, including those that have no such prompts."""
    nothing = pd.Series(dtype=float)
    undefined = {"group_a": groups[0], "group_b": groups[1], **asdict(welch(nothing, nothing))}
    absent = [model for model in results.models if model not in set(table["model"])]
    rows = pd.DataFrame([{"model": model, **undefined} for model in absent])
    return pd.concat([part for part in (table, rows) if len(part)], ignore_index=True)
