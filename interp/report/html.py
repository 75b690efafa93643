"""HTML: filled-in templates, tables, token heat maps and notebook displays."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from interp.analysis.cautions.caution import Caution
from interp.choices import TEMPLATE
from interp.errors import UserError
from interp.reading.pieces import readable
from interp.report.formatting import (
    FIGURES,
    accuracy_columns,
    heading,
    holds_p_values,
    number_text,
    segment_label,
    with_counts,
)
from interp.report.page import Titled

LONG = 40
"""Tables with more rows are folded on the page; their files contain all rows."""


CAUTIONS = 6
"""Number of cautions on a page that are not folded."""


def render(template: str, **values: object) -> Markup:
    """A template of interp/report/templates, filled in."""
    return Markup(_environment().get_template(template).render(values))


def table_html(frame: pd.DataFrame, *, label: str) -> Markup:
    """A table in a box with its own scroll bar; `label` names the box for screen readers."""
    frame = accuracies_first(frame)
    columns = [column(frame[name]) for name in frame.columns]
    return render("table.html.jinja", columns=columns, rows=len(frame), label=label)


def accuracies_first(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with its accuracies immediately after the model's name."""
    moved = accuracy_columns(frame.columns)
    if not moved or frame.columns[0] != "model":
        return frame
    return frame[["model", *moved, *(c for c in frame.columns[1:] if c not in moved)]]


@dataclass(frozen=True, slots=True)
class TableCell:
    """One value of a table."""

    text: str
    key: float | str | None
    """The key by which the value is sorted; None sorts last."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    heading: str
    figures: bool
    """Whether the column is sorted as numbers and right-aligned."""
    cells: tuple[TableCell, ...]


def column(values: pd.Series) -> Column:
    """A column as text, with three decimals, separated thousands and small p-values as "< 0.0001".

    Missing values are blank.
    """
    name = str(values.name)
    values = values.infer_objects()
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        p_values = holds_p_values(name)
        numbers = [None if pd.isna(value) else float(str(value)) for value in values]
        counts = with_counts(values)
        shown = ["" if pd.isna(value) else number_text(value, p_value=p_values) for value in counts]
        return Column(name, heading(name), True, tuple(map(TableCell, shown, numbers)))
    texts = [_text(value) for value in values]
    figures = all(re.match(FIGURES, text) for text in texts) and any(texts)
    keys = [_leading_number(text) if figures else text or None for text in texts]
    return Column(name, heading(name), figures, tuple(map(TableCell, texts, keys)))


def _leading_number(text: str) -> float | None:
    found = re.search(r"-?\d[\d,]*\.?\d*", text.replace("−", "-"))
    return float(found.group().replace(",", "")) if found else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if pd.isna(value) else str(value)


def why_blank(frame: pd.DataFrame) -> str:
    """Why numbers in a table are blank, in a few words; empty if none are."""
    if not frame.select_dtypes("number").isna().any(axis=None):
        return ""
    if "source" in frame and frame["source"].eq("published").any():
        return "blank: not measured, or not published"
    if frame.get("note", pd.Series(dtype=str)).fillna("").astype(str).ne("").any():
        return "blank: no value, for the reason in the column note"
    return "blank: not measured, or no value"


def with_flags(text: str) -> Markup:
    """Text whose options, such as --system-prompt, stay on one line."""
    return Markup(re.sub(r"--[a-z][a-z-]*", r'<span class="flag">\g<0></span>', str(escape(text))))


def breakable(name: str) -> Markup:
    """A name that breaks, if it must, after a mark such as "_" instead of within a word."""
    return Markup(re.sub(r"(?<=[_:/])(?=\w)", "<wbr>", str(escape(name))))


def source(file: str) -> Markup:
    """A style sheet or script of interp/report/templates, included unchanged in a page."""
    loader = _environment().loader
    assert loader is not None
    return Markup(loader.get_source(_environment(), file)[0])


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("interp.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals.update(
        LONG=LONG,
        CAUTIONS=CAUTIONS,
        table_html=table_html,
        why_blank=why_blank,
        breakable=breakable,
        with_flags=with_flags,
        source=source,
    )
    return environment


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    segment: str
    """Name of the segment; empty outside all segments."""
    score: float
    shade: float
    """Shade from 0 (none) to 1 (the largest score shown)."""
    ends_line: bool

    @property
    def shown(self) -> str:
        return self.text.replace("\n", "↵").replace("\t", "⇥")

    @property
    def known(self) -> bool:
        """Whether the token has a score of its own: text between segments may have none."""
        return math.isfinite(self.score)

    @property
    def share(self) -> str:
        return number_text(self.score)


@dataclass(frozen=True, slots=True)
class _Segment:
    name: str
    tokens: tuple[_Token, ...]
    mark: str
    """The segment's place in the compared ratio, a class of the style sheet; empty for others."""

    @property
    def label(self) -> str:
        return segment_label(self.name)

    @property
    def share(self) -> str:
        return number_text(math.fsum(token.score for token in self.tokens))


@dataclass(frozen=True, slots=True)
class _Side:
    name: str
    gold: str
    answer: str
    segments: tuple[_Segment, ...]

    @property
    def outside(self) -> str:
        scores = [t.score for s in self.segments for t in s.tokens if not s.name]
        return number_text(math.fsum(score for score in scores if math.isfinite(score)))

    def to_frame(self) -> pd.DataFrame:
        tokens = [token for segment in self.segments for token in segment.tokens]
        return pd.DataFrame(
            {
                "position": range(len(tokens)),
                "token": [token.shown for token in tokens],
                "segment": [segment_label(token.segment) for token in tokens],
                "share": [token.score for token in tokens],
            }
        )


def token_heat_map(
    shares: pd.DataFrame,
    *,
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    method: str,
    compared: tuple[str, str] | None = None,
) -> Markup:
    """HTML of prompts, one below another, with each token shaded by its share of the score.

    It needs the style sheet heatmap.css, which report pages and notebook displays include.

    Args:
        shares: the result of `interp.measurements.attribution.segments.token_shares` for one model.
        prompts: the rows of the prompts table to show, in order; usually the two sides of a pair.
        answers: the answers table of this model.
        method: name of the attribution method whose scores are shown.
        compared: the two segments to underline, the first of which is compared with the second.

    Raises:
        UserError: the scores are from several models, or a prompt has no answer or no scores from
            the method.
    """
    models = shares["model"].unique().tolist()
    if len(models) != 1:
        raise UserError(
            f"a heat map shows one model; got scores of {len(models)}: {', '.join(models)}"
        )
    chosen = shares[shares["method"] == method]
    scores = [_scores(chosen, id_, method) for id_ in prompts["prompt_id"]]
    largest = max(map(_largest, scores), default=0.0)
    given = answers[answers["model"] == models[0]].set_index("prompt_id")["answer"]
    marks = dict(zip(compared or (), ("numerator", "denominator"), strict=False))
    sides = []
    for row, own in zip(prompts.to_dict("records"), scores, strict=True):
        if row["prompt_id"] not in given:
            raise UserError(
                f"{models[0]!r} has no answer to prompt {row['prompt_id']!r} in the answers table"
            )
        tokens = groupby(_tokens(own, largest), key=lambda token: token.segment)
        segments = tuple(
            _Segment(name, tuple(members), marks.get(name, "")) for name, members in tokens
        )
        sides.append(_Side(row["side"], row["gold"], given[row["prompt_id"]], segments))
    return render(
        "heatmap.html.jinja", model=models[0], method=method, sides=sides, largest=largest
    )


def _scores(shares: pd.DataFrame, prompt_id: str, method: str) -> pd.DataFrame:
    rows = shares[shares["prompt_id"] == prompt_id]
    if rows.empty:
        raise UserError(
            f"prompt {prompt_id!r} has no token scores by {method!r}: it failed, or its tokens "
            "were not kept; use another prompt, or attribute with keep_tokens"
        )
    return rows.sort_values("position")


def _largest(scores: pd.DataFrame) -> float:
    largest = scores.loc[scores["segment"] != TEMPLATE, "share"].max()
    return 0.0 if pd.isna(largest) else float(largest)


def _tokens(scores: pd.DataFrame, largest: float) -> Iterator[_Token]:
    texts = readable(scores["token"].tolist())
    segments = scores["segment"].replace(TEMPLATE, "")
    rows = zip(texts, [*texts[1:], ""], segments, scores["share"], strict=True)
    for text, after, segment, score in rows:
        shaded = bool(segment) and largest > 0 and math.isfinite(score)
        shade = max(score, 0.0) / largest if shaded else 0.0
        ends_line = text.endswith("\n") and not after.startswith("\n")
        yield _Token(text, segment, float(score), float(shade), ends_line)


@dataclass(frozen=True, slots=True)
class Display:
    """HTML without scripts that adapts to a notebook's light or dark theme."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def notebook_html(
    tables: Sequence[Titled], heat_maps: Sequence[Markup] = (), cautions: Sequence[Caution] = ()
) -> str:
    """Cautions, tables under their titles, and heat maps, with the required styles."""
    return render("notebook.html.jinja", tables=tables, heat_maps=heat_maps, cautions=cautions)
