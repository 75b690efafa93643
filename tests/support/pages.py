"""The prompts and names on a study's page."""

from html import unescape

import pandas as pd

from interp.report.page import RIGHT, PromptsItem, Report


def prompts_of(report: Report) -> PromptsItem:
    """The prompts of a report, in the last of its sections."""
    (item,) = report.sections[-1].items
    assert isinstance(item, PromptsItem)
    return item


def right(item: PromptsItem) -> pd.DataFrame:
    """Whether each answer is marked as correct: one column per model."""
    return item.frame[list(item.models)].apply(lambda answers: answers.str.endswith(RIGHT))


def unused_names(report: Report, page: str) -> list[str]:
    """Names that the page explains but does not use."""
    text = unescape(page.partition('id="names"')[0]).replace("_", " ").lower()
    return [name for name in report.names if name.lower() not in text]
