"""What the terminal and the record say of a run in addition to its tables: shares and errors."""

import pandas as pd

from interp.analysis.accuracy import notes_without_answer, without_answer
from interp.console import counted, echo

ERRORS_SHOWN = 3
"""Different errors of a model that are shown, the most frequent ones; some name their prompt."""


def summarize(answers: pd.DataFrame, failed: pd.DataFrame) -> dict[str, dict[str, object]]:
    """Shares that the tables do not show, by model, and a line on each that is not zero.

    Args:
        answers: model, answer and error of each prompt.
        failed: model, prompt_id and error of each row of any table that has an error.
    """
    summary: dict[str, dict[str, object]] = {}
    for model, share in without_answer(answers).items():
        errors = failed[failed["model"] == model]
        counts = note_errors(str(model), errors.drop_duplicates("prompt_id")["error"], "prompt")
        summary[str(model)] = {"no_answer_share": float(share), "errors": counts}
    for note in notes_without_answer(answers):
        echo(note)
    return summary


def errors_by_model(rows: pd.DataFrame) -> dict[str, object]:
    """The most frequent errors of each model, and a line on each."""
    failed = rows[rows["error"] != ""].drop_duplicates(["model", "prompt_id"])
    return {
        str(model): {"errors": note_errors(str(model), rows["error"], "prompt")}
        for model, rows in failed.groupby("model", sort=False)
    }


def note_errors(model: str, errors: pd.Series, unit: str) -> dict[str, int]:
    """A line on each of the most frequent errors; returns how often each occurred.

    Args:
        model: name of the model.
        errors: the error of each prompt, or pair, that has one.
        unit: "prompt" or "pair".
    """
    counts = errors.value_counts()
    for error, count in counts.head(ERRORS_SHOWN).items():
        echo(f"{model}: {counted(count, unit)} stopped with an error: {error}")
    if len(counts) > ERRORS_SHOWN:
        others = counted(counts[ERRORS_SHOWN:].sum(), unit)
        echo(f"{model}: {others} stopped with other errors, which the tables name")
    return {str(error): int(count) for error, count in counts.head(ERRORS_SHOWN).items()}
