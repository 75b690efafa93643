"""The house style of figures, and the parts that they share: axes, counts, legends, panels."""

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, SupportsFloat

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, ScaledTranslation
from numpy.typing import NDArray

from interp.console import echo
from interp.errors import shortened
from interp.report.formatting import UNDEFINED, heading, segment_label

_INK = "#1b1f24"
QUIET = "#57606a"
"""Color of remarks, such as "undefined"."""

PALE = "#e4e8ec"
"""Color of grid lines, and of cells without a value."""

# Okabe and Ito's palette without its yellow, which is too light for lines on white.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000")
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "---")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_LINES = ("-", "--", "-.", ":")

_OPTIONS: dict[Any, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    # White even if a notebook's style is dark, because the ink colors assume a white background.
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
    # Do not treat a name with two dollar signs as a formula.
    "text.parse_math": False,
}

_LINE, _LETTERS_AN_INCH = 0.15, 17
"""Height of a caption line in inches, and the number of letters per inch of its width."""

LETTER = 0.08
"""Width of a letter of a row's name or a legend, in inches, rounded up."""

_HANDLE = 0.7
"""Width of a legend's entry besides its letters, in inches."""

_ROW = 0.21
"""Height of a line of a row's name or a legend, in inches."""

_NAME = 26
"""Maximum number of letters in a line of a model's name, which may take up to four lines."""

DIVERGING = "RdBu"
"""Matplotlib's name for the colors around zero; ColorBrewer rates them color-blind safe."""


@dataclass(frozen=True, slots=True)
class Look:
    """How one group is drawn; a few groups can be told apart by any one of these attributes."""

    color: str
    hatch: str
    marker: str
    line: str


def look(index: int) -> Look:
    """The look of the group with this index."""
    return Look(*(parts[index % len(parts)] for parts in (_COLORS, _HATCHES, _MARKERS, _LINES)))


def house_style() -> AbstractContextManager[None]:
    """Use Matplotlib's options for figures of this project within the block."""
    return mpl.rc_context(_OPTIONS)


def with_caption(figure: Figure, *, title: str, text: str) -> None:
    """Put a title above a figure and a caption below it, and make room for both."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, int(width * _LETTERS_AN_INCH))
    figure.set_size_inches(width, height + (len(lines) + 2) * _LINE)
    left = {"x": 0.01, "ha": "left"}
    figure.suptitle("\n".join(textwrap.wrap(title, int(width * 10))), fontsize=11, **left)
    if lines:
        figure.supxlabel("\n".join(lines), fontsize=8, color=QUIET, **left)


def annotate(
    ax: Axes, text: str, place: tuple[float, float], shift: tuple[float, float], **how: Any
) -> None:
    """Write a string next to a location, shifted by a number of typographic points."""
    ax.annotate(text, place, xytext=shift, textcoords="offset points", **how)


def legend_beside(figure: Figure, handles: Sequence[Artist | Container]) -> None:
    """Put one legend, if anything is drawn, to the right of all panels and of their captions."""
    if not handles:
        return
    width, height = figure.get_size_inches()
    names = [wrapped(handle.get_label()) for handle in handles]
    longest = max(len(line) for name in names for line in name.splitlines())
    figure.set_size_inches(width + max(1.8, LETTER * longest + _HANDLE), height)
    figure.legend(handles=handles, labels=names, loc="outside right center")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a cell, bar or point of a figure is about.

    With scripts, it leads to its pairs, as a row of a table does that has these values.
    """

    id: str
    """The end of the id of its element in the figure's SVG file."""
    at: tuple[int, int]
    """Its row and column, between which arrow keys lead."""
    number: str
    """What its number is, as in the heading of a table's column."""
    of: Mapping[str, str]
    """What its number is about, by column."""
    said: str
    """What it is about, in words."""
    value: float


_LACKING = r"Glyph (\d+) "
"""How Matplotlib warns of a letter that its font lacks."""


@lru_cache
def _tell_lacking(letters: str) -> None:
    echo(
        f"figures show boxes for letters that their font lacks: {shortened(letters, 60)}; tables "
        "have them. Name models in other letters by NAME=MODEL or NAME=FILE"
    )


class Picture(Figure):
    """A figure that notebooks show, also without `%matplotlib inline`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.marks: list[Mark] = []

    def savefig(self, fname: Any, *, transparent: bool | None = None, **options: Any) -> None:
        """Write the figure; the letters that its font lacks are told in words, once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("always", _LACKING)
            super().savefig(fname, transparent=transparent, **options)
        lacking = set()
        for alert in caught:
            if glyph := re.match(_LACKING, str(alert.message)):
                lacking.add(chr(int(glyph[1])))
            else:
                warnings.warn_explicit(alert.message, alert.category, alert.filename, alert.lineno)
        if lacking:
            _tell_lacking("".join(sorted(lacking)))

    def _repr_png_(self) -> bytes:
        image = io.BytesIO()
        self.savefig(image, format="png", bbox_inches="tight")
        return image.getvalue()


def new_axes(*, width: float = 7.5, height: float = 4.0) -> Axes:
    """The axes of a new figure of this size in inches, created without pyplot's global state."""
    return Picture(figsize=(width, height)).add_subplot()


Interval = tuple[str, str]
"""The columns with the lower and upper ends of an interval."""


def distinct(values: pd.Series) -> list[Any]:
    """The different values, in order of appearance."""
    return values.drop_duplicates().tolist()


def positions(values: pd.Series, order: list[Any]) -> NDArray[np.float64]:
    """The index of each value in the order, (row,)."""
    return np.array([order.index(value) for value in values], dtype=float)


def n_of(counts: pd.Series) -> str:
    """Counts for a label: their common value, or the smallest and largest."""
    if counts.empty:
        return "n = 0"
    low, high = int(counts.min()), int(counts.max())
    return f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"


def interval_errors(
    rows: pd.DataFrame, values: NDArray[np.float64], interval: Interval
) -> NDArray[np.float64]:
    """Distances from the values down and up to the ends of their intervals, (2, row)."""
    low, high = (rows[column].astype(float).to_numpy() for column in interval)
    return np.maximum([values - low, high - values], 0.0)


NOTHING_SHOWN = "no 95% interval excludes"


def say_if_nothing_is_shown(
    ax: Axes, rows: pd.DataFrame, interval: Interval, of: str = "", *, null: float = 0
) -> None:
    """Write on a picture that none of its intervals, of which there are some, excludes `null`.

    `of` says which intervals are meant, if they are not those that are drawn.
    """
    low, high = (rows[column].astype(float) for column in interval)
    known = low.notna() & high.notna()
    if known.any() and ((low <= null) & (high >= null))[known].all():
        sentence = f"{of}: {NOTHING_SHOWN} {null:.2g}".removeprefix(": ")
        ax.set_xlabel("\n".join(filter(None, [ax.get_xlabel(), sentence])))


def wrapped(name: object, letters: int = _NAME) -> str:
    """A name on up to four lines, broken after "/", "-", "_" or a space, or within a long part."""
    lines: list[str] = []
    for line in shortened(str(name), 4 * letters).split("\n"):
        lines.append("")
        for part in re.findall(rf"[^/_\- ]{{1,{letters - 1}}}[/_\- ]?|[/_\- ]", line):
            if len(lines[-1]) + len(part) > letters:
                lines.append("")
            lines[-1] += part
    return "\n".join(lines)


def row_height(names: Sequence[object], least: float) -> float:
    """The height of a row in inches, such that the longest name and its count fit."""
    return max([least, *(_ROW * (wrapped(name).count("\n") + 2) for name in names)])


def add_legend(ax: Axes, groups: Sequence[object]) -> None:
    """Add a legend above the axes, in as many columns as fit between them and the right edge.

    A figure with a single panel grows if the legend has many rows.
    """
    if not groups:
        return
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    names = [line for label in ax.get_yticklabels() for line in label.get_text().splitlines()]
    room = width - LETTER * max(map(len, names), default=0) - 0.4
    longest = max(len(str(group)) for group in groups)
    columns = max(1, min(len(groups), int(room / (LETTER * longest + _HANDLE))))
    legend = ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0, ncols=columns, handlelength=2
    )
    for text in legend.get_texts() if columns == 1 else ():
        text.set_text(wrapped(text.get_text(), max(12, int((room - _HANDLE) / LETTER))))
    lines = sum(text.get_text().count("\n") + 1 for text in legend.get_texts()) / columns
    if len(figure.axes) == 1:
        figure.set_size_inches(width, height + _ROW * max(0.0, lines - 3))


def panel_a_model(
    table: pd.DataFrame,
    draw: Callable[[pd.DataFrame, Axes], object],
    *,
    handles: Sequence[Artist | Container] | None = None,
) -> Axes:
    """Draw a figure with a panel for each model and one legend; return its first axes.

    Without rows, the figure says "undefined". Without `handles`, each label's entry is taken from
    the first panel that shows the label.
    """
    models = distinct(table["model"])
    shown: dict[str, Artist | Container] = {}
    columns = max(1, min(3, len(models)))
    rows = max(1, -(-len(models) // columns))
    with house_style():
        figure = Picture(figsize=(3.6 * columns, 3.0 * rows + 0.5))
        panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for model, ax in zip(models, panels.flat, strict=False):
            draw(table[table["model"] == model], ax)
            ax.set_title(wrapped(model, 36), fontsize=10)
            if ax not in panels[:, 0]:
                ax.set_ylabel("")
            legend = ax.get_legend()
            if legend is not None:
                for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                    shown.setdefault(label, handle)
                legend.remove()
        for ax in panels.flat[len(models) :]:
            ax.set_axis_off()
        if not len(models):
            figure.text(0.5, 0.5, UNDEFINED, ha="center")
        if handles or shown:
            legend_beside(figure, handles or list(shown.values()))
    return figure.axes[0]


MOST_MARKS = 800
"""Largest number of marks of a figure, since each makes its page larger."""


def mark(
    ax: Axes,
    artist: Artist,
    row: Mapping[Any, Any],
    *,
    at: tuple[int, int],
    number: str,
    named: Sequence[str],
) -> None:
    """Let a cell, bar or point lead to the pairs of its row; figures of others have no marks.

    `at` is its row and column among the marks of these axes, which the columns `named` tell apart.
    """
    figure = ax.get_figure(root=True)
    if not isinstance(figure, Picture) or len(figure.marks) >= MOST_MARKS:
        return
    texts = {str(name): _text(row[name]) for name in row if isinstance(row[name], str)}
    texts |= {name: _text(row[name]) for name in named}
    about = ", ".join(f"{heading(name)} {segment_label(texts[name])}" for name in named)
    name = f"mark-{len(figure.marks)}"
    artist.set_gid(name)
    # Panels of a figure stand beside each other.
    at = (at[0], at[1] + 1000 * figure.axes.index(ax))
    figure.marks.append(Mark(name, at, number, texts, about, float(row[number])))


def mark_points(
    ax: Axes,
    rows: pd.DataFrame,
    places: Sequence[tuple[SupportsFloat, SupportsFloat]],
    *,
    series: int,
    number: str,
    named: Sequence[str],
) -> None:
    """Put an invisible square over each point of a table's rows, as its mark.

    Arrow keys lead up and down between the groups of points, whose numbers are `series`; the
    columns `named` tell the points of these axes apart.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    for at, (row, (x, y)) in enumerate(zip(rows.to_dict("records"), places, strict=True)):
        if np.isfinite(float(x)) and np.isfinite(float(y)) and np.isfinite(float(row[number])):
            # Axes may be logarithmic, which the types of Matplotlib do not foresee.
            scale: Any = ax.transData
            center = ScaledTranslation(float(x), float(y), scale)
            # The mark is 12 points wide.
            size = Affine2D().translate(-0.5, -0.5).scale(12 / 72) + figure.dpi_scale_trans
            area = PathPatch(
                Path.unit_rectangle(), transform=size + center, facecolor="none", edgecolor="none"
            )
            ax.add_artist(area)
            mark(ax, area, row, at=(series, at), number=number, named=named)


def mark_areas(
    ax: Axes,
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    number: str,
    columns: list[Any],
    rows: list[Any],
) -> None:
    """Put an invisible area over each cell of a grid, as its mark.

    Cells are one unit wide and high, and their centers are at whole numbers, as those of images.
    `columns` and `rows` are the values of `x` and `y` in order.
    """
    for row in table.dropna(subset=number).to_dict("records"):
        across, down = columns.index(row[x]), rows.index(row[y])
        area = Rectangle((across - 0.5, down - 0.5), 1, 1, facecolor="none", edgecolor="none")
        ax.add_artist(area)
        mark(ax, area, row, at=(down, across), number=number, named=[y, x])


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
