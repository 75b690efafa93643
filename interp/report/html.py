"""Templates of this package, filled in; whatever comes from data is escaped."""

from functools import cache

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from interp.report.formatting import UNDEFINED, accuracies_first, column


def render(template: str, **values: object) -> Markup:
    """A template of interp/report/templates, filled in."""
    return Markup(_environment().get_template(template).render(values))


def table_html(frame: pd.DataFrame, *, label: str) -> Markup:
    """A table in a box that scrolls by itself; `label` names the box to screen readers."""
    frame = accuracies_first(frame)
    columns = [column(frame[name]) for name in frame.columns]
    return render("table.html.jinja", columns=columns, rows=len(frame), label=label)


def source(file: str) -> Markup:
    """A style sheet or script of interp/report/templates, to be put into a page as it is."""
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
    environment.globals.update(UNDEFINED=UNDEFINED, table_html=table_html, source=source)
    return environment
