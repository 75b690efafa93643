"""Tables as LaTeX, read back by a few rules that have nothing in common with the writer's."""

import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from interp.report.latex import escaped, latex
from interp.report.page import TableItem

TABLE = pd.DataFrame(
    [("a_b & 50%", 0.5, 0.4, 0.6, 0.00001, 1200, ""), ("{x} [y]", -0.25, *[None] * 3, 3, None)],
    columns=[
        *("model", "paired_accuracy", "paired_accuracy_low", "paired_accuracy_high"),
        *("p", "pairs", "note"),
    ],
)


def read(text):
    """The cells of a table, its heading first."""
    for mark, written in (("−", "$-$"), ("<", "$<$"), (">", "$>$"), ("[", "{[}")):
        text = text.replace(written, mark)
    rows = re.findall(r"^(.*) \\\\$", text, flags=re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]
    return [[re.sub(r"\\([&%$#_{}])", r"\1", cell) for cell in row] for row in cells]


def test_intervals_stand_behind_their_numbers_under_readable_names():
    heading, first, second = read(latex(TableItem("t", "Table", TABLE)))
    assert heading == ["model", "paired accuracy", "p", "pairs", "note"]
    assert first == ["a_b & 50%", "0.500 [0.400, 0.600]", "< 0.0001", "1,200", ""]
    assert second == ["{x} [y]", "−0.250", "", "3", ""]


def test_tables_of_other_forms():
    """Ends without a prefix belong to the column before them; no rows; lists."""
    table = pd.DataFrame({"number": ["x"], "value": [0.5], "low": [0.1], "high": [0.9], "n": [3]})
    assert read(latex(TableItem("t", "T", table)))[1] == ["x", "0.500 [0.100, 0.900]", "3"]
    assert len(read(latex(TableItem("t", "T", TABLE.head(0))))) == 1
    lists = pd.DataFrame({"ids": [[1, 2]], "right": [True]})
    assert read(latex(TableItem("t", "T", lists)))[1] == ["1, 2", "yes"]


def test_the_page_and_the_file_show_the_same_columns_and_rows():
    long = pd.DataFrame({"n": range(2000)})
    item = TableItem("t", "T", long, display=long.rename(columns={"n": "number"}))
    cells = read(latex(item))
    assert cells[0] == ["number"]
    assert len(cells) - 1 == len(item.on_page)


@given(st.text())
def test_no_text_of_a_model_or_prompt_becomes_a_command(text):
    left = re.sub(r"\\[&%$#_{}]|\\text\w+\{\}|\$\\\w+\$|\$[-<>|]\$|\{\[\}", "", escaped(text))
    assert not set(left) & set("\\&%$#_{}~^\n\r\0")
