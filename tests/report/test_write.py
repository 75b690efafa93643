import base64
import re
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import interp
from interp.errors import UserError
from interp.report.figures.bars import grouped_bars
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.write import TERMS, glossary, provenance, write_report
from interp.statistics.decisions import holm, reach_in_words
from tests.report.conftest import HOSTILE

TABLE = pd.DataFrame({"model": ["a", "b"], "accuracy": [1 / 3, np.nan], "n": [24, 0]})
DRAW = partial(grouped_bars, TABLE.assign(all="all"), x="all", y="accuracy", hue="model", n="n")


def report(*items, **fields) -> Report:
    return Report("Study", "Text.", (Section("Accuracy", "", items),), **fields)


def test_tables_and_figures_are_files_beside_the_page(tmp_path):
    items = (TableItem("accuracy", "Accuracy", TABLE), FigureItem("bars", "Bars", DRAW))
    page = write_report(report(*items), tmp_path / "new")
    pd.testing.assert_frame_equal(pd.read_csv(page.parent / "tables" / "accuracy.csv"), TABLE)
    ElementTree.parse(page.parent / "figures" / "bars.svg")
    assert (page.parent / "figures" / "bars.png").read_bytes().startswith(b"\x89PNG")
    html = page.read_text("utf-8")
    links = re.findall(
        r'(?:href|src)="([^"#][^"]*)"', re.sub(r"<svg.*?</svg>", "", html, flags=re.S)
    )
    assert links == [
        "data:,",
        "tables/accuracy.csv",
        "tables/accuracy.tex",
        "figures/bars.svg",
        "figures/bars.png",
    ]
    files = [path.name for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert sorted(files) == ["accuracy.csv", "accuracy.tex", "bars.png", "bars.svg", "report.html"]


def test_the_file_of_a_figure_holds_its_caption_and_the_page_has_it_as_text(tmp_path):
    note = "Bars: share of pairs. Whiskers: 95% intervals."
    page = write_report(report(FigureItem("bars", "Bars", DRAW, note)), tmp_path)
    html, file = page.read_text("utf-8"), (tmp_path / "figures" / "bars.svg").read_text("utf-8")
    assert html.count(note) == 1
    heights = [float(re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', text)[1]) for text in (html, file)]
    assert heights[1] > heights[0] + 20


def test_the_same_report_is_written_again_byte_for_byte(tmp_path):
    study = report(TableItem("accuracy", "Accuracy", TABLE), FigureItem("bars", "Bars", DRAW))
    first, second = (write_report(study, tmp_path / name).read_bytes() for name in "ab")
    assert first == second


def test_ids_of_several_figures_do_not_collide(tmp_path):
    items = [FigureItem(name, name, DRAW) for name in ("one", "two")]
    html = write_report(report(*items), tmp_path).read_text("utf-8")
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert used
    assert set(used) <= set(ids)


def test_problems_come_first_and_the_record_last(tmp_path):
    study = report(record={"data_hash": "5911bc"}, problems=("gemma2: 3 of 12 shards missing",))
    html = write_report(study, tmp_path).read_text("utf-8")
    assert html.index("3 of 12 shards") < html.index("Text.") < html.index("5911bc")
    assert "incomplete" not in write_report(report(), tmp_path).read_text("utf-8")


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


@pytest.mark.parametrize("name", ["", "../up", "a b", "a.b"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"^'.*'.*'_'.*'-'"):
        write_report(report(TableItem(name, "Accuracy", TABLE)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_name_that_is_given_twice_is_refused(tmp_path):
    twice = [TableItem("accuracy", "Accuracy", TABLE)] * 2
    with pytest.raises(UserError, match=r"^2\b.*'accuracy'"):
        write_report(report(*twice), tmp_path)


def test_an_empty_table_still_shows_its_headings(tmp_path):
    html = write_report(report(TableItem("none", "None", TABLE.iloc[:0])), tmp_path).read_text(
        "utf-8"
    )
    assert "0 rows" in html
    assert ">accuracy<" in html


@pytest.mark.parametrize("name", ["tables", "figures"])
def test_a_file_where_a_folder_belongs_is_told(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(UserError, match=rf"/{name} is not a folder.*--out FILE"):
        write_report(report(TableItem("accuracy", "Accuracy", TABLE)), tmp_path)


def test_a_file_that_cannot_be_written_is_told_with_another_place(tmp_path):
    (tmp_path / "tables" / "accuracy.csv").mkdir(parents=True)
    with pytest.raises(UserError, match=r"/accuracy\.csv: .*--out FILE"):
        write_report(report(TableItem("accuracy", "Accuracy", TABLE)), tmp_path)


def test_the_page_may_have_another_name(tmp_path):
    page = write_report(report(), tmp_path / "elsewhere", page="study.html")
    assert page == tmp_path / "elsewhere" / "study.html"
    assert page.exists()


@pytest.mark.parametrize("name", ["tables", "figures"])
def test_a_link_out_of_the_folder_is_not_written_through(tmp_path, name):
    outside, folder = tmp_path / "outside", tmp_path / "run"
    outside.mkdir()
    folder.mkdir()
    (folder / name).symlink_to(outside)
    with pytest.raises(UserError, match=rf"/{name}\b.*link.*--out FILE"):
        write_report(Report("title", "", ()), folder)
    assert not list(outside.iterdir())


def test_an_embedded_page_is_one_file_that_holds_the_others(tmp_path):
    items = (TableItem("accuracy", "Accuracy", TABLE), FigureItem("bars", "Bars", DRAW))
    beside = write_report(report(*items), tmp_path / "beside").parent
    page = write_report(report(*items), tmp_path / "mail", embed=True)
    assert [file.name for file in page.parent.iterdir()] == ["report.html"]
    found = re.findall(
        r'<a href="data:([a-z/+-]+);base64,([^"]+)" download="([^"]+)"', page.read_text("utf-8")
    )
    folders = ("tables", "tables", "figures", "figures")
    for (_, content, name), folder in zip(found, folders, strict=True):
        assert base64.b64decode(content) == (beside / folder / name).read_bytes()
    assert [kind for kind, _, _ in found] == [
        "text/csv",
        "application/x-tex",
        "image/svg+xml",
        "image/png",
    ]


def test_the_head_says_when_by_what_and_how_to_cite(tmp_path):
    call = {
        "started": "2026-11-20T10:00:00+00:00",
        "finished": None,
        "command": f"interp run {HOSTILE}",
        "versions": {"interp": "0.1.0"},
    }
    study = report(record={"history": [call]}, paper="Chan et al. (2024).")
    head, _, rest = write_report(study, tmp_path).read_text("utf-8").partition("</header>")
    assert "2026-11-20, by interp 0.1.0" in head
    assert "interp run &lt;script&gt;" in head
    assert "Chan et al. (2024)." in head
    assert "@software{interp," in head
    assert "@software" not in rest
    assert "Cite" not in write_report(report(), tmp_path).read_text("utf-8")


def test_words_of_the_page_are_explained_at_its_end(tmp_path):
    html = write_report(
        report(TableItem("one", "One", TABLE), names={"mt": "modus tollens"}), tmp_path
    ).read_text("utf-8")
    names = html[html.index('id="names"') :]
    assert "modus tollens" in names
    assert "share of prompts whose most probable answer" in names
    assert "familiarity" not in names


def call(day, finished, command, version):
    return {
        "started": f"{day}T10:00:00+00:00",
        "finished": finished,
        "command": command,
        "versions": {"interp": version},
    }


def test_the_provenance_of_several_calls_names_each_thing_once():
    record = {
        "history": [
            call("2026-11-21", "2026-11-22T01:00:00+00:00", "interp attribute", "0.1.0"),
            call("2026-11-20", None, "interp attribute", "0.1.0"),
            call("2026-11-21", None, None, "0.2.0"),
        ]
    }
    found = provenance(record)
    assert found.measured == "2026-11-20 to 2026-11-22"
    assert found.versions == ("0.1.0", "0.2.0")
    assert found.commands == ("interp attribute",)
    assert "version = {0.2.0}" in found.bibtex
    assert "year = {2026}" in found.bibtex


def test_one_day_is_named_once_and_a_record_without_calls_has_no_provenance():
    found = provenance({"history": [call("2026-11-20", None, None, "0.1.0")]})
    assert (found.measured, found.commands) == ("2026-11-20", ())
    assert provenance({}) is None


def test_only_words_of_the_page_are_explained_and_those_of_the_study():
    table = glossary("The Paired Accuracy by side; sides aside.", {"mt": "modus tollens"})
    assert table["name"].tolist() == ["accuracy", "mt", "paired accuracy", "side"]
    assert table["meaning"].tolist()[1:3] == ["modus tollens", TERMS["paired accuracy"]]
    assert glossary("Nothing.", {}).empty


def test_no_meaning_refers_to_another_word_of_the_list():
    assert not [word for word, meaning in TERMS.items() if "the same" in meaning]


def test_a_part_of_a_word_is_not_the_word():
    assert "share" not in glossary("shared, unshared", {})["name"].tolist()
    assert "share" in glossary("The share, of all.", {})["name"].tolist()
    assert "ratio" not in glossary("a likelihood-ratio test", {})["name"].tolist()


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
