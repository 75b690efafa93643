"""The house style of figures: readable in print, without colour vision and in black and white."""

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.container import Container
from matplotlib.figure import Figure

_INK = "#1b1f24"
QUIET = "#57606a"
"""Colour of remarks, such as "undefined"."""

PALE = "#e4e8ec"
"""Colour of grid lines, and of cells without a value."""

# Okabe and Ito's palette without its yellow, which is too light for lines on white.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", "-.", ":")

_OPTIONS: dict[Any, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    # White on purpose, also where a notebook's own style is dark: the ink is not.
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.labelcolor": _INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": PALE,
    "grid.linewidth": 0.8,
    "hatch.color": "white",
    "hatch.linewidth": 0.9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "text.color": _INK,
    "xtick.color": QUIET,
    "xtick.labelcolor": _INK,
    "xtick.labelsize": 9,
    "ytick.color": QUIET,
    "ytick.labelcolor": _INK,
    "ytick.labelsize": 9,
    # A name with two dollar signs is a name, not a formula.
    "text.parse_math": False,
}

_LINE, _LETTERS_AN_INCH = 0.15, 17
"""Height of a line of a caption in inches, and how many of its letters go into one."""

DIVERGING = "RdBu"
"""Matplotlib's name of the colours around zero, colour-blind safe by ColorBrewer."""

COUNTS = LinearSegmentedColormap.from_list("counts", ["#cfe2f0", "#0072b2", "#06263a"])
"""Colours of counts, from few (light, yet visible on white) to many (dark)."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one group is drawn in a figure; each part alone distinguishes a few groups."""

    colour: str
    hatch: str
    marker: str
    line: str


def look(index: int) -> Look:
    """The look of the group of that number."""
    return Look(
        _COLOURS[index % len(_COLOURS)],
        _HATCHES[index % len(_HATCHES)],
        _MARKERS[index % len(_MARKERS)],
        _LINES[index % len(_LINES)],
    )


def house_style() -> AbstractContextManager[None]:
    """Matplotlib's options for figures of this project, while inside the `with`."""
    return mpl.rc_context(_OPTIONS)


_LEGEND = 1.8
"""Width of a legend beside a figure, in inches."""


def with_caption(figure: Figure, *, title: str, text: str) -> None:
    """Put a title above a figure and a caption below it, and make room for both."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, int(width * _LETTERS_AN_INCH))
    figure.set_size_inches(width, height + (len(lines) + 2) * _LINE)
    left = {"x": 0.01, "ha": "left"}
    figure.suptitle("\n".join(textwrap.wrap(title, int(width * 10))), fontsize=11, **left)
    if lines:
        figure.supxlabel("\n".join(lines), fontsize=8, color=QUIET, **left)


def legend_beside(figure: Figure, handles: Sequence[Artist | Container]) -> None:
    """Put one legend right of all panels, where it meets neither title nor caption."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + _LEGEND, height)
    figure.legend(handles=handles, loc="outside right center")


def new_axes(*, width: float = 7.5, height: float = 4.0) -> Axes:
    """The axes of a new figure, in inches, outside pyplot: nothing to close, nothing global."""
    return Figure(figsize=(width, height)).add_subplot()
