"""The tables of the study: measured, baseline and published scores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal as OneOf

import pandas as pd

from interp.extend.estimates import estimate
from interp_experiments.robustlr import results
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS
from interp_experiments.robustlr.learning import STATEMENTS, RobustLRTraining
from interp_experiments.robustlr.variants import CONTRAST_SETS, EQUIVALENCE_SETS
from interp_experiments.scaffold import in_order, published_table, trained

KEY = ["model", "training", "source"]
"""The columns that identify a row; training is empty for measured models."""

Kind = OneOf["contrast", "equivalence"]

SETS: Mapping[Kind, tuple[str, ...]] = {
    "contrast": tuple(CONTRAST_SETS),
    "equivalence": tuple(EQUIVALENCE_SETS),
}

WHOLE = "whole theories"
"""The column of scores on whole theories, as in the paper."""

GROUPS = tuple(dict.fromkeys(edit.group for edits in CONTRAST_SETS.values() for edit in edits))
"""Groups of edits, the base first."""


def published(*tables: int) -> pd.DataFrame:
    """Published scores: one row per table, model, training data, set and part of the set.

    `column` is that of `sets` and `parts`.
    """
    frame = published_table(__package__, "published.csv").fillna({"training": "", "part": ""})
    frame["column"] = (frame["set"] + " " + frame["part"]).str.removesuffix(" all")
    return frame[frame["table"].isin(tables)].reset_index(drop=True)


def scores(rows: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Every score with its interval: one row per set (in the paper's order) and per model or guess.

    Values of the further columns `by` are scored separately.
    """
    rows = results.with_baselines(in_order(rows, {"set": EVALUATION_SETS}))
    return results.score_table(rows, ["source", "model", "set", *by])


def sets(rows: pd.DataFrame, kind: Kind, *published_in: int) -> pd.DataFrame:
    """Weighted F1 for each set of a kind, and their average: Tables 2, 4, 5 and 6.

    Columns are model, training, source ("measured", "baseline" or "published"), theories (in each
    set, such as "40" or "6-7"; empty if published), average, and the sets, each followed by the
    ends of its 95% interval (low and high; NaN if published). Published averages are as printed.
    """
    rows, names = rows[rows["set"].isin(SETS[kind])], SETS[kind]
    ours = _and_averages(rows, kind).assign(column=lambda both: both["set"])
    ours["theories"] = ours["theories"].where(ours["set"].isin(names))
    ours, theirs = (
        each.replace({"column": {f"{kind} average": "average"}})
        for each in (ours, published(*published_in))
    )
    return _beside(ours, theirs, ["average", *names], ("f1", "f1_low", "f1_high"))


def parts(
    rows: pd.DataFrame, kind: Kind, part: str, names: Sequence[str], *published_in: int
) -> pd.DataFrame:
    """Weighted F1 for each part of each set of a kind; column `theories` is as in `sets`.

    Parts are the values of a column: groups of edits (Tables 14 to 16) or labels (17 to 22).
    """
    measured = scores(rows[rows["set"].isin(SETS[kind])], part)
    measured = measured.assign(column=measured["set"] + " " + measured[part])
    columns = [f"{name} {of}" for name in SETS[kind] for of in names]
    return _beside(measured, published(*published_in), columns).dropna(axis="columns", how="all")


def _and_averages(rows: pd.DataFrame, *kinds: Kind) -> pd.DataFrame:
    theories = results.theory_scores(results.with_baselines(rows), ["source", "model", "set"])
    means = [averages(theories, kind).assign(set=f"{kind} average") for kind in kinds]
    return pd.concat([scores(rows), *means], ignore_index=True)


def averages(theories: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """The means over the sets of a kind, all with the same weight; blank if a set is missing.

    One row per source and model, with the columns of `SCORES`. Intervals also treat the means of
    the sets as a sample, so they are somewhat too wide. `theories` are rows of `theory_scores` by
    source, model and set.
    """
    statement_scores = with_equal_sets(theories[theories["set"].isin(SETS[kind])])
    table = estimate(replace(results.SCORES, by=["source", "model"]), statement_scores)
    sets = statement_scores.groupby(["source", "model"], sort=False)["set"].nunique().to_numpy()
    missing = sets < len(SETS[kind])
    table.loc[missing, "note"] = "a set of this kind has no theories"
    table.loc[missing, "f1":"consistency_high"] = float("nan")
    return table


def with_equal_sets(theories: pd.DataFrame) -> pd.DataFrame:
    """The rows, with a column weight that gives every set of a model the same weight."""
    return theories.assign(weight=1 / theories.groupby(["model", "set"])["f1"].transform("size"))


def operators(rows: pd.DataFrame) -> pd.DataFrame:
    """Every score for each group of edits, over all contrast sets (Figure 4)."""
    rows = rows[rows["set"].isin(SETS["contrast"])]
    table = results.score_table(results.with_baselines(rows), ["source", "model", "group"])
    return in_order(table, {"group": GROUPS}).reset_index(drop=True)


def distractors(by_stage: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Every score, and the averages of both kinds, without and with distractors (Figure 6)."""
    parts = [
        _and_averages(rows, *SETS).assign(theories_have=name) for name, rows in by_stage.items()
    ]
    return pd.concat(parts, ignore_index=True)


def in_domain(stages: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Weighted F1 on the whole test split, measured and published (Table 3).

    Columns are those of `KEY`, statements (how many each score covers), and the stages, whose rows
    `stages` has by column; `WHOLE` also holds the published numbers.
    """
    both = pd.concat(
        scores(rows.assign(pair_id=rows["set"])).assign(column=column)
        for column, rows in stages.items()
    )
    both = both[~both["model"].isin(results.OF_BASE)]  # Here each statement is its own base.
    table = _beside(both, published(3).assign(column=WHOLE), list(dict.fromkeys([*stages, WHOLE])))
    counts = [f"{rows['prompt_id'].nunique():,}" for rows in stages.values()]
    said = ", ".join(counts if len(set(counts)) > 1 else counts[:1])
    table["theories"] = table["source"].map({"published": ""}).fillna(said)
    return table.rename(columns={"theories": "statements"})


def _beside(
    measured: pd.DataFrame,
    theirs: pd.DataFrame,
    columns: Sequence[str],
    values: Sequence[str] = ("f1",),
) -> pd.DataFrame:
    """One row per `KEY` and theories (as text); `values` by `column`, in the order of `columns`."""
    theirs = theirs.drop_duplicates(["model", "training", "column"]).assign(source="published")
    both = pd.concat([measured.assign(training=""), theirs], ignore_index=True)
    wide = both.pivot(index=KEY, columns="column", values=list(values))
    wide = wide.reindex(columns=[(value, column) for column in columns for value in values])
    ends = [value.removeprefix("f1") for value in values]
    wide.columns = pd.Index([f"{column}{end}" for column in columns for end in ends])
    wide.insert(0, "theories", both.groupby(KEY)["theories"].agg(_span))
    return wide.loc[pd.MultiIndex.from_frame(both[KEY].drop_duplicates())].reset_index()


def _span(counts: pd.Series) -> str:
    """Counts as a number or a range, such as "40" or "6-7"; empty without any."""
    ends = dict.fromkeys([counts.min(), counts.max()])
    return "-".join(f"{end:,.0f}" for end in ends if not pd.isna(end))


def training_sizes(places: Mapping[str, str]) -> pd.DataFrame:
    """One row per model made by `train robustlr`: begun_as (its base), train_set and statements.

    `places` says where each model was found.
    """
    rows = [
        (model, training.model, str(training.options.get("train_set")), theories * len(STATEMENTS))
        for model, training in trained(places, RobustLRTraining.name)
        if isinstance(theories := training.options.get("theories"), int)
    ]
    return pd.DataFrame(rows, columns=["model", "begun_as", "train_set", "statements"])


def size_table(rows: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Scores on all contrast sets and on all equivalence sets, by size of the training set.

    A model is included only if another one began as the same model and was trained on a different
    size of the same training set.
    """
    numbers = sizes.groupby(["begun_as", "train_set"])["statements"].transform("nunique")
    kinds = {name: kind for kind, names in SETS.items() for name in names}
    compared = sizes[numbers > 1].merge(rows.assign(sets=rows["set"].map(kinds)), on="model")
    by = ["begun_as", "train_set", "sets", "statements", "model"]
    return results.score_table(compared.sort_values(by, kind="stable"), by)
