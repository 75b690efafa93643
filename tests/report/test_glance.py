"""The first screen: headline numbers, why they are blank, sentences with their n."""

import re

import numpy as np
import pandas as pd
import pytest

from interp.analysis.cautions.caution import CONSTANT, UNTESTED, Caution
from interp.report.glance import (
    dots,
    extremes,
    glance,
    headline,
    n_units,
    named_numbers,
    organisms,
    quotable,
    with_interval,
)
from interp.report.page import MOST_WORDS, FigureItem, Report, Section, TableItem
from interp.report.write import write_report
from tests.support.pages import check_first_screen

NAN = float("nan")

ROWS = pd.DataFrame(
    [
        ("a", 0.5, 0.4, 0.6, 24, ""),
        ("organism/b", 0.123, 0.0, 0.3, 24, ""),
        ("c", NAN, NAN, NAN, 0, "the weights are not finite"),
    ],
    columns=["model", "share", "low", "high", "pairs", "note"],
)


def numbers(name="paired accuracy", rows=ROWS):
    return headline(rows, name, value="share", n="pairs", unit="pairs")


def test_the_table_has_a_row_for_each_model_and_says_why_a_cell_is_blank():
    both = pd.concat([numbers(), numbers("concordance", ROWS.assign(pairs=[24, 12, 0]))])
    (table, figure) = glance("Asked.", both, []).items
    assert isinstance(table, TableItem) and isinstance(figure, FigureItem)
    shown = table.on_page
    alike, apart = shown.columns[1:]
    assert alike.replace("\N{NO-BREAK SPACE}", " ") == "paired accuracy, n = 24 pairs"
    assert apart == "concordance (n pairs)"
    assert shown[alike].tolist() == ["0.50 [0.40, 0.60]", "0.12 [0.00, 0.30]", ""]
    assert shown[apart].tolist() == ["0.50 [0.40, 0.60] (24)", "0.12 [0.00, 0.30] (12)", ""]
    assert re.fullmatch(r"Brackets: 95% .*\. Blank: c: the weights are not finite\.", table.note)
    # The file has the numbers, unrounded.
    assert table.frame.iloc[1].tolist() == [
        *("organism/b", "paired accuracy", 0.123, 0.0, 0.3, 24, "pairs", "", "")
    ]
    labeled = glance("Asked.", numbers().assign(label=["gim", "attention", ""], note=""), []).items
    assert labeled[0].on_page.iloc[0, 1] == "gim 0.50 [0.40, 0.60]"
    assert labeled[0].note.endswith("Blank: c: not measured.")
    one = pd.concat([numbers(), numbers("concordance", ROWS.fillna({"share": 0.1}))])
    assert "Blank: c (paired accuracy): the" in glance("Asked.", one, []).items[0].note


def test_numbers_that_no_model_has_leave_no_empty_columns():
    void = numbers().assign(value=NAN, low=NAN, high=NAN, note=["says No", "", "too long"])
    other = numbers("concordance")
    (table,) = glance("Asked.", void, []).items
    assert table.on_page.iloc[:, 1].tolist() == ["says No", "not measured", "too long"]
    assert "95%" not in table.note and "paired accuracy" in table.note
    table, _ = glance("Asked.", pd.concat([void, other]), []).items
    assert table.on_page.shape == (3, 2) and "concordance" in table.on_page.columns[1]
    assert table.note.count("paired accuracy") == 3  # once for each reason
    one = pd.concat([void.assign(note="no theories"), other])
    assert ": paired accuracy: no theories." in glance("Asked.", one, []).items[0].note


def bare(**columns):
    """Numbers without intervals, with further columns."""
    rows = ROWS.assign(low=NAN, high=NAN, **columns)
    return glance("Asked.", numbers(rows=rows), []).items


def test_numbers_without_an_interval_say_why():
    table, figure = bare(pairs=[9, 24, 0], note=["", "not tested: 3 clusters; few", ""])
    assert "Brackets: 95%" not in table.note and re.search(r"\ba: .*\b10\b", table.note)
    assert "organism/b: 3 clusters" in table.note
    assert "95%" not in figure.note
    one = numbers(rows=ROWS.assign(low=[0.4, NAN, NAN]))
    table, figure = glance("Asked.", one, []).items
    assert re.search(r"\b95% .*\. .*: organism/b:", table.note)
    assert "95%" in figure.note
    table, _ = bare(clusters=[9, 10, 0])
    assert re.search(r"\ba: .*\b10 clusters; organism/b: clusters", table.note)
    # The table's own note comes first: intervals of proportions need only two clusters.
    table, _ = bare(clusters=1, note="interval undefined: one cluster")
    assert "one cluster" in table.note and "10" not in table.note
    # A reason for all numbers names none.
    rows = ROWS[:1].assign(low=NAN, high=NAN, pairs=1)
    assert glance("Asked.", numbers(rows=rows), []).items[0].note.endswith("10 clusters.")


@pytest.mark.parametrize(
    ("units", "one"), [("pairs", "pair"), ("theories", "theory"), ("entity pairs", "entity pair")]
)
def test_one_unit_is_not_a_plural(units, one):
    assert n_units(1, 1, units) == f"n = 1 {one}"
    assert n_units(1, 3, units) == f"n = 1–3 {units}"
    rows = headline(ROWS.assign(pairs=1)[:1], "share", value="share", n="pairs", unit=units)
    heading = glance("Asked.", rows, []).items[0].on_page.columns[1]
    assert heading.replace("\N{NO-BREAK SPACE}", " ") == f"share, n = 1 {one}"
    assert extremes(rows, "share").endswith(f"n = 1 {one}.")


THREE = pd.DataFrame(
    [("a", 0.5, 0.4, 0.6, 24, ""), ("b", 0.12, 0.0, 0.3, 24, ""), ("c", 0.3, 0.2, 0.55, 6, "")],
    columns=ROWS.columns,
)


def said(rows, **options):
    return extremes(numbers(rows=rows), "paired accuracy", **options)


def test_the_ends_are_named_only_if_their_intervals_lie_apart():
    told = said(THREE)
    assert re.search(r"\ba, 0\.50 \[0\.40, 0\.60\], .*\bb, 0\.12 \[0\.00, 0\.30\]", told)
    assert told.endswith("; n = 6–24 pairs.")
    for end in (0.45, NAN):
        told = said(THREE.assign(high=[0.6, end, 0.55]))
        assert re.search(r"\b0\.12\b.*\b0\.50\b.*\b3 models", told) and "highest" not in told
    tied = said(THREE.assign(share=[0.5, 0.12, 0.12], high=[0.6, 0.3, 0.3]))
    assert re.search(r"\b2 models, 0\.12\b", tied)
    assert re.search(r"\b0\.50\b.*\b3 models", said(THREE.assign(share=0.5)))
    labeled = numbers(rows=THREE.assign(share=[0.5, -0.7, 0.3])).assign(label="layer 1, premise:")
    assert re.search(r"\b0\.30\b.*\b0\.70\b.*\b3 models", extremes(labeled, "paired accuracy"))
    one = extremes(labeled[:1], "paired accuracy")
    assert "a, layer 1, premise: 0.50 [0.40, 0.60]" in one
    name = "one two three four five six seven eight"
    for models in (2, 3):
        assert len(extremes(numbers(name, THREE[:models]), name).split()) <= MOST_WORDS


def test_two_models_are_not_ranked_but_told_apart_by_their_difference():
    both = "0.50 [0.40, 0.60] for a and 0.12 [0.00, 0.30] for b"
    assert both in said(THREE[:2])
    assert both in said(THREE[:2], differences={"paired accuracy": (0.38, NAN, NAN)})
    told = said(THREE[:2], differences={"paired accuracy": (0.38, 0.1, 0.6)})
    assert re.search(r"\b0\.50 .*\ba\b.*\b0\.12 .*\bb\b.*\b0\.38 \[0\.10, 0\.60\]", told)
    one = r"Paired accuracy .*\b0\.50 \[0\.40, 0\.60\] .*\ba; n = 24 pairs\.$"
    assert re.match(one, said(ROWS[:1]))
    assert said(ROWS[2:]).endswith("; n = 0.")


@pytest.mark.parametrize(
    ("number", "decimals", "text"),
    [
        ((0.5, NAN, NAN), 2, "0.50"),
        ((NAN, NAN, NAN), 2, ""),
        ((-0.001, -0.256, 0.25), 2, "0.00 [−0.26, 0.25]"),
        ((-0.0071, -0.0118, -0.0042), 3, "−0.007 [−0.012, −0.004]"),
    ],
)
def test_numbers_are_written_with_few_decimals(number, decimals, text):
    assert with_interval(*number, decimals=decimals) == text


def test_organisms_are_explained_once_and_only_if_there_are_any():
    assert organisms(["a", "owner/b"]) == ""
    assert organisms(["a", "organism/b"]).startswith("organism/…: ")
    assert "organisms" in organisms(["organism/b"]).partition(".")[0]
    assert organisms(["a", "graft/b"]).startswith("graft/…: ")
    both = organisms(["organism/b", "graft/b"])
    assert both == f"{organisms(['a', 'organism/b'])} {organisms(['graft/b'])}"
    assert glance("Asked.", numbers(), []).legend == organisms(["a", "organism/b"])


def test_the_dots_are_the_numbers_with_their_intervals():
    ax = dots(numbers().dropna(subset="value"))
    (line,) = [one for one in ax.lines if len(one.get_xdata()) == 2]
    assert line.get_xdata().tolist() == [0.5, 0.123]
    (whiskers,) = ax.collections
    assert np.array(whiskers.get_segments())[:, :, 0].tolist() == [[0.4, 0.6], [0.0, 0.3]]
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "a\nn = 24",
        "organism/\nb\nn = 24",
    ]
    assert ax.get_xlim() == pytest.approx((-0.02, 1.02))
    logits = dots(numbers().dropna(subset="value").assign(value=-3.0, low=-4.0))
    assert logits.get_xlim()[0] < -3


def test_a_page_begins_with_it_and_with_cautions_before_any_number(tmp_path):
    several = [VOID, *(Caution(UNTESTED, "", f"caution {n} <b>") for n in range(8))]
    sentences = [extremes(numbers(), "paired accuracy")]
    first = glance("Which is better?", numbers(), sentences, cautions=several)
    report = Report("Study", "How to read.", (Section("All"),), glance=first)
    html = write_report(report, tmp_path).read_text("utf-8")
    check_first_screen(report, html)
    assert (
        html.index("Which is better?") < html.index("for a and 0.12") < html.index("How to read.")
    )
    csv = pd.read_csv(tmp_path / "tables" / "at_a_glance.csv")
    assert csv["low"].tolist()[:2] == [0.4, 0.0]
    assert (tmp_path / "figures" / "at_a_glance.svg").exists()
    assert html.index("a: 100% of its answers are No") < html.index('id="table-at_a_glance"')
    assert "caution 7 &lt;b&gt;" in html and "caution 0 <b>" not in html
    nothing = glance("Asked.", numbers()[:0], ["Nothing was measured; n = 0."])
    assert (nothing.items, nothing.legend) == ((), "")


VOID = Caution(CONSTANT, "a", "100% of its answers are No", voids=True)


def test_an_accuracy_of_a_model_that_does_not_read_is_not_quoted():
    every = pd.concat([numbers(), numbers("effect of premise 1 in logits")])
    shown = quotable(every, [VOID])
    assert np.isnan(shown["value"]).tolist() == [True, False, True, False, False, True]
    assert shown["note"].iloc[0] != "" and np.isnan(shown[["low", "high"]].iloc[0]).all()
    assert named_numbers(every, shown) == ["paired accuracy", "effect of premise 1 in logits"]
    only = every[every["model"] == "a"]
    assert named_numbers(only, quotable(only, [VOID])) == ["effect of premise 1 in logits"]
    for name in ("accuracy after its thought", "rulebreaker accuracy", "F1"):
        other = quotable(numbers(name), [VOID], ["F1"] if name == "F1" else None)
        assert np.isnan(other["value"].iloc[0])


def test_tables_say_whose_accuracies_do_not_show_reading(tmp_path):
    first = glance("Asked?", numbers(), ["One; n = 1."], cautions=[VOID])
    tables = {
        "own": pd.DataFrame({"model": ["a"], "paired_accuracy": [0.5]}),
        "others": pd.DataFrame({"model": ["c"], "accuracy": [0.5]}),
        "no_accuracy": pd.DataFrame({"model": ["a"], "effect": [0.5]}),
        "unknown": pd.DataFrame({"model": ["a"], "accuracy": [NAN]}),
    }
    items = tuple(TableItem(name, name, table, "Weighted.") for name, table in tables.items())
    report = Report("Study", "", (Section("All", items=items),), glance=first)
    html = write_report(report, tmp_path).read_text("utf-8")
    notes = {name: html.partition(f'id="table-{name}"')[2].partition("<div")[0] for name in tables}
    assert [name for name in tables if "a: its answers hardly" in notes[name]] == ["own"]
    assert all("Weighted." in note for note in notes.values())
