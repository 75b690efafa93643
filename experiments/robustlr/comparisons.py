"""Comparisons of weighted F1 that were fixed before any model was measured.

1. Each model with the best constant guess, on each set and on the mean of each kind of set.
2. The contrast sets with each other, for each model: which operator is the hardest?
3. Every pair of models, on the mean of each kind of set.

The best constant guess for a set is the label with the highest F1 if it is given to every
statement; it depends only on the correct labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import pandas as pd

from interp.extend import counted
from interp.extend.statistics import Difference, difference
from interp_experiments.findings import family_table
from interp_experiments.robustlr.language import LABELS
from interp_experiments.robustlr.results import BARE, BASELINES, SETS, theory_scores, with_baselines
from interp_experiments.robustlr.tables import SETS as OF_KIND
from interp_experiments.robustlr.tables import with_equal_sets

GUESS = "best constant guess"

TEST_SPLIT = "test split"
"""An additional set: in-domain statements, each with only the sentences that decide it."""

AGAINST_GUESS, BETWEEN_SETS, BETWEEN_MODELS = "against a guess", "between sets", "between models"

Where = Mapping[str, object]


def comparisons(stages: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per comparison, with the columns of `findings.family_table`.

    The first columns are model (empty in comparisons between models), kind (against a guess,
    between sets or between models), sets, contrast ("a - b"), name (the comparison in words) and n
    (the number of theories, in words).
    """
    rows = stages[SETS]
    if BARE in stages:
        rows = pd.concat([rows, stages[BARE].assign(set=TEST_SPLIT)], ignore_index=True)
    theories = theory_scores(with_baselines(rows), ["model", "set"])
    theories = pd.concat([theories, best_guesses(theories)], ignore_index=True)
    keys = ["model", "kind", "sets", "contrast", "name", "n"]
    return family_table(_named(with_equal_sets(theories)), keys)


def kinds(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The comparisons by subject, in the order in which the first screen reports them."""
    against = table[table["kind"] == AGAINST_GUESS]
    found = {
        "Accuracy on the bare test split against guessing": against[against["sets"] == TEST_SPLIT],
        **{
            f"F1 of {kind} sets against guessing": against[
                against["sets"].isin([*names, f"{kind} sets"])
            ]
            for kind, names in OF_KIND.items()
        },
        "Between models, F1": table[table["kind"] == BETWEEN_MODELS],
        "Between contrast sets, F1": table[table["kind"] == BETWEEN_SETS],
    }
    return {subject: rows for subject, rows in found.items() if len(rows)}


def best_guesses(theories: pd.DataFrame) -> pd.DataFrame:
    """The rows of the best constant guess for each set, under the name `GUESS`."""
    constant = [name for name in BASELINES[: len(LABELS)] if name in set(theories["model"])]
    means = theories.groupby(["set", "model"], sort=False)["f1"].mean().unstack()[constant]
    best = theories["set"].map(means.idxmax(axis=1))
    return theories[theories["model"] == best].assign(model=GUESS)


def _named(theories: pd.DataFrame) -> Iterator[tuple[Where, Difference]]:
    models = [model for model in theories["model"].unique() if model not in (*BASELINES, GUESS)]
    there = set(theories["set"])
    means = {f"{kind} sets": names for kind, names in OF_KIND.items() if set(names) <= there}
    alone = {name: (name,) for names in (*OF_KIND.values(), (TEST_SPLIT,)) for name in names}
    f1 = {
        (model, name): _sums(theories, model, members)
        for model in (*models, GUESS)
        for name, members in {**alone, **means}.items()
        if set(members) <= there
    }
    for model in models:
        for name in (*alone, *means):
            if (model, name) in f1:
                where = {"model": model, "kind": AGAINST_GUESS, "sets": name}
                found = difference(f1[model, name], f1[GUESS, name])
                yield _row(where, f"{model} - {GUESS}", f"{model}, {name}", found)
        for a, b in combinations(OF_KIND["contrast"], 2):
            if {a, b} <= there:
                found = difference(f1[model, a], f1[model, b])
                where = {"model": model, "kind": BETWEEN_SETS, "sets": f"{a}, {b}"}
                yield _row(where, f"{a} - {b}", f"{model}, {a} − {b}", found)
    for name in means:
        for a, b in combinations(models, 2):
            where = {"model": "", "kind": BETWEEN_MODELS, "sets": name}
            found = difference(f1[a, name], f1[b, name])
            yield _row(where, f"{a} - {b}", f"{a} − {b}, {name}", found)


def _row(where: Where, contrast: str, name: str, found: Difference) -> tuple[Where, Difference]:
    count, of_statements = found.clusters, where["sets"] == TEST_SPLIT
    theories = "theory" if count == 1 else "theories"
    n = counted(count, "statement") if of_statements else f"{count:,} {theories}"
    return {**where, "contrast": contrast, "name": name, "n": n}, found


def _sums(theories: pd.DataFrame, model: str, names: Sequence[str]) -> pd.DataFrame:
    """The F1 of each theory as hits out of trials; all sets have the same weight."""
    rows = theories[(theories["model"] == model) & theories["set"].isin(names)]
    rows = rows.set_index("pair_id")
    return pd.DataFrame({"hits": rows["f1"] * rows["weight"], "trials": rows["weight"]})
