"""The pieces of a browser of pairs: codes that a page reads back, sizes, and hostile texts."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.report import pieces as module
from interp.report.browse import write_browser
from interp.report.pairs import Bars, Browser, Grid, Number, Shaded, Table, Text
from interp.report.pieces import links, number_code, pieces, plain_json, script
from tests.report.conftest import HOSTILE
from tests.report.test_page import ANSWERS, PROMPTS

PANELS = [
    Shaded("Shading", {"model": "m"}, [Text("a", ["On", "e?"], [0.5, -1.0], ["", "premise1"])]),
    Bars("Bars", {"model": "m"}, {"a": [("premise 1", 2.0), ("rest", -0.123456)]}, note=HOSTILE),
    Grid(
        "Grid", {"model": "m", "site": "x"}, ["0"], ["p", "q"], [[1.0, math.nan]], [["w", HOSTILE]]
    ),
    Table("Table", {}, ["what", "number"], [[HOSTILE, 1.5]]),
]


def plain(prompts=PROMPTS, answers=ANSWERS, panels=PANELS, **more) -> Browser:
    def shown(own):
        for pair in own["pair_id"].unique():
            yield from ((pair, panel) for panel in panels)

    return Browser(prompts, answers, shown, **more)


def many(pairs: int) -> Browser:
    """Plausible rows of a run of many pairs, made up."""
    number = np.repeat(np.arange(pairs), 2)
    side = np.tile(["clean", "corrupt"], pairs)
    prompts = pd.DataFrame(
        {
            "prompt_id": [f"RULE_{n:07d}/{s}" for n, s in zip(number, side, strict=True)],
            "pair_id": [f"RULE_{n:07d}/infer-tf" for n in number],
            "side": side,
            "text": [
                f"Premises: Anne {n} is good at either judo or some kind of {s} martial art. " * 2
                for n, s in zip(number, side, strict=True)
            ],
            "gold": np.where(side == "clean", "Yes", "No"),
            "weight": 1.0,
            "phrasing": [f"phrasing {n % 10}" for n in number],
            "entity": [f"entity {n % 72}" for n in number],
        }
    )
    wrong = (number % 97 == 0) & (side == "clean")
    answers = prompts[["prompt_id"]].assign(
        model="organism/llama", answer="Yes", correct=~wrong, error=""
    )
    values = {pair: math.sin(n) * 5 for n, pair in enumerate(prompts["pair_id"].unique())}
    number = Number("effect", {"model": "organism/llama", "layer": "3"}, values)
    return plain(prompts, answers, numbers=[number], cluster="entity")


def decoded(code: int) -> float | None:
    """What templates/pairs.js makes of a code."""
    if code == 0:
        return None
    size = (code - 1) // 2
    value = float(f"{size % 1000}e{size // 1000 - 16}")
    return -value if (code - 1) % 2 else value


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_number_has_three_digits_exactly(value):
    found = decoded(number_code(value))
    if not math.isfinite(value) or abs(value) >= 9.995e17:
        assert found is None
    elif abs(value) < 1e-14:
        assert found == 0
    else:
        assert found == float(f"{value:.2e}")
    assert 0 <= number_code(value) < len(module.CODES) ** 3


def letters(codes: str, width: int) -> list[int]:
    found = [module.CODES.index(letter) for letter in codes]
    return [
        sum(
            code * len(module.CODES) ** place
            for place, code in enumerate(found[start : start + width])
        )
        for start in range(0, len(found), width)
    ]


def test_the_index_the_columns_and_the_links_hold_what_the_tables_hold():
    number = Number("effect", {"model": "m"}, {"1": -0.12345, "3": 9.0})
    prompts = PROMPTS.assign(who=["Anne", "Ben", "Ben", None])
    found = dict(pieces(plain(prompts, numbers=[number]), {"title": "Study"}))
    index = found["index"]
    assert (index["pairs"], index["prompts"], index["sides"]) == (2, 4, ["a", "b"])
    assert index["models"] == ["m", "n"] and index["title"] == "Study"
    m, n, city, who, effect = index["columns"]
    # Three bits for each side: right 1, wrong 2, not judged 3, no option 4, not asked 0.
    assert letters(found[m["piece"]]["codes"], m["width"]) == [1 + 2 * 8, 4 + 2 * 8]
    assert letters(found[n["piece"]]["codes"], n["width"]) == [1 + 2 * 8, 3]
    assert city["values"] == ["Paris", "Rome"] and not city["sided"]
    assert letters(found[city["piece"]]["codes"], 1) == [2, 1]
    # A factor that differs within pairs has a code for each side.
    assert who["sided"] and letters(found[who["piece"]]["codes"], 1) == [1, 2, 2, 0]
    codes = letters(found[effect["piece"]]["codes"], 3)
    assert list(map(decoded, codes)) == [-0.123, None]
    assert found["r0"] == [["1", "One?"], ["2", "Three?"]]
    first = found["d0"][0]
    assert [prompt["text"] for prompt in first["prompts"]] == ["One?", "Two?"]
    assert first["answers"][0] == ["m", "1a", "Yes", True, ""]
    assert [panel["kind"] for panel in first["panels"]] == ["shaded", "bars", "grid", "table"]
    assert first["panels"][1]["groups"][0]["values"] == [2, -0.1235]
    assert first["panels"][2]["values"] == [[1, None]]
    for panel, data in zip(PANELS, first["panels"], strict=True):
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert data["title"] == panel.title and data["of"] == dict(panel.of)
    found = links(plain(), "pairs.html", {})
    assert found["models"] == ["m", "n"] and found["sides"] == ["a", "b"]
    assert found["factors"] == {"city": ["Rome", "Paris"]}


def test_a_preview_ends_with_a_whole_word():
    texts = ["A word " * 20, "x" * 100, "One two", "One two three"]
    found = dict(pieces(plain(PROMPTS.assign(text=texts)), {}))["r0"]
    assert found == [["1", "A word A word A word A word A word A word A …"], ["2", "One two"]]
    texts = ["x" * 100, "y", "One two three", "One two four"]
    found = dict(pieces(plain(PROMPTS.assign(text=texts)), {}))["r0"]
    assert found == [["1", "x" * 47 + "…"], ["2", "One two three"]]


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False))
def test_data_in_a_script_is_json_and_never_ends_it(text, number):
    data = {"text": text, "number": number}
    written = plain_json(data)
    assert not set(written) & set("<>&\u2028\u2029")
    assert json.loads(written) == data
    assert script("d0", data) == f'interpPairs("d0", {written});\n'


@pytest.mark.slow
def test_a_click_on_a_large_run_reads_at_most_200_kilobytes(tmp_path):
    """A number's link reads a model's outcomes, its own column, rows from all over, and a pair."""
    pairs = 25_600
    size: dict[str, list[int]] = {}
    for name, data in pieces(replace(many(pairs), panels=lambda own: ()), {"title": "Study"}):
        size.setdefault(name[0], []).append(len(script(name, data).encode()))
    assert [column["kind"] for column in data["columns"]] == [
        "outcome",
        "factor",
        "factor",
        "number",
    ]
    assert size["i"][0] < 60_000
    # The pieces of columns: the outcomes, two factors and a number.
    outcomes, *factors, number = size["c"]
    drawn = 20 * max(size["r"]) + max(size["d"])
    assert outcomes + number + drawn < 200_000
    assert outcomes + sum(factors) + drawn < 200_000
    # A search reads at most two pieces for each word, whatever the word begins with.
    read = 2 * max(size["s"])
    assert read < 20_000
    assert drawn + 4 * read < 200_000
    # A cited search of a sorted list shows no pair before one is chosen.
    assert outcomes + number + 20 * max(size["r"]) + 2 * read < 200_000
    assert size["i"][0] + size["r"][0] + size["d"][0] < 200_000  # the first view


def test_a_browser_is_written_again_byte_for_byte_and_only_its_own_pieces_are_removed(tmp_path):
    names, seen = [], []
    for pairs in (300, 50, 50):
        names = write_browser(many(pairs), tmp_path, title="Study", page="report.html")
        seen.append({name: (tmp_path / name).read_bytes() for name in names})
    assert names[0] == "pairs.html" and "pairs/index.js" in names
    assert seen[1] == seen[2] and "pairs/d2.js" in seen[0]
    own = tmp_path / "pairs"
    (own / "d9.js").write_text("a file of someone else")
    (own / "notes.js").write_text("interpPairs")
    names = write_browser(plain(), tmp_path, title="Study", page="report.html")
    there = {f"pairs/{path.name}" for path in own.iterdir()}
    assert there == {*names[1:], "pairs/d9.js", "pairs/notes.js"}


def test_of_many_numbers_the_largest_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MOST_NUMBERS", 2)
    sizes = (("x", 1.0), ("y", -3.0), ("z", 2.0), ("none", math.nan))
    numbers = [Number(name, {}, {"1": value}) for name, value in sizes]
    found = links(plain(numbers=numbers), "pairs.html", {})
    assert [number["name"] for number in found["numbers"]] == ["y", "z"]
