"""The tables of the study of RuleBench (paper, Tables 1 to 5, Figures 2 and 4 to 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from interp.extend.estimates import TEXT, Estimated, Plain, Share, Table, column, estimate
from interp.extend.training import absolute
from interp_experiments.rulebench.learning import RuleFollowing
from interp_experiments.rulebench.reading import named_rule
from interp_experiments.rulebench.results import (
    EXECUTION,
    RULE,
    SETTING,
    TRIGGERING,
    Results,
    under,
)
from interp_experiments.scaffold import in_order, published_table, trained

LONG_TAIL = 0.1

_NO_RULE = "no rule named"

RULES = "golden_rules"


DIMENSIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "executing": ("shows only the golden rule", {"rules": "golden"}),
    "triggering": ("shows all rules", {"rules": "all"}),
    "formal": ("has rules in logic", {"form": "logic"}),
    "applying": ("shows rules and asks for a chain of thought", {"thought": "yes"}),
    "counterfactual": ("has changed conclusions", {"version": "counterfactual"}),
}
"""What prompts of each dimension of rule following contain (Section 4.7, Appendix F), and the
factors that tell them."""


ACCURACY = Table(
    name="accuracy",
    title="Every setting",
    text="Each question is one text, and questions about one golden rule are one cluster.",
    by=["model", *SETTING],
    measured="completions",
    numbers=[
        Share("accuracy", "correct texts", "share", of="correct", ends=("low", "high")),
        Plain("unparsed", "texts in which no answer was found", "share", why="accuracy"),
        Plain("refused", "texts that decline to answer", "share", why="accuracy"),
        Plain(
            *("accuracy_unrefused", "correct texts among all others, as for SALAD", "share"),
            of="unrefused",
            why="accuracy",
        ),
    ],
    trials="questions",
    counted="n",
    clusters=RULES,
    order=["accuracy", "low", "high", "n", RULES],
    more=[column(name, TEXT, text) for name, text in SETTING.items()],
)


def accuracy(results: Results) -> Estimated:
    """Accuracies of all settings; a text without an answer counts as wrong."""
    return Estimated(ACCURACY, _trials(results))


def _trials(results: Results) -> pd.DataFrame:
    texts = results.texts
    outcomes = {name: texts["outcome"] == name for name in ("unparsed", "refused")}
    answered = texts["correct"].astype(float).mask(outcomes["refused"])
    # Names of rules are hashes: in the order of the questions, intervals do not depend on them.
    rule = pd.factorize(texts[RULE])[0]
    return texts.assign(**outcomes, unrefused=answered, cluster=rule)


def _shares(trials: pd.DataFrame, by: Sequence[str], name: str) -> pd.DataFrame:
    table = replace(ACCURACY, by=by, numbers=ACCURACY.numbers[:1])
    return estimate(table, trials).rename(columns={"accuracy": name})


def rule_forms(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 1: few and all rules in logic and in natural language, one row per model and form."""
    rows = under(cells, shots="no")
    return _wide(_with_rules(rows[rows["rules"].isin(["few", "all"])]), ["model", "form"])


def versions(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 2: factual and counterfactual rules, one row per model and version."""
    rows = under(cells, shots="yes", thought="yes")
    both = rows.groupby("set")["version"].transform("nunique") == 2
    return _wide(_with_rules(rows[both]), ["model", "version"])


def _with_rules(cells: pd.DataFrame) -> pd.DataFrame:
    return cells.assign(set=cells["set"] + "." + cells["rules"])


def _wide(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    wide = cells.pivot(index=keys, columns="set", values="accuracy")
    return wide[cells["set"].unique()].rename_axis(columns=None).reset_index()


def long_tail(results: Results) -> pd.DataFrame:
    """Table 4: all questions of a set without demonstrations, and those with its rarest answers."""
    rows = under(results.texts, shots="no", form="natural")
    rare = rows.groupby("set")["gold"].transform(lambda golds: golds.isin(rarest(golds)))
    both = pd.concat([rows.assign(instances="all"), rows[rare].assign(instances="long tail")])
    keys = ["model", "set", "instances"]
    shares = both.groupby([*keys, "rules"], sort=False)["correct"].mean().unstack("rules")
    counts = both.groupby(keys, sort=False).agg(
        n=("pair_id", "nunique"), **{RULES: (RULE, "nunique")}
    )
    shown = [rules for rules in ("no", "all", "few", "golden") if rules in shares]
    return counts.join(shares[shown].rename_axis(columns=None)).reset_index()


def rarest(golds: pd.Series) -> list[str]:
    """The least frequent answers, which together make up at least `LONG_TAIL` of all answers."""
    # Equally frequent answers are sorted by name, so every run selects the same answers.
    counts = golds.value_counts().sort_index().sort_values(kind="stable")
    needed = int((counts.cumsum() < LONG_TAIL * len(golds)).sum()) + 1
    return list(counts.index[:needed])


def rule_quantities(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: rows of `accuracy` with no rule, the golden rule, few rules and all rules."""
    rows = under(cells, shots="no", form="natural")
    return in_order(rows, {"rules": ("no", "golden", "few", "all")})


def thoughts(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: rows of `accuracy`; `setting` names the rules and any chain of thought."""
    rows = under(cells, shots="yes", version="factual")
    settings = rows["rules"] + rows["thought"].map({"no": "", "yes": ", with thought"})
    order = ("golden", "golden, with thought", "few", "few, with thought")
    return in_order(rows.assign(setting=settings), {"setting": order})


def failures(results: Results) -> pd.DataFrame:
    """Figure 6: the share of each kind of failure among all n failures, by model and set.

    Texts have few rules and a chain of thought and, if their set has a counterfactual version, are
    of this version, as in the paper.
    """
    rows = under(_trials(results), thought="yes", rules="few")
    changed = rows["version"] == "counterfactual"
    rows = rows[changed | ~rows["set"].isin(rows.loc[changed, "set"])]
    wrong = rows[~rows["correct"]]
    named = wrong["completion"].map(named_rule).astype(float)
    golden = named == wrong["golden_place"].astype(float)
    used = np.select([named.isna(), golden], [_NO_RULE, EXECUTION], TRIGGERING)
    kinds = pd.DataFrame({"behavior": [TRIGGERING, EXECUTION, _NO_RULE]})
    keys = ["model", "set", "version"]
    each = wrong.assign(used=used).merge(kinds, how="cross")
    each["correct"] = each["used"] == each["behavior"]
    accuracies = rows.groupby(keys, sort=False)["correct"].mean().rename("accuracy").reset_index()
    every = pd.concat([accuracies[keys].merge(kinds, how="cross"), each], ignore_index=True)
    return _shares(every, [*keys, "behavior"], "share_of_failures").merge(accuracies, on=keys)


def tunings(places: Mapping[str, str]) -> pd.DataFrame:
    """The models before (base) and after (irft) tuning, if both were measured.

    `places` says where each model was found; trained_on is "string-game", "kinship" or a folder.
    """
    names = {place: name for name, place in places.items()}
    rows = [
        (str(training.options.get("data")), tuning, name)
        for model, training in trained(places, RuleFollowing.name)
        if (base := names.get(absolute(training.model)))
        for tuning, name in (("base", base), ("irft", model))
    ]
    # Models that were tuned on the same data may have the same base.
    return pd.DataFrame(rows, columns=["trained_on", "tuning", "model"]).drop_duplicates()


def tuned(cells: pd.DataFrame, tunings: pd.DataFrame, *quantities: str) -> pd.DataFrame:
    """Tables 3 and 5: rows of `tunings`, with accuracies from rows of `accuracy`.

    With several quantities of rules, rules is a column. Rules are factual and in natural language,
    without demonstrations.
    """
    keys = ["model", "trained_on", *["rules"] * (len(quantities) > 1), "tuning"]
    plain = under(cells, shots="no", form="natural", version="factual")
    chosen = tunings.merge(plain[plain["rules"].isin(quantities)], on="model")
    return chosen[keys].drop_duplicates().merge(_wide(chosen, keys), on=keys)


def dimensions(results: Results) -> pd.DataFrame:
    """Figure 2: the mean accuracy over the settings of each dimension, by model.

    The interval also treats the accuracies under the settings as a sample, so it is somewhat too
    wide. settings: combinations of set and setting; n: questions.
    """
    rows = _trials(results)
    sizes = rows.groupby(["model", *SETTING])["correct"].transform("size")
    setting = pd.Series(map(" ".join, rows[list(SETTING)].to_numpy()), rows.index, dtype=object)
    rows = rows.assign(weight=1 / sizes, setting=setting)
    both = pd.concat(
        under(rows, **setting).assign(dimension=name) for name, (_, setting) in DIMENSIONS.items()
    )
    keys = ["model", "dimension"]
    shares = _shares(both, keys, "score").drop(columns="n")
    counts = both.groupby(keys).agg(settings=("setting", "nunique"), n=("pair_id", "nunique"))
    table = shares.merge(counts.reset_index(), on=keys)
    table = in_order(table, {"model": results.models, "dimension": list(DIMENSIONS)})
    columns = [*keys, "score", "low", "high", "settings", "n", RULES, "note"]
    return table[columns].reset_index(drop=True)


def not_measured(results: Results) -> pd.DataFrame:
    """One row per model and setting: how many prompts failed, and the first error message."""
    groups = results.failed.groupby(["model", *SETTING], sort=False)["error"]
    return groups.agg(prompts="size", one_of_them="first").reset_index()


def published(number: int) -> pd.DataFrame:
    """Table 1, 2, 3, 4 or 5 as published, with shares instead of percentages."""
    table = published_table(__package__, f"published_table{number}.csv")
    values = table.select_dtypes("float").columns
    return table.assign(**{name: table[name] / 100 for name in values})
