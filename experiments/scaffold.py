"""Parts shared by the studies of papers: the frame of the page, published numbers, row order."""

from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
import pandas as pd

from interp.report.page import Report, Section, prompts_item
from interp.studies.folder import StudyFolder


def paper_report(
    folder: StudyFolder,
    *,
    title: str,
    text: str,
    findings: Section,
    sections: Sequence[Section],
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    names: Mapping[str, str],
    paper: str,
    answer: str | None = None,
    about_prompts: str = "",
    problems: Sequence[str] = (),
) -> Report:
    """The page of a study that repeats a paper's: findings first, prompts last.

    Args:
        folder: the study's folder; its record and its gaps go on the page.
        title: the page's title.
        text: how to read its numbers.
        findings: the findings in full.
        sections: everything between findings and prompts.
        prompts: the prompts table.
        answers: the answers table.
        names: words used on the page with their meanings.
        paper: the citation.
        answer: the findings in short, which the command prints too; all of them if None.
        about_prompts: which prompts these are, if the page has others.
        problems: further gaps, one line each.
    """
    asked = Section("Prompts", about_prompts, (prompts_item(prompts, answers),))
    return Report(
        title=title,
        text=text,
        sections=(findings, *sections, asked),
        answer=findings.text if answer is None else answer,
        names=names,
        paper=paper,
        record=folder.provenance(),
        problems=(*folder.problems(), *problems),
    )


def published_table(package: str, file: str) -> pd.DataFrame:
    """A paper's numbers, from the folder data/ of a study's package."""
    return pd.read_csv(str(files(package) / "data" / file))


def measured_and_published(measured: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Both tables, one below the other; `source`, after `model`, says which is which."""
    both = pd.concat(
        [measured.assign(source="measured"), published.assign(source="published")],
        ignore_index=True,
    )
    return both[["model", "source", *both.columns.drop(["model", "source"])]]


def in_order(rows: pd.DataFrame, order: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Rows sorted by the place of each column's value in its list, first column first; others last.

    Ties keep their order, and all rows their index.
    """
    places = [
        rows[name].map({value: place for place, value in enumerate(values)}).fillna(len(values))
        for name, values in order.items()
    ]
    return rows.iloc[np.lexsort(places[::-1])] if places else rows
