import re

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

from interp.errors import UserError
from interp.report.html import column, table_html, token_heat_map, with_flags
from tests.report.conftest import HOSTILE

PROMPTS = pd.DataFrame({"prompt_id": ["p"], "side": ["rulebreaker"], "gold": ["No"]})
ANSWERS = pd.DataFrame({"model": ["m"], "prompt_id": ["p"], "answer": [""]})


def scores_of(tokens, *, scores, segments, model="m") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": model,
            "prompt_id": "p",
            "method": "input_gradient",
            "position": range(len(tokens)),
            "token": tokens,
            "segment": segments,
            "share": scores,
        }
    )


def heat_map(tokens, *, scores, segments, model="m") -> str:
    return token_heat_map(
        scores_of(tokens, scores=scores, segments=segments, model=model),
        prompts=PROMPTS,
        answers=ANSWERS.assign(model=model),
        method="input_gradient",
    )


def shades(html) -> list[float]:
    return [float(shade) for shade in re.findall(r"--shade:([\d.]+)", html)]


def test_a_token_is_shaded_by_its_share_of_the_largest_one_within_segments():
    html = heat_map(
        ["<s>", " If", " B", "\n"],
        scores=[0.6, 0.1, 0.25, 0.05],
        segments=["template", "premise1", "premise2", "template"],
    )
    assert shades(html) == [0.0, 0.4, 1.0, 0.0]
    assert "premise 1 <b>0.100</b>" in html
    assert "0.250 of the prompt" in html
    assert "0.650 (rulebreaker)" in html
    assert "answered no option" in html


def test_the_underlined_segments_are_those_that_are_compared():
    """They used to be premise1 and premise2 whatever the prompts compare."""
    scores = scores_of(
        ["a", "b", "c"], scores=[0.2, 0.3, 0.5], segments=["fact", "clue", "premise1"]
    )
    options = {"prompts": PROMPTS, "answers": ANSWERS, "method": "input_gradient"}
    marked = r'class="segment (\w*)">'
    html = token_heat_map(scores, **options, compared=("clue", "fact"))
    assert re.findall(marked, html) == ["denominator", "numerator", ""]
    assert re.findall(marked, token_heat_map(scores, **options)) == ["", "", ""]


def test_tokens_come_in_reading_order():
    table = scores_of(["a", " b", " c"], scores=[0.1, 0.2, 0.7], segments=["premise1"] * 3)
    shuffled = table.iloc[[2, 0, 1]]
    maps = [
        token_heat_map(rows, prompts=PROMPTS, answers=ANSWERS, method="input_gradient")
        for rows in (table, shuffled)
    ]
    assert maps[0] == maps[1]


@pytest.mark.parametrize("scores", [[np.nan, np.nan], [0.0, 0.0]])
def test_scores_that_are_none_are_not_shaded(scores):
    html = heat_map([" a", " b"], scores=scores, segments=["premise1", "premise2"])
    assert shades(html) == [0.0, 0.0]
    assert ("undefined" in html) == bool(np.isnan(scores[0]))


def test_names_in_the_first_column_break_after_their_marks():
    frame = pd.DataFrame({"method": ["leave_one_out:donor", "a<b_c"], "site": ["resid_pre", "z"]})
    html = table_html(frame, label="Methods")
    assert "<td>leave_<wbr>one_<wbr>out:<wbr>donor</td>" in html
    assert "<td>a&lt;b_<wbr>c</td>" in html
    assert "<td>resid_pre</td>" in html


def test_html_in_tokens_and_names_is_escaped():
    html = heat_map(
        [HOSTILE, '"><img src=x>'], scores=[0.5, 0.5], segments=["premise1", HOSTILE], model=HOSTILE
    )
    assert "<script" not in html
    assert "<img" not in html
    assert html.count(str(escape(HOSTILE))) >= 3


def test_both_sides_of_a_pair_share_one_scale(attributions, pair):
    html = token_heat_map(
        attributions.token_shares(), prompts=pair, answers=attributions.answers, method="attention"
    )
    assert max(shades(html)) == 1.0
    assert html.count('class="side"') == 2
    assert html.count("premise 1 <b>") == html.count("premise 2 <b>") == 2
    assert "Ġ" not in html
    assert "Ċ" not in html


def test_a_prompt_without_scores_is_refused():
    table = scores_of(["a"], scores=[1.0], segments=["premise1"])
    with pytest.raises(UserError, match=r"'p'.*token scores.*'attention'.*keep_tokens"):
        token_heat_map(table, prompts=PROMPTS, answers=ANSWERS, method="attention")


P_VALUES = [1e-9, 1e-4, 0.0004, 0.001, 0.04], ["< 0.0001", "0.0001", "0.0004", "0.001", "0.040"]


@pytest.mark.parametrize(
    ("values", "shown", "name"),
    [
        ([0.12345, -1.0, 1234.5], ["0.123", "−1.000", "1,234.500"], "score"),
        ([1, 256_000], ["1", "256,000"], "score"),
        ([95.0, None, 1200.0], ["95", "", "1,200"], "score"),
        ([1.0, 0.0, -0.0], ["1.000", "0.000", "0.000"], "score"),
        ([0.0, 0.0004, -0.00001], ["0.000", "4.0e−04", "−1.0e−05"], "score"),
        ([95_583_698.111, -1e6, 999_999.0], ["9.56e+07", "−1.00e+06", "999,999.000"], "score"),
        ([95_583_698], ["95,583,698"], "score"),
        *((*P_VALUES, name) for name in ("p", "p_value", "welch_p", "p_corrected")),
        *(([1e-9], ["1.0e−09"], name) for name in ("pairs", "premise1_sum", "probability")),
        ([np.nan, 0.5], ["", "0.500"], "score"),
        (pd.array([None, 3], dtype="Int64"), ["", "3"], "score"),
        (["a", None], ["a", ""], "score"),
        ([float("inf"), float("-inf")], ["∞", "−∞"], "score"),
        ([True, False], ["yes", "no"], "score"),
    ],
)
def test_a_column_is_shown_as_text(values, shown, name):
    assert [cell.text for cell in column(pd.Series(values, name=name)).cells] == shown


def test_texts_of_figures_sort_by_their_first_number():
    figures = column(pd.Series(["1,002.5 (3.0)", "-0.5 (0.1)", ""], name="ratio"))
    assert figures.figures
    assert [cell.key for cell in figures.cells] == [1002.5, -0.5, None]
    assert not column(pd.Series(["gemma2", "0.5"], name="model")).figures


def test_an_option_in_a_sentence_is_not_broken():
    html = with_flags("<b> uses --system-prompt; it -- and --x end.")
    assert html.count('<span class="flag">') == 2 and ">--system-prompt</span>" in html
    assert html.startswith("&lt;b&gt;")
