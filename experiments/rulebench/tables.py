"""The tables of the study of RuleBench (paper, Tables 1, 2 and 4, and what its figures show)."""

from importlib.resources import files

import pandas as pd

from interp.analysis.proportions import proportions
from interp_experiments.rulebench.behaviour import FAILURES
from interp_experiments.rulebench.results import SETTING, Results

LONG_TAIL = 0.1
"""Least share of a set's questions that its rarest answers make up together (Appendix D)."""

DIMENSIONS = ("executing", "triggering", "formal", "applying", "counterfactual")
"""What a model's rule following is made of (Section 4.7, Appendix F)."""


def accuracy(results: Results) -> pd.DataFrame:
    """One row per model and setting: accuracy with its 95% interval, n, unparsed, refused.

    A text without answer is wrong. `accuracy_unrefused` leaves out what was refused, as the paper
    does for SALAD.
    """
    rows = results.texts
    by = ["model", *SETTING]
    table = proportions(rows, values=["correct"], by=by, cluster=None)
    table = table.rename(columns={"share": "accuracy"})[[*by, "accuracy", "low", "high", "n"]]
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
    """Table 4: all questions of a set and those with its rarest answers, without demonstrations."""
    rows = results.texts
    rows = rows[(rows["shots"] == "no") & (rows["form"] == "natural")]
    rare = rows.groupby("set")["gold"].transform(lambda golds: golds.isin(rarest(golds)))
    both = pd.concat([rows.assign(instances="all"), rows[rare].assign(instances="long tail")])
    keys = ["model", "set", "instances"]
    shares = both.groupby([*keys, "rules"], sort=False)["correct"].mean().unstack("rules")
    return _in_order(shares, ["no", "all", "few", "golden"]).reset_index()


def rarest(golds: pd.Series) -> list[str]:
    """The least frequent answers that make up at least `LONG_TAIL` of all."""
    # Answers of one frequency by name, so that the same ones are taken everywhere.
    counts = golds.value_counts().sort_index().sort_values(kind="stable")
    needed = int((counts.cumsum() < LONG_TAIL * len(golds)).sum()) + 1
    return list(counts.index[:needed])


def rule_quantities(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: rows of `accuracy` with no, the golden, few and all rules."""
    rows = cells[(cells["shots"] == "no") & (cells["form"] == "natural")]
    return _ordered(rows, "rules", ["no", "golden", "few", "all"])


def thoughts(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: rows of `accuracy` with and without chain of thought; `setting` says which."""
    rows = cells[(cells["shots"] == "yes") & (cells["version"] == "factual")]
    settings = rows["rules"] + rows["thought"].map({"no": "", "yes": ", with thought"})
    order = [
        f"{rules}{thought}" for rules in ("golden", "few") for thought in ("", ", with thought")
    ]
    return _ordered(rows.assign(setting=settings), "setting", order)


def failures(results: Results) -> pd.DataFrame:
    """Figure 6: one row per model, set and kind of failure: its share of all failures.

    Columns are model, set, version, behaviour, share_of_failures, n (failures) and accuracy.
    """
    rows = results.behaviours()
    parts = []
    for (model, name, version), each in rows.groupby(["model", "set", "version"], sort=False):
        wrong = each.loc[~each["correct"], "behaviour"]
        shares = wrong.value_counts(normalize=True)
        for kind in FAILURES:
            share = float(shares.get(kind, 0.0)) if len(wrong) else float("nan")
            parts.append((model, name, version, kind, share, len(wrong), each["correct"].mean()))
    columns = ["model", "set", "version", "behaviour", "share_of_failures", "n", "accuracy"]
    return pd.DataFrame(parts, columns=columns)


def dimensions(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: one row per model and dimension: the mean accuracy over its settings and sets.

    Columns are model, dimension, score, settings (how many, 0 where the score is undefined).
    """
    of = {
        "executing": cells["rules"] == "golden",
        "triggering": cells["rules"] == "all",
        "formal": cells["form"] == "logic",
        "applying": (cells["thought"] == "yes") & (cells["rules"] != "no"),
        "counterfactual": cells["version"] == "counterfactual",
    }
    parts = []
    for model, rows in cells.groupby("model", sort=False):
        for name in DIMENSIONS:
            chosen = rows.loc[of[name].loc[rows.index], "accuracy"]
            parts.append((model, name, chosen.mean(), len(chosen)))
    return pd.DataFrame(parts, columns=["model", "dimension", "score", "settings"])


def not_measured(results: Results) -> pd.DataFrame:
    """One row per model, setting and reason: prompts that could not be measured."""
    keys = ["model", *SETTING]
    groups = results.failed.groupby(keys, sort=False)["error"]
    return groups.agg(prompts="size", one_of_them="first").reset_index()


def published(number: int) -> pd.DataFrame:
    """Table 1, 2 or 4 as published, with accuracies as shares."""
    table = pd.read_csv(str(files(__package__) / "data" / f"published_table{number}.csv"))
    values = table.select_dtypes("float").columns
    return table.assign(**{name: table[name] / 100 for name in values})


def measured_and_published(measured: pd.DataFrame, number: int) -> pd.DataFrame:
    """Both tables, one below the other; `source` says which is which."""
    both = pd.concat(
        [measured.assign(source="measured"), published(number).assign(source="published")],
        ignore_index=True,
    )
    return both[["model", "source", *(c for c in both.columns if c not in ("model", "source"))]]


def _wide(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per key, and one column "set.rules" with accuracies."""
    named = cells.assign(column=cells["set"] + "." + cells["rules"])
    if named.empty:
        return pd.DataFrame(columns=keys)
    order = list(dict.fromkeys(named["column"]))
    wide = named.pivot(index=keys, columns="column", values="accuracy")[order]
    return wide.rename_axis(columns=None).reset_index()


def _in_order(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    known = [name for name in columns if name in table.columns]
    return table[known].rename_axis(columns=None)


def _ordered(rows: pd.DataFrame, column: str, first: list[str]) -> pd.DataFrame:
    """The rows, those with these values of a column first."""
    place = {value: number for number, value in enumerate(first)}
    keys = rows[column].map(lambda value: place.get(value, len(first)))
    return rows.iloc[keys.argsort(kind="stable")]
