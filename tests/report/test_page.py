import re

import pandas as pd
import pytest

from interp.report import page
from interp.report.page import TableItem, apart, prompts_item

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


def test_a_row_says_what_a_prompt_is_and_what_each_model_answered():
    item = prompts_item(PROMPTS, ANSWERS)
    assert item.frame.columns.tolist() == ["prompt", "gold", "m", "n", "side", "city"]
    assert item.frame["m"].tolist() == ["Yes ✓", "Yes ✗", "no answer ✗", "error ✗"]
    assert item.frame["n"].tolist() == ["Yes ✓", "Yes ✗", "not judged", ""]
    assert item.models == ("m", "n")
    assert item.note.startswith("4 prompts. ")


def test_of_many_prompts_whole_pairs_are_shown(monkeypatch):
    monkeypatch.setattr(page, "MOST_PROMPTS", 2)
    item = prompts_item(PROMPTS, ANSWERS)
    assert item.frame["prompt"].tolist() == ["One?", "Two?"]
    assert re.match(r"2 prompts.*\b4\b", item.note)


def test_of_long_prompts_fewer_are_shown(monkeypatch):
    monkeypatch.setattr(page, "MOST_CHARACTERS", 12)
    assert prompts_item(PROMPTS, ANSWERS).frame["prompt"].tolist() == ["One?", "Two?"]


@pytest.mark.parametrize(("most", "shown"), [(2, ("side", "city")), (1, ("side",))])
def test_a_factor_of_too_many_values_is_left_out(monkeypatch, most, shown):
    monkeypatch.setattr(page, "MOST_VALUES", most)
    assert tuple(prompts_item(PROMPTS, ANSWERS).frame.columns[4:]) == shown


def test_a_page_shows_the_first_rows_of_a_long_table_and_counts_all(monkeypatch):
    monkeypatch.setattr(page, "MOST_ROWS", 3)
    item = TableItem("t", "Table", pd.DataFrame({"n": range(1000)}))
    assert item.on_page["n"].tolist() == [0, 1, 2]
    assert re.fullmatch(r"3 .*\b1,000 rows", item.rows)


def test_a_page_counts_the_rows_that_a_display_omits():
    frame = pd.DataFrame({"n": range(50)})
    rows = TableItem("t", "Table", frame, display=frame.head(20)).rows
    assert re.fullmatch(r"20 .*\b50 rows", rows)
    matrix = pd.DataFrame({"a": [1], "b": [2]})
    assert TableItem("t", "Table", frame, display=matrix).rows == "1 row"


CHOSEN = ["m", "prompt", "gold", "side", "model", "n", "m (factor)", "side (factor)", "pair"]
"""Names that a user may choose, some of them those of columns."""


@pytest.mark.parametrize("model", CHOSEN)
def test_names_that_users_choose_replace_no_column(model):
    factors = [name for name in CHOSEN if name not in ("gold", "side")]
    values = {name: [f"{name}{place}" for place in range(4)] for name in factors}
    answers = ANSWERS[ANSWERS["model"] == "m"].assign(model=model)
    item = prompts_item(PROMPTS.assign(**values), answers)
    table = item.frame
    assert table.columns.is_unique
    for name, expected in (("prompt", "text"), ("gold", "gold"), ("side", "side")):
        assert table[name].tolist() == PROMPTS[expected].tolist()
    (column,) = item.models
    assert table[column].tolist() == ["Yes ✓", "Yes ✗", "no answer ✗", "error ✗"]
    shown = [table[name].tolist() for name in table]
    assert all(own in shown for own in values.values())


def test_names_stay_apart():
    taken = ["a", "a (x)"]
    assert apart(["a", "a", "b"], "x", taken) == ["a (x) (x)", "a (x) (x) (x)", "b"]
    assert apart([], "x", taken) == []


def test_a_report_names_what_writes_it():
    report = page.Report("evaluate pairs", "", ())
    assert "interp.write_page(report, " in repr(report) and len(repr(report)) < 120
