"""Pictures of circuits: what is drawn, what a reader may choose, and names that are only text."""

import re
from itertools import pairwise

import pandas as pd

from interp.measurements.circuits.picture import MOST_EDGES, circuit_picture
from interp.measurements.circuits.show import drawn_numbers

EDGES = pd.DataFrame(
    [
        ("a0.h1", "m0", 2.0, 0.1),
        ("input", "a0.kv0.v", -1.0, 0.1),
        ("m0", "logits", 4.0, 0.1),
        ("input", "a0.h0.q", 0.5, 0.5),
        ("a0.h0", "m0", 0.5, 0.5),
    ],
    columns=["writer", "reader", "effect", "share"],
)
TEXTS = ["Is Paris in <France>? Yes or no?", "Is Paris in Chad? Yes or no?"]
PAIR = pd.DataFrame(
    {
        "side": ["clean", "corrupt"],
        "text": TEXTS,
        "fact_start": [0, 0],
        "fact_end": [text.index("?") + 1 for text in TEXTS],
        "question_start": [text.index("Yes") for text in TEXTS],
        "question_end": list(map(len, TEXTS)),
    }
)


def drawn(edges=EDGES, *, group=2):
    return str(
        circuit_picture(edges, PAIR, group=group, name="c", label="a circuit", said="", of={})
    )


def test_every_edge_is_a_line_and_every_component_a_box():
    html = drawn()
    titles = set(re.findall(r"<title>(.*?)</title>", html))
    assert "m0 → logits: +4 logits" in titles
    assert "input → a0.kv0.v: −1 logits" in titles
    assert len(titles) == len(EDGES)
    nodes = ["input", "a0.kv0", "a0.h0", "a0.h1", "m0", "logits"]
    assert re.findall(r'data-node="(.*?)"', html) == nodes
    assert html.count("<rect") == len(nodes)
    assert drawn(group=1).count("<rect") == 5  # a key of one head ends at the head
    widths = [float(width) for width in re.findall(r'stroke-width="(.*?)"', html)]
    assert widths == sorted(widths)
    assert html.count(' negative"') == 1
    # The smallest letters have 11 pixels in the picture, which shrinks to its minimum width.
    width = float(re.search(r'viewBox="0 0 ([\d.]+) ', html)[1])
    least = float(re.search(r"min-width: ([\d.]+)px", html)[1])
    assert 11 * least / width >= 9


def test_lines_boxes_and_words_know_the_circuits_and_the_prompts_that_have_them():
    html = drawn()
    assert re.findall(r'value="(\d)".*?> (.*?)</label>', html) == [
        ("0", "10% (3)"),
        ("1", "50% (5)"),
    ]
    assert html.count('<g class="node in0" ') == 5
    assert html.count('<g class="node in1" data-node="a0.h0">') == 1
    assert html.count('data-ends="input a0.kv0"') == 1  # the value of a key-value head
    # The key-value head feeds both heads; head 0 appears with the larger circuit.
    assert html.count('class="link in0"') == html.count('class="link in1"') == 1
    # Words that differ are marked, and markup is text.
    assert re.findall("<mark>(.*?)</mark>", html) == ["&lt;France&gt;?", "Chad?"]
    assert html.count("<b>question</b>") == html.count("Yes or no?") == 1


def test_circuits_too_large_to_read_are_left_out_and_wide_layers_widen_the_picture():
    many = pd.DataFrame(
        [("input", f"a0.h{head}.q", 1.0, 1.0) for head in range(MOST_EDGES)], columns=EDGES.columns
    )
    assert drawn(pd.concat([EDGES, many])).count("<path") == len(EDGES)
    wide = drawn(many.head(64))
    assert re.findall(r'data-node="a0.h(\d+)"', wide) == list(map(str, range(64)))
    places = sorted(float(x) for x in re.findall(r'<rect x="(.*?)"', wide))
    gaps = [after - before for before, after in pairwise(places)]
    assert sum(gap >= 45.9 for gap in gaps) >= 62


def test_the_numbers_of_drawn_edges_are_their_effects_in_each_pair():
    ends = {"writer": ["m0", "input"], "reader": ["logits", "m0"]}
    rows = [("p", "m0", 1.0), ("q", "m0", -2.0), ("p", "input", 3.0)]
    effects = pd.DataFrame(rows, columns=["pair_id", "writer", "effect"])
    effects["reader"] = ["logits", "logits", "m0"]
    other = effects.tail(1).assign(reader="logits", effect=4.0)  # which is not drawn
    edges = pd.DataFrame({**ends, "effect": 1.0, "share": 0.5})
    of = {"model": "m", "method": "exact"}
    found = list(drawn_numbers(pd.concat([effects, other]), edges, of))
    assert {(own.of["writer"], own.of["reader"]): dict(own.values) for own in found} == {
        ("m0", "logits"): {"p": 1.0, "q": -2.0},
        ("input", "m0"): {"p": 3.0},
    }
    assert {own.name for own in found} == {"effect"}
