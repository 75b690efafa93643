"""A picture of a circuit on a page: components by layer, lines for edges, and the prompt below.

The picture is one SVG element in the page. Each line is marked with the smallest circuit that
contains its edge, so that a reader can choose a size without a script (circuit.css).
"""

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import pandas as pd
from markupsafe import Markup

from interp.report.html import render

MOST_EDGES, FIRST_EDGES = 200, 80
"""Maximum number of edges in a picture, and in the circuit that it shows first."""

_WIDTH, _ROW, _MARGIN, _NODE_WIDTH = 960.0, 74.0, 92.0, 46.0
"""Sizes in pixels: minimum width of a picture, height of a row of components, width of the row
labels, and width of a component."""

_ROWS = ("kv", "h", "m")
"""A layer's rows from bottom to top: keys and values shared by heads, the heads, and the MLP."""

_NODE = re.compile(r"a(?P<layer>\d+)\.(?P<kind>h|kv)(?P<head>\d+)(?:\.(?P<site>[qkv]))?")


_Words = list[tuple[str, bool]]
"""The words of a text, each with whether the other text lacks it."""


def circuit_picture(
    edges: pd.DataFrame,
    pair: pd.DataFrame,
    *,
    group: int,
    name: str,
    label: str,
    said: str,
    of: Mapping[str, str],
) -> Markup:
    """A picture of circuits of growing size (`drawn_edges`).

    Args:
        edges: columns writer, reader, effect (mean, in logits) and share (the share of the smallest
            circuit that contains the edge).
        pair: rows of the prompts table with the clean and the corrupt prompt of one pair.
        group: number of heads that share a key and a value.
        name: a name that no other picture on the page has.
        label: what the picture shows, for screen readers.
        said: what a reader must know before looking; empty if there is nothing to say.
        of: the model and the method of the effects, by which a page finds the pairs of an edge.
    """
    sizes = edges.groupby("share").size().cumsum()
    drawn = drawn_edges(edges)
    shown = drawn["share"].drop_duplicates().sort_values()
    size = {share: number for number, share in enumerate(shown)}
    drawn = drawn.assign(
        to=[_component(reader, group) for reader in drawn["reader"]], size=drawn["share"].map(size)
    )
    places, rows, (width, height) = _places([*drawn["writer"], *drawn["to"]])
    first = pd.concat([drawn.groupby(end)["size"].min() for end in ("writer", "to")])
    first = first.groupby(level=0).min()
    nodes = [
        {"name": node, "label": node.partition(".")[2] or node, "x": x, "y": y, "size": first[node]}
        for node, (x, y) in places.items()
    ]
    largest = float(drawn["effect"].abs().max()) or 1.0
    lines = [
        _line(row, places, largest)
        for row in drawn.sort_values("effect", key=abs).to_dict("records")
    ]
    links = [
        (places[kv], places[head], int(max(first[kv], first[head])))
        for kv, head in _shared(places, group)
    ]
    return render(
        "circuit.html.jinja",
        name=name,
        label=label,
        said=said,
        of=json.dumps(dict(of)),
        height=height,
        width=width,
        rows=rows,
        nodes=nodes,
        lines=lines,
        links=links,
        choices=[(number, share, int(sizes.iloc[number])) for number, share in enumerate(shown)],
        first=max(0, int((sizes <= FIRST_EDGES).sum()) - 1),
        segments=_segments(pair),
        sides=list(pair["side"]),
    )


def drawn_edges(edges: pd.DataFrame) -> pd.DataFrame:
    """The edges of all circuits with at most `MOST_EDGES`, or of the smallest nonempty circuit."""
    sizes = edges.groupby("share").size().cumsum()
    return edges[edges["share"].isin(sizes.index[: max(1, int((sizes <= MOST_EDGES).sum()))])]


def _component(reader: str, group: int) -> str:
    parts = _NODE.fullmatch(reader)
    if parts is None:
        return reader
    kind = "h" if group == 1 else parts["kind"]
    return f"a{parts['layer']}.{kind}{parts['head']}"


def _places(
    nodes: Sequence[str],
) -> tuple[dict[str, tuple[float, float]], list[tuple[str, float]], tuple[float, float]]:
    """Positions of components, row labels with their heights, and the picture's size."""
    by_row: dict[tuple[int, str], list[str]] = {}
    for node in sorted(set(nodes), key=_parsed):
        by_row.setdefault(_parsed(node)[0], []).append(node)
    keys = sorted(by_row, key=lambda key: (key[0], ("input", *_ROWS, "logits").index(key[1])))
    places, labels = {}, []
    height = _ROW * len(keys)
    width = max(_WIDTH, _MARGIN + _NODE_WIDTH * max(map(len, by_row.values())))
    for number, key in enumerate(keys):
        y = height - _ROW * (number + 0.5)
        step = (width - _MARGIN) / len(by_row[key])
        for place, node in enumerate(by_row[key]):
            places[node] = (_MARGIN + step * (place + 0.5), y)
        if key[1] in _ROWS:
            what = {"kv": "keys, values", "h": "heads", "m": "MLP"}[key[1]]
            labels.append((f"layer {key[0]} {what}", y))
    return places, labels, (width, height)


def _parsed(node: str) -> tuple[tuple[int, str], int]:
    """The layer and row of a component, and its number in that row."""
    parts = _NODE.fullmatch(node)
    if parts is not None:
        return (int(parts["layer"]), parts["kind"]), int(parts["head"])
    if node[0] == "m":
        return (int(node[1:]), "m"), 0
    return ((-1, "input") if node == "input" else (1_000_000, "logits")), 0


def _shared(places: Mapping[str, tuple[float, float]], group: int) -> Iterator[tuple[str, str]]:
    """Pairs of a key-value head and a head that reads it, both in the picture."""
    for kv in (node for node in places if ".kv" in node):
        layer, first = kv.partition(".")[0], _parsed(kv)[1] * group
        for head in (f"{layer}.h{number}" for number in range(first, first + group)):
            if head in places:
                yield kv, head


def _line(
    row: Mapping[Hashable, Any], places: Mapping[str, tuple[float, float]], largest: float
) -> dict[str, object]:
    """An edge as a line: its path, and what the page says about it and finds it by."""
    writer, reader, effect = row["writer"], row["reader"], float(row["effect"])
    (x1, y1), (x2, y2) = places[writer], places[row["to"]]
    parts = _NODE.fullmatch(reader)
    kind = parts["site"] if parts else "stream"
    # Queries, keys and values enter a component side by side.
    x2 += {"q": -9.0, "k": 0.0, "v": 9.0}.get(kind, 0.0)
    y1, y2 = y1 - 12, y2 + 12
    bend = max(24.0, 0.4 * abs(y1 - y2))
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 - bend:.1f} {x2:.1f} {y2 + bend:.1f} {x2:.1f} {y2:.1f}"
    return {
        "path": path,
        "kind": kind,
        "width": round(0.8 + 5.2 * abs(effect) / largest, 2),
        "negative": effect < 0,
        "title": f"{writer} → {reader}: {effect:+.3g} logits".replace("-", "−"),
        "ends": f"{writer} {row['to']}",
        "writer": writer,
        "reader": reader,
        "size": row["size"],
    }


def _segments(pair: pd.DataFrame) -> list[tuple[str, _Words, _Words]]:
    rows = pair.to_dict("records")
    columns = map(str, pair.columns)
    names = [column.removesuffix("_start") for column in columns if column.endswith("_start")]
    segments = []
    for name in names:
        texts = [
            ""
            if pd.isna(row[f"{name}_start"])
            else str(row["text"])[int(row[f"{name}_start"]) : int(row[f"{name}_end"])]
            for row in rows
        ]
        if any(texts):
            segments.append((name.replace("_", " "), *_compared(*texts)))
    return segments


def _compared(clean: str, corrupt: str) -> tuple[_Words, _Words]:
    one, other = ([(word, True) for word in text.split()] for text in (clean, corrupt))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    for block in blocks:
        for i in range(block.size):
            one[block.a + i] = other[block.b + i] = one[block.a + i][0], False
    return one, other
