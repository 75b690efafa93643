import re

import pandas as pd
import pytest

from interp.report.page import TableItem
from interp_experiments.findings import in_brief, named_section

NAN = float("nan")


def compared(*rows):
    columns = ["name", "difference", "low", "high", "p_holm", "verdict", "excluded_below"]
    table = pd.DataFrame(rows, columns=[*columns, "excluded_above", "clusters"])
    return table.assign(n=table["clusters"].map("{} theories".format))


UP = ("up", 0.5, 0.4, 0.6, 0.00001, "different", 0.42, 0.58, 40)
DOWN = ("down", -0.3, -0.4, -0.2, 0.0004, "different", -0.38, -0.22, 30)
NARROW = ("narrow", 0.01, -0.05, 0.07, 0.4, "smaller", -0.04, 0.06, 40)
WIDE = ("wide", 0.1, -0.1, 0.3, 0.2, "open", -0.07, 0.27, 20)
SAME = ("same", 0.0, -0.03, 0.03, 1.0, "smaller", -0.02, 0.02, 40)
FEW = ("few", 0.1, NAN, NAN, NAN, "not tested", NAN, NAN, 6)


@pytest.mark.parametrize(
    ("rows", "brief"),
    [
        (
            (UP, DOWN, WIDE),
            "A: 1 of 3 above, 1 below; largest up: +0.50 [+0.40, +0.60], p < 0.0001, 40 theories.",
        ),
        (
            (NARROW, WIDE, SAME, FEW),
            "A: no difference shown in 3 comparisons; −0.07 to +0.27 not excluded, p ≥ 0.200, 20 "
            "theories.",
        ),
        (
            (SAME, SAME),
            "A: no difference shown in 2 comparisons; −0.02 to +0.02 not excluded, p = 1, 40 "
            "theories.",
        ),
        ((DOWN,), "A: down, −0.30 [−0.40, −0.20], p 0.0004, 30 theories."),
        ((FEW, FEW), "A: too few clusters to test 2 comparisons (at most 6 theories)."),
    ],
)
def test_a_sentence_says_what_is_shown_and_what_is_excluded(rows, brief):
    assert in_brief(compared(*rows), "A") == brief


@pytest.mark.parametrize(
    ("least", "said"), [(0.06, "no difference can be shown"), (0.04, "no difference shown")]
)
def test_what_no_data_could_show_is_not_said_to_be_missing(least, said):
    assert said in in_brief(compared(NARROW, WIDE).assign(p_holm_least=least), "A")


def test_between_models_no_direction_is_counted():
    said = in_brief(compared(UP, DOWN, WIDE), "A", ordered=False)
    assert said.startswith("A: 2 of 3 differ; largest up: +0.50 [")


def test_the_section_of_findings_counts_comparisons_and_has_their_table():
    rows = compared(UP, FEW).assign(model="a", sets=["C-CS", "D-CS"])
    section = named_section(rows, TableItem("named", "Named", rows))
    assert [item.name for item in section.items] == ["named"]
    assert re.search(r"\b2 comparisons.*\b1\b[^.]*\.$", section.text)
