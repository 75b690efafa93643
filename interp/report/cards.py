"""Cards of models and data sets in the form that hubs read: YAML metadata, then text and tables.

Values may come from files or from a user, so Markdown and HTML in them are escaped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import isnan
from typing import TypeGuard

import yaml

Rows = Sequence[Mapping[str, object]]
"""A table: its rows, each with the same columns."""

_MARKUP = re.compile(r"[\\`*_\[\]|~#]")


def card(metadata: Mapping[str, object], title: str, parts: Mapping[str, str | Rows]) -> str:
    """A card as Markdown.

    Metadata are properties that hubs filter by, such as `license`. Of the texts and tables, by
    heading, those without content are omitted; the part "" comes under the title.
    """
    lines = ["---", yaml.safe_dump(dict(metadata), sort_keys=False).strip(), "---"]
    lines += ["", f"# {plain(title)}"]
    for heading, content in parts.items():
        if content:
            lines += ["", f"## {heading}"] if heading else []
            lines += ["", content.strip("\n") if isinstance(content, str) else _table(content)]
    return "\n".join(lines) + "\n"


def facts(values: Mapping[str, object], *, within: str = "") -> Iterator[dict[str, object]]:
    """One row for each value but tables, with its name; nested values are named by their paths."""
    for key, value in values.items():
        name = f"{within}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from facts(value, within=f"{name}: ")
        elif not _is_table(value):
            yield {"what": name, "value": value}


def tables(values: Mapping[str, object]) -> dict[str, Rows]:
    """The values that are tables, by name."""
    return {name: value for name, value in values.items() if _is_table(value)}


def plain(value: object) -> str:
    """A value as one line of plain text: numbers with up to four digits; None and NaN as empty."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(plain, value))
    return _MARKUP.sub(r"\\\g<0>", escape(" ".join(str(value).split()), quote=False))


def _is_table(value: object) -> TypeGuard[Rows]:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, Mapping) for row in value)


def _table(rows: Rows) -> str:
    names = list(rows[0])
    written = [names, ["---"] * len(names), *([plain(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in written)
