import re

import pandas as pd
import pytest

from interp.report import page
from interp.report.page import TableItem, apart

PROMPTS = pd.DataFrame(
    {
        "prompt_id": ["1a", "1b", "2a", "2b"],
        "pair_id": ["1", "1", "2", "2"],
        "side": ["a", "b", "a", "b"],
        "text": ["One?", "Two?", "Three?", "Four?"],
        "gold": ["Yes", "No", "Yes", "No"],
        "weight": 1.0,
        "city": ["Rome", "Rome", "Paris", "Paris"],
        "same": "x",
        "premise1_start": [0, 1, 2, 3],
    }
)
ANSWERS = pd.DataFrame(
    {
        "model": ["m", "m", "m", "m", "n", "n", "n"],
        "prompt_id": ["1a", "1b", "2a", "2b", "1a", "1b", "2a"],
        "answer": ["Yes", "Yes", "", "", "Yes", "Yes", None],
        "correct": pd.array([True, False, False, False, True, False, None], dtype="boolean"),
        "error": ["", "", "", "too long", "", "", ""],
    }
)


@pytest.mark.parametrize(("name", "most"), [("MOST_PROMPTS", 2), ("MOST_CHARACTERS", 12)])
def test_of_many_or_long_prompts_whole_pairs_are_held(monkeypatch, name, most):
    assert page.spread(PROMPTS).equals(PROMPTS)
    monkeypatch.setattr(page, name, most)
    assert page.spread(PROMPTS)["text"].tolist() == ["One?", "Two?"]


def test_a_page_shows_the_first_rows_of_a_long_table_and_counts_all(monkeypatch):
    frame = pd.DataFrame({"n": range(50)})
    rows = TableItem("t", "Table", frame, display=frame.head(20)).rows
    assert re.fullmatch(r"20 .*\b50 rows", rows)
    matrix = pd.DataFrame({"a": [1], "b": [2]})
    assert TableItem("t", "Table", frame, display=matrix).rows == "1 row"
    monkeypatch.setattr(page, "MOST_ROWS", 3)
    item = TableItem("t", "Table", pd.DataFrame({"n": range(1000)}))
    assert item.on_page["n"].tolist() == [0, 1, 2]
    assert re.fullmatch(r"3 .*\b1,000 rows", item.rows)


def test_names_stay_apart():
    taken = ["a", "a (x)"]
    assert apart(["a", "a", "b"], "x", taken) == ["a (x) (x)", "a (x) (x) (x)", "b"]
    assert apart([], "x", taken) == []


def test_a_report_names_what_writes_it():
    report = page.Report("evaluate pairs", "", ())
    assert "interp.write_page(report, " in repr(report) and len(repr(report)) < 120
