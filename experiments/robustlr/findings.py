"""Comparisons of weighted F1 that were fixed before any model was measured, and the first screen.

1. Each model with the best constant guess, on each set and on the mean of each kind of set.
2. The contrast sets with each other, for each model: which operator is the hardest?
3. Every pair of models, on the mean of each kind of set.

The best constant guess for a set is the label with the highest F1 if it is given to every
statement; it depends only on the correct labels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

import pandas as pd

from interp.extend import counted, page
from interp.extend.estimates import estimate
from interp.extend.statistics import difference
from interp_experiments import findings
from interp_experiments.robustlr import tables
from interp_experiments.robustlr.language import LABELS
from interp_experiments.robustlr.results import (
    BARE,
    BASELINES,
    SCORES,
    SETS,
    Results,
    theory_scores,
    with_baselines,
)

GUESS = "best constant guess"

TEST_SPLIT = "test split"
"""An additional set: in-domain statements, each with only the sentences that decide it."""

AGAINST_GUESS, BETWEEN_SETS, BETWEEN_MODELS = "against a guess", "between sets", "between models"

_NAMES = {"f1": "weighted F1", "consistency": "consistency"}


def comparisons(stages: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One row per comparison, with the columns of `findings.family_table`.

    Before them come model (empty between models), kind (against a guess, between sets or between
    models), sets, contrast ("a - b"), name (the comparison in words) and n (theories, in words).
    """
    rows = stages[SETS]
    if BARE in stages:
        rows = pd.concat([rows, stages[BARE].assign(set=TEST_SPLIT)], ignore_index=True)
    models = list(rows["model"].unique())
    theories = tables.with_equal_sets(_with_guess(rows, models))
    measured = set(theories["set"])
    alone = {name: (name,) for name in (*chain(*tables.SETS.values()), TEST_SPLIT)}
    means = {f"{kind} sets": names for kind, names in tables.SETS.items()}
    sets = {name: names for name, names in {**alone, **means}.items() if measured.issuperset(names)}
    tested = []
    for where, one, other in _named(models, list(sets)):
        compared = difference(*(_sums(theories, model, sets[on]) for model, on in (one, other)))
        count, place = compared.clusters, int(where["kind"] == BETWEEN_SETS)
        n = f"{count:,} {'theory' if count == 1 else 'theories'}"
        n = counted(count, "statement") if where["sets"] == TEST_SPLIT else n
        tested.append(({**where, "contrast": f"{one[place]} - {other[place]}", "n": n}, compared))
    return findings.family_table(tested, ["model", "kind", "sets", "contrast", "name", "n"])


def _named(
    models: list[str], sets: list[str]
) -> Iterator[tuple[dict[str, str], tuple[str, str], tuple[str, str]]]:
    """Each comparison's place and name, and the two pairs of a model and a set that it is of."""
    edits = [(a, b) for a, b in combinations(tables.SETS["contrast"], 2) if {a, b} <= set(sets)]
    for model in models:
        for name in sets:
            where = {"model": model, "kind": AGAINST_GUESS, "sets": name}
            yield {**where, "name": f"{model}, {name}"}, (model, name), (GUESS, name)
        for a, b in edits:
            where = {"model": model, "kind": BETWEEN_SETS, "sets": f"{a}, {b}"}
            yield {**where, "name": f"{model}, {a} − {b}"}, (model, a), (model, b)
    for name in [f"{kind} sets" for kind in tables.SETS if f"{kind} sets" in sets]:
        for a, b in combinations(models, 2):
            where = {"model": "", "kind": BETWEEN_MODELS, "sets": name}
            yield {**where, "name": f"{a} − {b}, {name}"}, (a, name), (b, name)


def _sums(theories: pd.DataFrame, model: str, names: Sequence[str]) -> pd.DataFrame:
    """The F1 of each theory as hits out of trials; all sets have the same weight."""
    rows = theories[(theories["model"] == model) & theories["set"].isin(names)]
    rows = rows.set_index("pair_id")
    return pd.DataFrame({"hits": rows["f1"] * rows["weight"], "trials": rows["weight"]})


def first_screen(results: Results, table: pd.DataFrame) -> page.Glance:
    """Each model's mean scores, and those of the best constant guess."""
    rows = results.rows[SETS]
    theories, sets = rows["pair_id"].nunique(), rows["set"].nunique()
    low, high = rows.groupby("set")["pair_id"].nunique().agg(["min", "max"])
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    question = (
        "Do a model's answers follow minimal edits and paraphrases of a theory? "
        f"{counted(len(results.models), 'model')}, {counted(sets, 'set')} with {theories:,} "
        f"{'theory' if theories == 1 else 'theories'} in total ({each} each) and variants."
    )
    against = table[table["kind"] == AGAINST_GUESS]
    subjects = {
        "Accuracy on the bare test split against guessing": against[against["sets"] == TEST_SPLIT],
        **{
            f"F1 of {kind} sets against guessing": against[
                against["sets"].isin([*names, f"{kind} sets"])
            ]
            for kind, names in tables.SETS.items()
        },
        "Between models, F1": table[table["kind"] == BETWEEN_MODELS],
        "Between contrast sets, F1": table[table["kind"] == BETWEEN_SETS],
    }
    said = [
        findings.in_brief(tests, subject, ordered=not subject.startswith("Between"))
        for subject, tests in subjects.items()
        if len(tests)
    ]
    return findings.opening(
        *(question, headline_numbers(results), results.cautions, results.models),
        said[: page.MOST_SENTENCES - 1],
        leading=f"{_NAMES['f1']} of {next(iter(tables.SETS))} sets",
    )


def headline_numbers(results: Results) -> pd.DataFrame:
    """Weighted F1 and consistency by kind of set, and F1 of the bare test split.

    The best constant guess for each set is listed as the last model.
    """
    scored = _with_guess(results.rows[SETS], results.models)
    averages = {kind: tables.averages(scored, kind) for kind in tables.SETS}
    numbers = [
        (table, f"{words} of {kind} sets", score, "theories")
        for kind, table in averages.items()
        for score, words in _NAMES.items()
    ]
    if BARE in results.rows:
        # Each statement has its own theory, whose F1 is 1 if the answer is right, and otherwise 0.
        scored = _with_guess(results.rows[BARE].assign(set=BARE), results.models)
        table = estimate(replace(SCORES, by=["model"]), scored)
        numbers.append((table, "accuracy on the bare test split", "f1", "statements"))
    parts = [
        page.headline(
            *(table, number),
            value=score,
            interval=(f"{score}_low", f"{score}_high"),
            n="theories",
            unit=unit,
        )
        for table, number, score, unit in numbers
    ]
    return pd.concat(parts, ignore_index=True)


def _with_guess(rows: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    """The scores of the models, and of the best constant guess for each set, on each theory."""
    scored = theory_scores(with_baselines(rows), ["source", "model", "set"])
    constant = [name for name in BASELINES[: len(LABELS)] if name in set(scored["model"])]
    means = scored.groupby(["set", "model"], sort=False)["f1"].mean().unstack()[constant]
    best = scored[scored["model"] == scored["set"].map(means.idxmax(axis=1))]
    both = [scored[scored["model"].isin(models)], best.assign(model=GUESS)]
    return pd.concat(both, ignore_index=True)


def finding_section(table: pd.DataFrame) -> page.Section:
    """The results of the comparisons that were named in advance."""
    item = page.TableItem(
        "comparisons",
        "Differences in weighted F1 that were named in advance",
        table,
        "The best constant guess for a set is the label that scores highest if it is "
        "assigned to every statement. All sets in a mean count equally. clusters: theories "
        "or, in the bare test split, statements. In that split, each statement is asked with "
        "only the sentences that decide it, so F1 is the share of correct answers.",
    )
    return findings.named_section(table, item)
