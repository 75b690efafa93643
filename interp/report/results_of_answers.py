"""The small tables of answers and of generated texts."""

from interp.analysis.accuracy import accuracy_table, outcome_table
from interp.report.results import Measured, Results
from interp.results.notes import errors_by_model, summarize


def of_answers(run: Measured) -> Results:
    """Accuracy, one row per model."""
    answers = run.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    table = accuracy_table(answers, prompts)
    summary = summarize(answers, answers[answers["error"] != ""])
    return Results({"accuracy_table": table}, [("Accuracy", table)], summary)


def of_completions(run: Measured) -> Results:
    """Accuracy of generated texts, and what they answer, one row per model."""
    completions = run.table("completions")
    prompts = run.table("prompts", ["prompt_id", "pair_id", "side", "weight"])
    accuracy = accuracy_table(completions, prompts)
    outcomes = outcome_table(completions)
    tables = {"accuracy_table": accuracy, "outcome_table": outcomes}
    shown = [("Accuracy", accuracy), ("What the texts answer", outcomes)]
    return Results(tables, shown, errors_by_model(completions))
