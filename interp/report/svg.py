"""Figures as SVG that several can share one page."""

import io
import re

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

# Letters are drawn as outlines: the figure looks the same wherever it is opened, whatever fonts
# are there.
_FONTTYPE = "path"


def figure_svg(figure: Figure, *, name: str) -> str:
    """An SVG file's text, the same bytes for the same figure; `name` seeds its ids."""
    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": _FONTTYPE, "svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def inline_svg(svg: str, *, name: str, label: str) -> Markup:
    """The <svg> element for a page, with ids that are unique to `name` and a label for readers.

    Matplotlib numbers its ids from one in each file; on one page, clip paths and markers of one
    figure would be taken for those of another. Its style sheet would apply to the whole page.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(
        r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", element, flags=re.S
    )
    element = re.sub(r'((?:\bid="|href="#|url\(#))', rf"\g<1>{name}-", element)
    labelled = f'<svg role="img" aria-label="{escape(label)}" '
    return Markup(element.replace("<svg ", labelled, 1))
