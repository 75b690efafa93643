import base64
import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import interp
from interp.errors import UserError
from interp.report.figures.bars_and_points import grouped_bars
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.write import TERMS, glossary, provenance, write_report
from interp.statistics.decisions import holm, reach_in_words
from tests.report.conftest import HOSTILE

TABLE = pd.DataFrame({"model": ["a", "b"], "accuracy": [1 / 3, np.nan], "n": [24, 0]})
DRAW = partial(grouped_bars, TABLE.assign(all="all"), x="all", y="accuracy", hue="model", n="n")


def report(*items, **fields) -> Report:
    return Report("Study", "Text.", (Section("Accuracy", "", items),), **fields)


ITEMS = (TableItem("accuracy", "Accuracy", TABLE), FigureItem("bars", "Bars", DRAW, "A caption."))
PATHS = [*("tables/accuracy.csv", "tables/accuracy.tex"), *("figures/bars.svg", "figures/bars.png")]


def test_tables_and_figures_are_files_beside_the_page_or_embedded_in_it(tmp_path):
    page = write_report(report(*ITEMS), tmp_path / "new", page="study.html")
    pd.testing.assert_frame_equal(pd.read_csv(page.parent / "tables" / "accuracy.csv"), TABLE)
    svg = page.parent / "figures" / "bars.svg"
    ElementTree.parse(svg)
    assert (page.parent / "figures" / "bars.png").read_bytes().startswith(b"\x89PNG")
    files = [path for path in page.parent.rglob("*") if path.is_file()]
    assert {str(path.relative_to(page.parent)) for path in files} == {*PATHS, "study.html"}
    html = page.read_text("utf-8")
    plain = re.sub(r"<svg.*?</svg>", "", html, flags=re.S)
    assert re.findall(r'(?:href|src)="([^"#][^"]*)"', plain) == ["data:,", *PATHS]
    # The page has the caption as text, and the figure's file within its picture.
    assert html.count("A caption.") == 1
    heights = [
        float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', text)[1])
        for text in (html, svg.read_text("utf-8"))
    ]
    assert heights[1] > heights[0] + 20
    mail = write_report(report(*ITEMS), tmp_path / "mail", embed=True)
    assert [file.name for file in mail.parent.iterdir()] == ["report.html"]
    form = r'<a href="data:([a-z/+-]+);base64,([^"]+)" download="([^"]+)"'
    kinds, contents, names = zip(*re.findall(form, mail.read_text("utf-8")), strict=True)
    assert kinds == ("text/csv", "application/x-tex", "image/svg+xml", "image/png")
    assert [*names] == [Path(path).name for path in PATHS]
    beside = [(page.parent / path).read_bytes() for path in PATHS]
    assert [*map(base64.b64decode, contents)] == beside
    again = write_report(report(*ITEMS), tmp_path / "again")
    assert again.read_bytes() == page.read_bytes()


def test_ids_of_several_figures_do_not_collide(tmp_path):
    items = [FigureItem(name, name, DRAW) for name in ("one", "two")]
    html = write_report(report(*items), tmp_path).read_text("utf-8")
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert used
    assert set(used) <= set(ids)


def test_a_page_has_its_head_problems_first_and_terms_and_record_last(tmp_path):
    record = {"history": [call("2026-11-20", None, f"interp run {HOSTILE}", "0.1.0")]}
    study = report(
        TableItem("none", "None", TABLE.iloc[:0]),
        record={**record, "data_hash": "5911bc"},
        problems=("gemma2: 3 of 12 shards missing",),
        paper="Chan et al. (2024).",
        names={"mt": "modus tollens"},
    )
    html = write_report(study, tmp_path / "study").read_text("utf-8")
    assert html.index("3 of 12 shards") < html.index("Text.") < html.index("5911bc")
    assert "0 rows" in html and ">accuracy<" in html  # of an empty table
    head, _, rest = html.partition("</header>")
    for said in ("2026-11-20, by interp 0.1.0", "interp run &lt;script&gt;", "Chan et al. (2024)."):
        assert said in head
    assert "@software{interp," in head and "@software" not in rest
    terms = html[html.index('id="names"') :]
    assert "modus tollens" in terms and "share of prompts whose most probable answer" in terms
    assert "familiarity" not in terms
    plain = write_report(report(), tmp_path / "plain").read_text("utf-8")
    assert "incomplete" not in plain and "Cite" not in plain


def test_everything_from_data_is_escaped(tmp_path):
    table = pd.DataFrame({HOSTILE: [HOSTILE], "all": ["all"], "accuracy": [0.5], "n": [1]})
    draw = partial(grouped_bars, table, x="all", y="accuracy", hue=HOSTILE, n="n")
    items = (
        TableItem("table", HOSTILE, table, HOSTILE),
        FigureItem("figure", HOSTILE + '"', draw, HOSTILE),
    )
    study = Report(
        HOSTILE, HOSTILE, (Section(HOSTILE, HOSTILE, items),), {HOSTILE: HOSTILE}, (HOSTILE,)
    )
    html = write_report(study, tmp_path).read_text("utf-8")
    assert html.count("<script>") == 1
    assert "taken over&#39;" in html


@pytest.mark.parametrize(
    ("names", "named"),
    [
        *(([name], r"^'.*'.*'_'.*'-'") for name in ("", "../up", "a b", "a.b")),
        (["accuracy"] * 2, r"^2\b.*'accuracy'"),
    ],
)
def test_a_name_that_is_no_file_name_or_given_twice_is_refused(tmp_path, names, named):
    with pytest.raises(UserError, match=named):
        write_report(report(*(TableItem(name, "T", TABLE) for name in names)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("place", "make", "told"),
    [
        *((name, Path.touch, rf"/{name} is not a folder") for name in ("tables", "figures")),
        *(
            (name, lambda own: own.symlink_to(own.parent.parent), rf"/{name}\b.*link")
            for name in ("tables", "figures")
        ),
        ("tables/accuracy.csv", partial(Path.mkdir, parents=True), r"/accuracy\.csv: "),
    ],
)
def test_what_cannot_be_written_is_told_with_another_place(tmp_path, place, make, told):
    folder = tmp_path / "outside" / "run"
    folder.mkdir(parents=True)
    make(folder / place)
    with pytest.raises(UserError, match=rf"{told}.*--out FILE"):
        write_report(report(TableItem("accuracy", "Accuracy", TABLE)), folder)
    assert [own.name for own in (tmp_path / "outside").iterdir()] == ["run"]


def call(day, finished, command, version):
    return {
        "started": f"{day}T10:00:00+00:00",
        "finished": finished,
        "command": command,
        "versions": {"interp": version},
    }


def test_the_provenance_of_several_calls_names_each_thing_once():
    calls = [
        call("2026-11-21", "2026-11-22T01:00:00+00:00", "interp attribute", "0.1.0"),
        call("2026-11-20", None, "interp attribute", "0.1.0"),
        call("2026-11-21", None, None, "0.2.0"),
    ]
    found = provenance({"history": calls})
    assert found["measured"] == "2026-11-20 to 2026-11-22"
    assert found["versions"] == ["0.1.0", "0.2.0"]
    assert found["commands"] == ["interp attribute"]
    assert "version = {0.2.0}" in found["bibtex"] and "year = {2026}" in found["bibtex"]
    one = provenance({"history": [call("2026-11-20", None, None, "0.1.0")]})
    assert (one["measured"], one["commands"]) == ("2026-11-20", [])
    assert provenance({}) == {}


def test_only_words_of_the_page_are_explained_and_those_of_the_study():
    table = glossary("The Paired Accuracy by side; sides aside.", {"mt": "modus tollens"})
    assert table["name"].tolist() == ["accuracy", "mt", "paired accuracy", "side"]
    assert table["meaning"].tolist()[1:3] == ["modus tollens", TERMS["paired accuracy"]]
    # A part of a word is not the word.
    assert glossary("shared, unshared, a likelihood-ratio test", {}).empty
    assert glossary("The share, of all.", {})["name"].tolist() == ["share"]


def test_a_table_whose_tests_cannot_be_significant_says_so(tmp_path):
    tests = pd.DataFrame({"model": "m", "p": [0.5] * 40, "p_least": 0.002})
    far, near = (holm(rows, family="cells") for rows in (tests, tests[:4]))
    items = (TableItem("far", "Far", far, "A note."), TableItem("near", "Near", near))
    html = write_report(report(*items), tmp_path).read_text("utf-8")
    assert html.count(reach_in_words(far)) == 1 and "A note." in html


def test_a_result_instead_of_its_report_is_refused(tmp_path):
    with pytest.raises(UserError, match="report"):
        interp.write_page(pd.DataFrame({"a": [1]}), tmp_path / "page.html")
    assert not list(tmp_path.iterdir())
