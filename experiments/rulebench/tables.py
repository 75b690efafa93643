"""The tables of the study of RuleBench (paper, Tables 1 to 5, and the data of its figures)."""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from interp.statistics.proportions import proportions
from interp.training.folder import training_of
from interp_experiments.rulebench.learning import STRING_GAME, RuleFollowing
from interp_experiments.rulebench.reading import FAILURES
from interp_experiments.rulebench.results import RULE, SETTING, Results
from interp_experiments.scaffold import in_order, published_table


class Tuning(NamedTuple):
    """A tuned model, from its training record."""

    model: str
    base: str
    """The model before tuning."""
    trained_on: str
    """The questions that it learned: "string-game", "kinship", or a folder."""

    @property
    def is_string_game(self) -> bool:
        """Whether it learned StringGame, whose rules occur in no other set."""
        return self.trained_on == STRING_GAME


def tunings(models: Sequence[str]) -> list[Tuning]:
    """The models that are tuned versions of others among them, in order."""
    found = (_tuning(model) for model in models)
    return [tuning for tuning in found if tuning is not None and tuning.base in models]


def _tuning(model: str) -> Tuning | None:
    """The IRFT part of a model's record; None if the record has none."""
    record = training_of(model)
    if record is None or record.training.task != RuleFollowing.name:
        return None
    return Tuning(model, record.training.model, str(record.training.options.get("data")))


LONG_TAIL = 0.1
"""The rarest answers of a set together have at least this share of its questions (Appendix D)."""

RULES = "golden_rules"
"""The column that counts clusters."""

DIMENSIONS = ("executing", "triggering", "formal", "applying", "counterfactual")
"""The dimensions of rule following (Section 4.7, Appendix F)."""


def accuracy(results: Results) -> pd.DataFrame:
    """One row per model and setting: accuracy with its 95% interval, n, golden_rules, ...

    n counts questions, golden_rules the different rules that they are about: the clusters of the
    intervals. unparsed and refused are shares. A text without an answer is wrong.
    `accuracy_unrefused` omits refusals, as the paper does for SALAD.
    """
    rows = results.texts
    by = ["model", *SETTING]
    table = proportions(rows, values=["correct"], by=by, cluster=RULE)
    table = table.rename(columns={"share": "accuracy", "clusters": RULES})
    table = table[[*by, "accuracy", "low", "high", "n", RULES]]
    for outcome in ("unparsed", "refused"):
        shares = (rows["outcome"] == outcome).groupby([rows[name] for name in by]).mean()
        table = table.merge(shares.rename(outcome).reset_index(), on=by)
    table["accuracy_unrefused"] = table["accuracy"] / (1 - table["refused"]).where(
        table["refused"] < 1
    )
    return table


def rule_forms(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 1: few and all rules in logic and in natural language, a row per model and form."""
    rows = cells[(cells["shots"] == "no") & cells["rules"].isin(["few", "all"])]
    return _wide(rows, ["model", "form"])


def versions(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 2: factual and counterfactual rules, a row per model and version."""
    rows = cells[(cells["shots"] == "yes") & (cells["thought"] == "yes")]
    both = rows.groupby("set")["version"].transform("nunique") == 2
    return _wide(rows[both], ["model", "version"])


def long_tail(results: Results) -> pd.DataFrame:
    """Table 4: all questions of a set and those with its rarest answers, without demonstrations.

    Columns are model, set, instances, n (questions), golden_rules (that they are about), and the
    accuracy under each setting.
    """
    rows = results.texts
    rows = rows[(rows["shots"] == "no") & (rows["form"] == "natural")]
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
    """The least frequent answers that make up at least `LONG_TAIL` of all."""
    # Equally frequent answers are sorted by name, so the same ones are taken everywhere.
    counts = golds.value_counts().sort_index().sort_values(kind="stable")
    needed = int((counts.cumsum() < LONG_TAIL * len(golds)).sum()) + 1
    return list(counts.index[:needed])


def rule_quantities(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: rows of `accuracy` with no, the golden, few and all rules."""
    rows = cells[(cells["shots"] == "no") & (cells["form"] == "natural")]
    return in_order(rows, {"rules": ("no", "golden", "few", "all")})


def thoughts(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: rows of `accuracy` with and without chain of thought; `setting` says which."""
    rows = cells[(cells["shots"] == "yes") & (cells["version"] == "factual")]
    settings = rows["rules"] + rows["thought"].map({"no": "", "yes": ", with thought"})
    order = [
        f"{rules}{thought}" for rules in ("golden", "few") for thought in ("", ", with thought")
    ]
    return in_order(rows.assign(setting=settings), {"setting": order})


def failures(results: Results) -> pd.DataFrame:
    """Figure 6: one row per model, set and kind of failure: its share of all failures.

    Columns are model, set, version, behaviour, share_of_failures with its 95% interval (low and
    high), n (failures), golden_rules (that they are about), accuracy. A set without failures has
    no share.
    """
    rows = results.behaviours()
    keys = ["model", "set", "version"]
    kinds = {kind: rows["behaviour"] == kind for kind in FAILURES}
    wrong = rows.assign(**kinds)[~rows["correct"]]
    shares = proportions(wrong, values=list(FAILURES), by=keys, cluster=RULE)
    named = {"measure": "behaviour", "share": "share_of_failures", "clusters": RULES}
    shares = shares.rename(columns=named).drop(columns="note")
    accuracies = rows.groupby(keys, sort=False)["correct"].mean().rename("accuracy").reset_index()
    table = accuracies.merge(pd.DataFrame({"behaviour": FAILURES}), how="cross")
    table = table.merge(shares, on=[*keys, "behaviour"], how="left")
    counts = table[["n", RULES]].fillna(0).astype(int)
    columns = [*keys, "behaviour", "share_of_failures", "low", "high", "n", RULES, "accuracy"]
    return table.assign(**counts)[columns]


def tuning(cells: pd.DataFrame, tuned: Sequence[Tuning]) -> pd.DataFrame:
    """Rows of `accuracy` of models before and after tuning, the two of a tuned model together.

    Columns `trained_on` and `tuning` ("base" or "irft") are added; `tuned` names the tuned model.
    """
    parts = [
        cells[cells["model"] == model].assign(
            trained_on=each.trained_on, tuning=name, tuned=each.model
        )
        for each in tuned
        for name, model in (("base", each.base), ("irft", each.model))
    ]
    columns = ["tuned", "trained_on", "tuning", *cells.columns]
    return pd.concat([cells.head(0), *parts])[columns] if parts else pd.DataFrame(columns=columns)


def tuned_on_string_game(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 3: few rules, without demonstrations, before and after tuning on StringGame.

    Args:
        rows: `tuning`, of models that were tuned on StringGame.
    """
    chosen = rows[_is_plain(rows) & (rows["rules"] == "few")]
    return _by_set(chosen, ["model", "trained_on", "tuning"])


def tuned_in_domain(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 5: golden and few rules, without demonstrations, before and after tuning.

    Args:
        rows: `tuning`, of models that were tuned on other questions than StringGame.
    """
    chosen = rows[_is_plain(rows) & rows["rules"].isin(["golden", "few"])]
    return _by_set(chosen, ["model", "trained_on", "rules", "tuning"])


def _is_plain(rows: pd.DataFrame) -> pd.Series:
    return (rows["shots"] == "no") & (rows["form"] == "natural") & (rows["version"] == "factual")


def _by_set(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per key, and one column per set with accuracies."""
    # A base of several tuned models has the same row for each of those with the same data.
    unique = rows.drop_duplicates([*keys, "set"])
    wide = unique.pivot(index=keys, columns="set", values="accuracy")
    order = pd.MultiIndex.from_frame(unique[keys].drop_duplicates())
    named = wide.reindex(index=order, columns=list(dict.fromkeys(unique["set"])))
    return named.rename_axis(columns=None).reset_index()


def dimensions(results: Results) -> pd.DataFrame:
    """Figure 2: one row per model and dimension: the mean accuracy over its settings and sets.

    Columns are model, dimension, score with its 95% interval (low and high; it also treats the
    settings' accuracies as a sample, and is rather too wide), settings (how many; 0 if the score is
    undefined), n (questions), golden_rules.
    """
    rows = results.texts
    sizes = rows.groupby(["model", *SETTING])["correct"].transform("size")
    rows = rows.assign(weight=1 / sizes, setting=rows[list(SETTING)].agg(" ".join, axis=1))
    of = {
        "executing": rows["rules"] == "golden",
        "triggering": rows["rules"] == "all",
        "formal": rows["form"] == "logic",
        "applying": (rows["thought"] == "yes") & (rows["rules"] != "no"),
        "counterfactual": rows["version"] == "counterfactual",
    }
    parts = [rows[chosen].assign(dimension=name) for name, chosen in of.items()]
    both, keys = pd.concat(parts), ["model", "dimension"]
    shares = proportions(both, values=["correct"], by=keys, cluster=RULE, weight="weight")
    shares = shares.rename(columns={"share": "score", "clusters": RULES})
    counts = both.groupby(keys).agg(settings=("setting", "nunique"), n=("pair_id", "nunique"))
    cells = pd.MultiIndex.from_product([rows["model"].unique(), DIMENSIONS], names=keys)
    table: pd.DataFrame = cells.to_frame(index=False).merge(
        shares[[*keys, "score", "low", "high", RULES]], on=keys, how="left"
    )
    table = table.merge(counts.reset_index(), on=keys, how="left")
    whole = table[["settings", "n", RULES]].fillna(0).astype(int)
    return table.assign(**whole)[[*keys, "score", "low", "high", "settings", "n", RULES]]


def not_measured(results: Results) -> pd.DataFrame:
    """One row per model, setting and reason: prompts that could not be measured."""
    keys = ["model", *SETTING]
    groups = results.failed.groupby(keys, sort=False)["error"]
    return groups.agg(prompts="size", one_of_them="first").reset_index()


def published(number: int) -> pd.DataFrame:
    """Table 1, 2, 3, 4 or 5 as published, with shares for percentages."""
    table = published_table(__package__, f"published_table{number}.csv")
    values = table.select_dtypes("float").columns
    return table.assign(**{name: table[name] / 100 for name in values})


def _wide(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per key, and one column "set.rules" with accuracies."""
    named = cells.assign(column=cells["set"] + "." + cells["rules"])
    if named.empty:
        return pd.DataFrame(columns=keys)
    order = list(dict.fromkeys(named["column"]))
    wide = named.pivot(index=keys, columns="column", values="accuracy")[order]
    return wide.rename_axis(columns=None).reset_index()
