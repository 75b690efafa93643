"""What spreadsheets write is read as it was meant."""

import re
import sys
import warnings
from zipfile import ZIP_DEFLATED, ZipFile

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.errors import UserError
from interp.prompts import sheets
from interp.prompts.files import read_rows
from tests.prompts.test_files import COLUMNS, cells, written

ROWS = [{"id": "1", "text": "one, two; three"}, {"id": "2", "text": 'said "no"'}]


def workbook(folder, rows, **others):
    """A workbook with these rows in its first sheet, and further sheets by name."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, own in others.items():
        sheet = book.create_sheet(name)
        for row in own:
            sheet.append(row)
    file = folder / "a.xlsx"
    book.save(file)
    return file


TABLE = [["id", "text"], ["1", "one, two; three"], ["2", 'said "no"']]


@pytest.mark.parametrize(("before", "end"), [("", "\n"), ("\ufeff", "\r\n"), ("", "\r")])
@pytest.mark.parametrize(
    ("told", "after"),
    [
        ([], ","),
        ([], ";"),
        ([], "\t"),
        (["sep=,"], ","),
        (["sep=;"], ";;;"),
        (['"sep=|"'], "|"),
        ([], ",,,"),
        ([], ";;"),
    ],
)
def test_cells_are_separated_as_the_file_says(tmp_path, before, end, told, after):
    mark, after = after[0], after[1:]
    lines = ["id" + mark + "text", f'1{mark}"one, two; three"', mark, f'2{mark}"said ""no"""']
    file = written(
        tmp_path, "a.csv", before + end.join([*told, *(line + after for line in lines)]) + end
    )
    assert cells(file) == ROWS
    places = [row.where.rsplit(", ")[-1] for row in read_rows(file, COLUMNS)]
    assert places == [f"line {2 + len(told)}", f"line {4 + len(told)}"]


@pytest.mark.parametrize("start", ["\ufeff", ""])
@pytest.mark.parametrize("above", ["\n", "\n  \n", "\nsep=;\n"])
def test_empty_lines_may_stand_above_the_header(tmp_path, start, above):
    file = written(tmp_path, "a.csv", f"{start}{above}id;text\n1;é\n\n2;b\n")
    assert [row["text"] for row in cells(file)] == ["é", "b"]
    assert read_rows(file, COLUMNS)[0].where.endswith(f"line {above.count(chr(10)) + 2}")


@pytest.mark.parametrize("suffix", ["CSV", "Tsv", "XLSX"])
def test_the_case_of_a_suffix_makes_no_difference(tmp_path, suffix):
    if suffix == "XLSX":
        file = workbook(tmp_path, TABLE).rename(tmp_path / "a.XLSX")
    else:
        mark = "\t" if suffix == "Tsv" else ","
        file = written(tmp_path, f"a.{suffix}", f"id{mark}text\n1{mark}x\n")
    assert cells(file)[0]["id"] == "1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,text\n1,a,b\n", "a comma"),
        ("id;text\n1;a;b\n", "a semicolon"),
        ("id,text,\n1,a,b\n", r"line 2\b.*\b3 cells; .*\b2; .*column"),
        ("# mine\nid,text\n1,a\n", r"columns id, text; .*# mine"),
        ("sep=,\nid,text\n1\n", r"line 3.*1 cell.*\b2\b"),
    ],
)
def test_a_row_that_does_not_fit_is_refused(tmp_path, content, said):
    with pytest.raises(UserError, match=said):
        cells(written(tmp_path, "a.csv", content))


def test_a_header_in_quotes_or_with_other_marks_keeps_its_separator(tmp_path):
    file = written(tmp_path, "a.csv", 'id,text,"a;b;c;d"\n1,x,y\n')
    assert cells(file, others=True) == [{"id": "1", "text": "x", "a;b;c;d": "y"}]
    file = written(tmp_path, "a.csv", "1,one; two; three\n")
    assert cells(file, unnamed=COLUMNS) == [{"id": "1", "text": "one; two; three"}]


def test_a_cell_may_be_as_long_as_what_models_read(tmp_path):
    assert (
        cells(written(tmp_path, "a.csv", f"id,text\n1,{'x ' * 200_000}\n"))[0]["text"][-2:] == "x "
    )


def test_a_hundred_thousand_columns_take_no_quadratic_time(tmp_path):
    names = [f"c{number}" for number in range(100_000)]
    lines = [",".join([*COLUMNS, *names]), ",".join(["x"] * 100_002)]
    file = written(tmp_path, "a.csv", "\n".join(lines))
    (row,) = cells(file, others=True)
    assert len(row) == 100_002


@settings(max_examples=20)
@given(rows=st.lists(st.tuples(st.integers(), st.text("aé,;\n\"'=", min_size=1)), min_size=1))
def test_a_workbook_gives_back_its_cells(tmp_path_factory, rows):
    rows = [(number, f"t{text}") for number, text in rows if abs(number) < 2**53]
    if rows:
        file = workbook(tmp_path_factory.mktemp("book"), [["id", "text"], *rows])
        assert [(row["id"], row["text"]) for row in cells(file)] == rows


def test_a_workbook_may_have_empty_rows_and_columns(tmp_path):
    rows = [[None], ["id", "text", None, " "], [], ["1", "one, two; three"], [None], TABLE[2]]
    file = workbook(tmp_path, rows, notes=[])
    assert cells(file) == ROWS
    assert [row.where.rsplit(", ")[-1] for row in read_rows(file, COLUMNS)] == ["row 4", "row 6"]


def test_one_sheet_of_a_workbook_is_read(tmp_path):
    file = workbook(tmp_path, TABLE, notes=[["a remark"]])
    with pytest.raises(UserError, match="Sheet, notes"):
        cells(file)
    with pytest.raises(UserError, match="0 sheets"):
        cells(workbook(tmp_path, []))


@pytest.mark.parametrize("row", [["1", "a", "b"], ["1", "a", None, "b"]])
def test_a_cell_beside_the_columns_of_a_workbook_is_refused(tmp_path, row):
    with pytest.raises(UserError, match=r"\brow 2\b.*\b[34] cells; .*\b2\b"):
        cells(workbook(tmp_path, [*TABLE[:1], row]))


def test_a_far_cell_and_a_false_size_cost_no_time(tmp_path):
    book = openpyxl.Workbook()
    for row in TABLE:
        book.active.append(row)
    for row in range(4, 200):
        book.active.cell(row, 16384, " ")
    book.active.cell(2**20, 1, " ")
    book.save(tmp_path / "a.xlsx")
    assert cells(tmp_path / "a.xlsx") == ROWS


def test_a_workbook_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    with ZipFile(tmp_path / "a.xlsx", "w", ZIP_DEFLATED) as parts:
        parts.writestr("xl/workbook.xml", b" " * (sheets.MOST_UNPACKED + 1))
    with pytest.raises(UserError, match=r"unpacks.*67,108,865 bytes.*\bCSV"):
        cells(tmp_path / "a.xlsx")


def test_dates_are_refused(tmp_path):
    import datetime

    with pytest.raises(UserError, match=r"\brow 2: text.*datetime"):
        cells(workbook(tmp_path, [["id", "text"], ["1", datetime.datetime(2026, 1, 2)]]))


def test_a_workbook_without_openpyxl(tmp_path, monkeypatch):
    file = workbook(tmp_path, TABLE)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"interp\[excel\]"):
        cells(file)


def test_openpyxl_warns_of_nothing(tmp_path, monkeypatch):
    def loud(*arguments, **options):
        warnings.warn("an extension is not supported", stacklevel=1)
        return load(*arguments, **options)

    load = openpyxl.load_workbook
    monkeypatch.setattr("openpyxl.load_workbook", loud)
    assert cells(workbook(tmp_path, TABLE)) == ROWS


def changed(file, part, old, new):
    """The workbook with something replaced in one of its parts."""
    with ZipFile(file) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    assert old in content[part]
    content[part] = content[part].replace(old, new)
    with ZipFile(file, "w", ZIP_DEFLATED) as parts:
        for name, data in content.items():
            parts.writestr(name, data)
    return file


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("stored", "text"), [(b"<v></v>", None), (b"<v/>", None), (b"", None), (b"<v>7</v>", 7)]
)
def test_a_formula_without_a_stored_value_is_told(tmp_path, stored, text):
    file = workbook(tmp_path, [["id", "text", "more"], ["1", "a", "x"], ["2", 3, 4]])
    changed(file, SHEET, b'<c r="B3" t="n"><v>3</v>', b'<c r="B3"><f>1+6</f>' + stored)
    if text is None:
        with pytest.raises(UserError, match=r"\brow 3: text is a formula .*Excel.*CSV"):
            cells(file)
        assert [row.cells["id"] for row in read_rows(file, ("id",))] == ["1", "2"]
    else:
        assert [row["text"] for row in cells(file)] == ["a", text]


def test_a_formula_whose_value_is_an_empty_text_is_an_empty_cell(tmp_path):
    file = workbook(tmp_path, [["id", "text"], ["1", "a"], ["2", 3]])
    changed(file, SHEET, b'<c r="B3" t="n"><v>3</v>', b'<c r="B3" t="str"><f>A9</f><v></v>')
    assert [row["text"] for row in cells(file)] == ["a", None]


def test_what_excel_hides_is_told(tmp_path, capsys):
    file = workbook(tmp_path, TABLE, notes=[["a remark"]])
    book = openpyxl.load_workbook(file)
    book["notes"].sheet_state = "hidden"
    book["Sheet"].row_dimensions[3].hidden = True
    book["Sheet"].column_dimensions["B"].hidden = True
    book.save(file)
    assert cells(file) == cells(file) == ROWS
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 3  # though it is read twice
    assert re.search(r"1 hidden sheets?\b.*: notes", told)
    assert re.search(r"1 rows?\b.*: 3\n", told)
    assert re.search(rf"1 columns?\b.*: {TABLE[0][1]}\n", told)
    assert cells(workbook(tmp_path, TABLE)) == ROWS
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        (SHEET, b"</sheetData>", b'<row r="9">' + b"<c/>" * 70_000 + b"</row></sheetData>"),
        (SHEET, b"</sheetData>", b"<row><c>" + b"<v/>" * 70_000 + b"</c></row></sheetData>"),
        (SHEET, b"</sheetData>", b"<row/>" * (2**20 + 1) + b"</sheetData>"),
        (SHEET, b"</sheetData>", b"</sheetData>" + b"<mergeCell/>" * (2**18 + 1)),
        ("xl/styles.xml", b"</cellXfs>", b"<xf/>" * (2**18 + 1) + b"</cellXfs>"),
    ],
)
def test_a_workbook_of_many_elements_is_refused(tmp_path, part, old, new):
    file = changed(workbook(tmp_path, TABLE), part, old, new)
    with pytest.raises(UserError, match=r"too many elements .*CSV"):
        cells(file)
