"""HTML: filled-in templates, tables, token heat maps and notebook displays."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from interp.analysis.cautions.caution import Caution
from interp.choices import TEMPLATE
from interp.errors import UserError, visible
from interp.report.formatting import (
    FIGURES,
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
    columns = [column(frame[name]) for name in frame.columns]
    return render("table.html.jinja", columns=columns, rows=len(frame), label=label)


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
    """A column as text, such as 0.123, 1,234 or, of p-values, "< 0.0001"; blank if missing."""
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
    number = re.search(r"-?\d[\d,]*\.?\d*", text.replace("−", "-"))
    return float(number.group().replace(",", "")) if number else None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if pd.isna(value) else visible(str(value))


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


def token_heat_map(
    shares: pd.DataFrame,
    *,
    prompts: pd.DataFrame,
    answers: pd.DataFrame,
    method: str,
    compared: tuple[str, str] | None = None,
) -> Markup:
    """HTML of prompts, one below another, with each token shaded by its share of the score.

    It needs the style sheet heatmap.css, which report pages and notebook displays include. The
    shares are those of one model (`token_shares`), and the prompts usually the two sides of a pair.
    Of the two segments to underline, the first is `compared` with the second.

    Raises:
        UserError: a prompt has no scores from the method.
    """
    (model,), chosen = shares["model"].unique(), shares[shares["method"] == method]
    scores = [_scores(chosen, id_, method) for id_ in prompts["prompt_id"]]
    largest = max((_largest(tokens) for tokens in scores), default=0.0)
    given = answers[answers["model"] == model].set_index("prompt_id")["answer"]
    marks = dict(zip(compared or (), ("numerator", "denominator"), strict=False))
    sides = []
    for row, tokens in zip(prompts.to_dict("records"), scores, strict=True):
        about = {name: row[name] for name in ("side", "gold")}
        sides.append({**about, "answer": given[row["prompt_id"]], **_side(tokens, largest, marks)})
    return render("heatmap.html.jinja", model=model, method=method, sides=sides, largest=largest)


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


def _side(scores: pd.DataFrame, largest: float, marks: Mapping[str, str]) -> dict[str, Any]:
    """A prompt's tokens in segments, as the template shows them; text outside has no name."""
    texts = scores["token"].tolist()
    table = pd.DataFrame(
        {
            "position": range(len(scores)),
            "token": [text.replace("\n", "↵").replace("\t", "⇥") for text in texts],
            "segment": scores["segment"].replace(TEMPLATE, "").to_numpy(),
            "share": scores["share"].to_numpy(dtype=float),
        }
    )
    # Text between segments may have no score.
    table["known"] = np.isfinite(table["share"])
    shaded = (table["segment"] != "") & table["known"] & (largest > 0)
    table["shade"] = (table["share"].clip(lower=0) / (largest or 1.0)).where(shaded, 0.0)
    table["ends_line"] = [
        text.endswith("\n") and not after.startswith("\n")
        for text, after in zip(texts, [*texts[1:], ""], strict=True)
    ]
    runs = (table["segment"] != table["segment"].shift()).cumsum()
    segments = [
        {
            "name": (name := str(rows["segment"].iloc[0])),
            "label": segment_label(name),
            "mark": marks.get(name, ""),
            "share": number_text(math.fsum(rows["share"])),
            "tokens": rows.assign(share=rows["share"].map(number_text)).to_dict("records"),
        }
        for _, rows in table.groupby(runs, sort=False)
    ]
    outside = table.loc[(table["segment"] == "") & table["known"], "share"]
    named = table["segment"].map(segment_label)
    shown = table[["position", "token", "segment", "share"]].assign(segment=named)
    return {"segments": segments, "outside": number_text(math.fsum(outside)), "table": shown}


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
