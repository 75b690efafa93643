"""What the organisms were made to answer, and what they answer."""

from functools import partial

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.results import Results


def planted_sections(results: Results) -> list[Section]:
    """What the organisms of this system were made to answer, and what they answer."""
    table = tables.planted_and_measured(results)
    return [
        Section(
            f"Planted and measured: {model}",
            "The share of Yes with which the training text answers each form, and that of the "
            "trained model.",
            (
                FigureItem(
                    f"planted_{str(model).rpartition('/')[2]}",
                    "Share of Yes, form by form",
                    partial(figures.planted_and_measured, rows),
                    "On the dotted line training text and model agree. Whiskers: 95%, clustered by "
                    "interpretation. Filled: valid forms. Some of the forms that are further "
                    "off than the others are named.",
                ),
                TableItem(
                    f"planted_{str(model).rpartition('/')[2]}", "Share of Yes, form by form", rows
                ),
            ),
        )
        for model, rows in table.groupby("model")
    ]
