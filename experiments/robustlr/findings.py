"""The first screen of the study of RobustLR, and the comparisons that were named in advance."""

from dataclasses import replace

import pandas as pd

from interp.extend import counted, page
from interp.extend.estimates import estimate
from interp_experiments.findings import in_brief, matrix, model_matrix, named_section
from interp_experiments.robustlr import tables
from interp_experiments.robustlr.comparisons import (
    AGAINST_GUESS,
    BETWEEN_MODELS,
    BETWEEN_SETS,
    GUESS,
    best_guesses,
    kinds,
)
from interp_experiments.robustlr.results import (
    BARE,
    SCORES,
    SETS,
    Results,
    theory_scores,
    with_baselines,
)

_NAMES = {"f1": "weighted F1", "consistency": "consistency"}


def first_screen(results: Results, compared: pd.DataFrame) -> page.Glance:
    """Each model's mean scores, and those of the best constant guess."""
    rows = results.rows[SETS]
    theories, sets = rows["pair_id"].nunique(), rows["set"].nunique()
    low, high = rows.groupby("set")["pair_id"].nunique().agg(["min", "max"])
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    every = headline_numbers(results)
    numbers = page.quotable(every, results.cautions, every["number"].unique())
    mean = f"{_NAMES['f1']} of {next(iter(tables.SETS))} sets"
    guess = numbers["model"] == GUESS
    question = (
        "Do a model's answers follow minimal edits and paraphrases of a theory? "
        f"{counted(len(results.models), 'model')}, {counted(sets, 'set')} with {theories:,} "
        f"{'theory' if theories == 1 else 'theories'} in total ({each} each) and variants."
    )
    said = [
        in_brief(own, subject, ordered=not subject.startswith("Between"))
        for subject, own in list(kinds(compared).items())[: page.MOST_SENTENCES - 1]
    ]
    first = [page.extremes(numbers[~guess], mean)]
    if mean not in page.named_numbers(every[~guess], numbers[~guess]):
        first = []
    return page.glance(question, numbers, [*first, *said], cautions=results.cautions)


def headline_numbers(results: Results) -> pd.DataFrame:
    """Weighted F1 and consistency by kind of set, and F1 of the bare test split.

    The best constant guess for each set is listed as the last model.
    """
    scored = _with_guess(results.rows[SETS], results.models)
    parts = []
    for kind in tables.SETS:
        table = tables.averages(scored, kind)
        for score, words in _NAMES.items():
            number = f"{words} of {kind} sets"
            parts.append(_headline(table, number, score=score, unit="theories"))
    if BARE in results.rows:
        # Each statement has its own theory, whose F1 is 1 if the answer is right, and otherwise 0.
        scored = _with_guess(results.rows[BARE].assign(set=BARE), results.models)
        table = estimate(replace(SCORES, by=["model"]), scored)
        number = "accuracy on the bare test split"
        parts.append(_headline(table, number, score="f1", unit="statements"))
    return pd.concat(parts, ignore_index=True)


def _headline(table: pd.DataFrame, number: str, *, score: str, unit: str) -> pd.DataFrame:
    ends = (f"{score}_low", f"{score}_high")
    return page.headline(table, number, value=score, interval=ends, n="theories", unit=unit)


def _with_guess(rows: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    """The scores of the models, and of the best constant guess for each set, on each theory."""
    scored = theory_scores(with_baselines(rows), ["source", "model", "set"])
    both = pd.concat([scored[scored["model"].isin(models)], best_guesses(scored)])
    return both.reset_index(drop=True)


def finding_section(results: Results, compared: pd.DataFrame) -> page.Section:
    """The results of the comparisons that were named in advance."""
    of_kind = {kind: compared[compared["kind"] == kind] for kind in compared["kind"].unique()}
    against, between = (of_kind.get(kind, compared[:0]) for kind in (AGAINST_GUESS, BETWEEN_SETS))
    models = of_kind.get(BETWEEN_MODELS, compared[:0])
    title = "Differences in weighted F1"
    return named_section(
        compared,
        page.TableItem(
            "comparisons",
            "Differences in weighted F1 that were named in advance",
            compared,
            "The best constant guess for a set is the label that scores highest if it is "
            "assigned to every statement. All sets in a mean count equally. clusters: theories "
            "or, in the bare test split, statements. In that split, each statement is asked with "
            "only the sentences that decide it, so F1 is the share of correct answers.",
        ),
        (
            matrix("against_a_guess", f"{title} from the best constant guess", against, x="sets"),
            matrix("between_sets", f"{title} between contrast sets", between, x="contrast"),
            *(
                model_matrix(
                    f"models_{place}", f"{title} between models, {name}", own, results.models
                )
                for place, (name, own) in enumerate(models.groupby("sets", sort=False), start=1)
            ),
        ),
    )
