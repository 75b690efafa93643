"""The first screen and findings of a study, computed from its tables."""

from collections.abc import Collection, Iterator

import pandas as pd

from interp.extend import counted, page
from interp.extend.cautions import LEFT_OUT, Caution, ordered, unequal, void_models
from interp.extend.results import without_answer
from interp.extend.statistics import CONFIRMATORY, MODEL
from interp_experiments.findings import EXPLORATORY, in_brief, named_section, opening
from interp_experiments.rulebreakers.accuracy import accuracy, contrasts
from interp_experiments.rulebreakers.knowledge import familiar, familiarity
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import CLUSTER, Results
from interp_experiments.rulebreakers.sensitivity import sensitivity

_ACCURACIES = {
    "paired": "paired accuracy",
    SIDES[0]: "rulebreakers rejected",
    SIDES[1]: "non-rulebreakers accepted",
}


def first_screen(results: Results) -> page.Glance:
    """Each model's accuracies and sensitivity, and the results of the confirmatory contrasts."""
    pairs, entities = len(results.prompts) // 2, results.prompts[CLUSTER].nunique()
    cautions, drawn = study_cautions(results), list(_ACCURACIES.values())
    void = void_models(cautions)
    named = dict(list(_among(confirmatory(results), void).groupby("factor", sort=False)))
    judged = accuracy(results)
    judged = judged[~judged["model"].isin(void)]
    subjects = {
        MODEL: "Paired accuracy between models",
        "rule": "Paired accuracy, modus tollens minus disjunctive syllogism",
    }
    said = [
        *([sides(judged)] if len(judged) else []),
        *(
            in_brief(named[factor], subject, ordered=factor != MODEL)
            for factor, subject in subjects.items()
            if factor in named
        ),
        familiar(familiarity(results)),
    ]
    question = (
        "Does a model notice that the conclusion of a valid rule contradicts what it knows? "
        f"{counted(len(results.models), 'model')}, {counted(pairs, 'pair')} of prompts about "
        f"{counted(entities, 'entity pair')}. {unequal(results.prompts, CLUSTER)}"
    ).strip()
    every = headline_numbers(results)
    return opening(question, every, cautions, results.models, said, leading=drawn[0], drawn=drawn)


def study_cautions(results: Results) -> tuple[Caution, ...]:
    """The cautions about the answers, and about models and pairs that the study sets aside."""
    return ordered([*results.cautions, *_incompetent(results), *_filtered(results)])


def _incompetent(results: Results) -> Iterator[Caution]:
    """The models that give mostly no answer, or reject most non-rulebreakers, despite the facts."""
    sides = accuracy(results).set_index(["measure", "model"])["accuracy"]
    silent, void = without_answer(results.answers), void_models(results.cautions)
    for model in results.models:
        accepted, no_answer = sides[SIDES[1], model], silent.get(model, 0.0)
        why = "most non-rulebreakers are rejected" if accepted < 0.5 else ""
        why = "most answers are neither option" if no_answer >= 0.5 else why
        if why and model not in void:
            said = f"its answers say nothing about rulebreakers: {why} (accuracy on "
            said += f"non-rulebreakers {accepted:.2f})."
            numbers = {"accepted": accepted, "no_answer": no_answer}
            yield Caution(LEFT_OUT, model, said, voids=True, numbers=numbers)


def _filtered(results: Results) -> Iterator[Caution]:
    """A caution if the knowledge filter leaves less than half of the drawn entity pairs."""
    drawn, kept = (prompts[CLUSTER].nunique() for prompts in (results.drawn, results.prompts))
    if kept >= drawn / 2:
        return
    lost = drawn - kept
    text = (
        f"The study leaves out {lost:,} of {counted(drawn, 'entity pair')}, which some model fails "
        f"to complete, and so keeps {len(results.prompts) // 2:,} of "
        f"{counted(len(results.drawn) // 2, 'pair')}."
    )
    yield Caution(LEFT_OUT, "", text, numbers={"left_out": lost, "drawn": drawn})


def _among(table: pd.DataFrame, void: Collection[str]) -> pd.DataFrame:
    """The contrasts without those of the models in `void`, or between such a model and another."""
    kept = ~table["model"].isin(void)
    between, names = table["factor"] == MODEL, table["contrast"].astype(str)
    for name in void:
        kept &= ~(between & (names.str.startswith(f"{name} - ") | names.str.endswith(f" - {name}")))
    return table[kept]


def headline_numbers(results: Results) -> pd.DataFrame:
    """Paired accuracy, accuracy on each side, and concordance."""
    rows = dict(list(accuracy(results).groupby("measure")))
    numbers = [(rows[measure], name, "accuracy") for measure, name in _ACCURACIES.items()]
    numbers.append((sensitivity(results), "sides in the right order", "concordance"))
    parts = [
        page.headline(table, name, value=value, n="pairs", unit="pairs")
        for table, name, value in numbers
    ]
    return pd.concat(parts, ignore_index=True)


def confirmatory(results: Results) -> pd.DataFrame:
    """The contrasts named in advance, with `name` and `n` as text."""
    table = contrasts(results)
    table = table[table["status"] == CONFIRMATORY]
    between = table["contrast"].str.replace(" - ", " − ")
    n = [counted(clusters, "entity pair") for clusters in table["clusters"]]
    return table.assign(name=table["model"].where(table["factor"] != MODEL, between), n=n)


def finding_section(results: Results) -> page.Section:
    """The contrasts, of which some were named in advance."""
    table = contrasts(results)
    item = page.TableItem(
        "contrasts",
        "Rules, groups, phrasings and models compared",
        table,
        "Differences in paired accuracy, weighted to the data set. Exploratory contrasts are not "
        "corrected: p_holm is blank, and the verdict is by p. For phrasings and for the question's "
        "verbs, the difference is the best minus the worst, with a simultaneous interval for all "
        "pairs. detectable: the difference that a test at 5% finds with a power of 80%. model is "
        "blank for contrasts between models.",
    )
    return named_section(table[table["status"] == CONFIRMATORY], item, EXPLORATORY)


def sides(table: pd.DataFrame) -> str:
    """A sentence on the models that fail on rulebreakers more often than on their counterparts."""
    rows = table.set_index(["measure", "model"])
    broken, kept = (rows.loc[side] for side in SIDES)
    gap = (kept["low"] - broken["high"]).dropna()
    n = f"n = {counted(int(table['pairs'].max()), 'pair')}"
    if gap.empty:
        return (
            "Whether rulebreakers are rejected less often than non-rulebreakers are accepted was "
            f"not tested: too few entity pairs; {n}."
        )
    return (
        f"{(gap > 0).sum()} of {counted(len(gap), 'model')} rejected rulebreakers less often than "
        f"they accepted non-rulebreakers, with intervals that do not overlap; {n}."
    )
