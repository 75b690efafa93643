import pandas as pd
import pytest

from interp_experiments.findings import (
    in_brief,
    in_full,
    listed,
    organisms,
    organisms_in_brief,
)


def test_names_as_in_a_sentence():
    assert [listed(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_organisms_are_told_from_other_models():
    assert organisms(["owner/model"]) == []
    (some,) = organisms(["owner/model", "organism/gemma2"])
    assert some.startswith("Organisms: organism/gemma2. They are small models trained for this")
    (every,) = organisms(["organism/gemma2", "organism/mistral"])
    assert every.startswith("All models here are organisms. They are small models")


def test_the_same_in_brief():
    assert organisms_in_brief(["owner/model"]) == []
    (some,) = organisms_in_brief(["owner/model", "organism/gemma2"])
    assert some.startswith("1 of 2 models here is an organism, trained for this project")
    (every,) = organisms_in_brief(["organism/gemma2", "organism/mistral"])
    assert every.startswith("All models here are organisms")
    assert max(len(line.split()) for line in (some, every)) <= 25


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
    ("rows", "brief", "full"),
    [
        (
            (UP, DOWN, WIDE),
            "A: 1 of 3 above, 1 below; largest up: +0.50 [+0.40, +0.60], p < 0.0001, 40 theories.",
            "A: a difference is shown for up (+0.50 [+0.40, +0.60], p < 0.0001, 40 theories) and "
            "down (−0.30 [−0.40, −0.20], p 0.0004, 30 theories); a difference of 0.1 or "
            "more is not excluded for wide (−0.070 to +0.270).",
        ),
        (
            (NARROW, WIDE, SAME, FEW),
            "A: no difference shown in 3 comparisons; −0.07 to +0.27 not excluded, p ≥ 0.200, 20 "
            "theories.",
            "A: no difference is shown; a difference of 0.1 or more is excluded for narrow (−0.040 "
            "to +0.060) and same (−0.020 to +0.020); a difference of 0.1 or more is not excluded "
            "for wide (−0.070 to +0.270); too few to test few.",
        ),
        (
            (DOWN,),
            "A: down, −0.30 [−0.40, −0.20], p 0.0004, 30 theories.",
            "A: a difference is shown for down (−0.30 [−0.40, −0.20], p 0.0004, 30 theories).",
        ),
        (
            (FEW,),
            "A: not tested, with too few in 1 comparison.",
            "A: nothing was tested; too few to test few.",
        ),
    ],
)
def test_a_sentence_says_what_is_shown_and_what_is_excluded(rows, brief, full):
    assert in_brief(compared(*rows), "A") == brief
    assert in_full(compared(*rows), "A") == full
