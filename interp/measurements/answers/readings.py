"""Display of the readings of answers: how often each is correct, and what tells prompts apart."""

from collections.abc import Iterator

import pandas as pd

from interp.analysis.reading_tables import (
    CHANCE,
    CONSTANT,
    NO_MODEL,
    Sample,
    in_words,
    reading_table,
    readings_of,
    side_row,
    told_apart,
)
from interp.report.glance import with_interval
from interp.report.page import TableItem, Titled

OPTION_COLUMNS = ["model", "prompt_id", "option", "probability", "relative_probability"]
"""The columns of option_probabilities that the tables are made of."""

_BALANCED = 0.01
"""If a constant answer exceeds chance by more, correct answers count as unequally frequent."""


def reading_items(
    answers: pd.DataFrame,
    prompts: pd.DataFrame,
    options: pd.DataFrame,
    cluster: str | None = None,
) -> Iterator[TableItem]:
    """Two tables about prompts that offer a choice; none if no prompt offers one.

    The first compares readings of the answers, forced and calibrated, with baselines
    (`reading_table`); the second says how well prompts with different correct answers are told
    apart (`side_row`).

    Args:
        answers: rows of the answers table, for any number of models.
        prompts: the prompts table.
        options: rows of the option_probabilities table.
        cluster: the factor whose values group dependent prompts, if any.
    """
    sample = Sample(prompts, options, cluster)
    if sample.prompts.empty:
        return
    of_model = dict(list(options.groupby("model", sort=False)))
    readings = {
        (str(model), reading): own
        for model, rows in answers.groupby("model", sort=False)
        if model in of_model
        for reading, own in readings_of(sample, rows, of_model[model]).items()
    }
    table = reading_table(sample, readings)
    shown = _with_intervals(table, sample)
    title, note = "Accuracy by reading of the answer, and of baselines", _note(table, sample)
    narrow = list(_narrow(shown, sample, title))
    yield TableItem("accuracy_by_reading", title, table, note, narrow=narrow, display=shown)
    apart = told_apart({str(model): side_row(sample, own) for model, own in of_model.items()})
    title = "Prompts with different correct answers, told apart by the options' probabilities"
    cells = {
        "auroc": ("auroc", "auroc_low", "auroc_high"),
        "concordance": ("concordance", "low", "high"),
    }
    named = apart[["model"]].assign(**{name: _cells(apart, *own) for name, own in cells.items()})
    few = named.join(apart[["p_holm"]])
    named = named.join(apart[["p", "p_holm", "pairs", "clusters", "note"]])
    yield TableItem("told_apart", title, apart, _APART, narrow=[(title, few)], display=named)


_FEW_MODELS = 3
"""Up to so many models, terminals show a table for each."""

_APART = (
    "Only prompts of one phrasing are compared; a bias to one option changes nothing, and 0.5 is "
    "chance. auroc: probability that the log-odds of an option are higher where it is correct, "
    "mean over phrasings and options. concordance: share of pairs in which the log-odds of the two "
    "correct answers differ in the right direction; p: of a concordance of 0.5, p_holm: corrected "
    "over the models."
)


def _against(sample: Sample) -> str:
    return f"against_{sample.better.replace(' ', '_')}"


def _with_intervals(table: pd.DataFrame, sample: Sample) -> pd.DataFrame:
    """The table as text, with each interval behind its accuracy."""
    shown = table[["model", "reading"]].assign(accuracy=_cells(table, "accuracy", "low", "high"))
    for name in ("paired", *sample.sides):
        ends = (f"{name}_{end}" for end in ("accuracy", "low", "high"))
        shown[f"{name}_accuracy"] = _cells(table, *ends)
    shown[_against(sample)] = table["verdict"]
    return shown.join(table[["outside", "tied", "p_holm", "prompts", "note"]])


def _narrow(shown: pd.DataFrame, sample: Sample, title: str) -> Iterator[Titled]:
    """Tables for terminals: one for each of few models, or one with all models' accuracies."""
    models = [model for model in shown["model"].unique() if model != NO_MODEL]
    if len(models) > _FEW_MODELS:
        wide = shown.pivot(index="model", columns="reading", values="accuracy")
        wide = wide.reindex(index=models, columns=shown["reading"].unique())
        for baseline in sample.baselines:
            wide[baseline] = str(shown.set_index("reading").at[baseline, "accuracy"])
        yield title, wide.reset_index()
        return
    columns = ["reading", "accuracy", "paired_accuracy", _against(sample)]
    for model in models:
        yield f"{title}: {model}", shown.loc[shown["model"].isin([model, NO_MODEL]), columns]


def _cells(table: pd.DataFrame, *columns: str) -> list[str]:
    rows = table.reindex(columns=[*columns]).to_numpy(dtype=float)
    return [with_interval(*map(float, row)) for row in rows]


def _note(table: pd.DataFrame, sample: Sample) -> str:
    """How to read the table, and which readings differ from the better baseline."""
    parts = [
        f"Compared with {sample.better}: {in_words(table)} (p_holm: corrected over the table).",
        "most probable token: its option; outside: share of replies that are none of the options, "
        "which count as wrong. most probable option: a forced choice; m equally probable ones "
        "(tied) are each right with probability 1/m. calibrated: median: the option whose "
        "log-odds exceed their median in the phrasing most; the median is that of the other "
        "clusters, so no prompt calibrates itself. constant answer: the most frequent correct "
        "answer to such options.",
    ]
    by_name = table[table["model"] == NO_MODEL].set_index("reading")["accuracy"]
    if by_name.get(CONSTANT, 0.0) > by_name[CHANCE] + _BALANCED:
        parts.append(
            "Correct answers are not equally frequent, which a calibration by medians assumes: it "
            "answers each of two options equally often."
        )
    return " ".join(parts)
