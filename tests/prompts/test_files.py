import json
import os

import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interp.errors import UserError
from interp.prompts.files import parse_each, read_rows, write_table

COLUMNS = ("id", "text")


def written(folder, name, content):
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


def cells(source, **options):
    return [dict(row.cells) for row in read_rows(source, COLUMNS, **options)]


ROWS = [{"id": "1", "text": "one, two"}, {"id": "2", "text": 'said "no"'}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,text\n1,"one, two"\n2,"said ""no"""\n'),
        ("bom.csv", '\ufeffid,text\r\n1,"one, two"\r\n\r\n2,"said ""no"""'),
        ("old.csv", 'text,more,id\r"one, two",x,1\r"said ""no""",,2\r'),
        ("a.jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n"),
        ("a.json", json.dumps(ROWS)),
        ("columns.json", json.dumps({c: [row[c] for row in ROWS] for c in COLUMNS})),
        ("pandas.json", pd.DataFrame(ROWS).to_json()),
    ],
)
def test_every_layout_gives_the_same_rows(tmp_path, name, content):
    assert cells(written(tmp_path, name, content)) == ROWS


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_an_optional_column_is_read_where_a_file_has_it(tmp_path, suffix):
    for name, frame in (
        ("with", pd.DataFrame(ROWS).assign(more="x", other="y")),
        ("without", pd.DataFrame(ROWS)),
    ):
        file = tmp_path / f"{name}{suffix}"
        if suffix == ".json":
            frame.to_json(file)
        else:
            write_table(frame, file)
        more = {"more": "x"} if name == "with" else {}
        assert cells(str(file), optional=("more",)) == [{**row, **more} for row in ROWS]


def test_a_file_without_a_header_has_the_columns_that_it_is_said_to(tmp_path):
    unnamed = ("id", "text", "more")
    for content, more in (("1,one\n2,two\n", None), ("1,one,x\n2,two,x\n", "x")):
        source = written(tmp_path, "a.csv", content)
        read = read_rows(source, COLUMNS, optional=("more",), unnamed=unnamed)
        assert [row.where for row in read] == [f"{source}, line 1", f"{source}, line 2"]
        assert [row.cells["text"] for row in read] == ["one", "two"]
        assert [row.cells.get("more") for row in read] == [more] * 2
        with pytest.raises(UserError, match="columns id, text"):
            read_rows(source, COLUMNS)
    source = written(tmp_path, "a.csv", "1\n2\n")
    with pytest.raises(UserError, match="columns text"):
        read_rows(source, COLUMNS, unnamed=unnamed)


def test_rows_say_where_they_stand(tmp_path):
    source = written(tmp_path, "a.csv", 'id,text\n1,"two\nlines"\n\n2,one\n')
    assert [row.where for row in read_rows(source, COLUMNS)] == [
        f"{source}, line 2",
        f"{source}, line 5",
    ]
    source = written(tmp_path, "a.jsonl", '\n{"id": 1, "text": "a"}\n')
    assert read_rows(source, COLUMNS)[0].where.endswith("line 2")
    source = written(tmp_path, "a.json", '[{"id": 1, "text": "a"}]')
    assert read_rows(source, COLUMNS)[0].where.endswith("row 1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "", "columns id, text; "),
        ("a.csv", "id,text\n", r"\ba\.\w+ .*rows"),
        ("a.csv", "id,text,id\n1,2,3\n", r"column id\b"),
        ("a.csv", "id,text\n1,a\n2,b,c\n", r'line 3\b.*\b3 cells; .*\b2; .*"quotes"'),
        ("a.csv", "Id,Text\n1,a\n", r"columns id, text; .*\bId, Text"),
        ("a.csv", "id,text\n1,a\n2\n", r"line 3.*1 cell.*2\b"),
        ("a.csv", "id|text\n1|a\n", r"\bid\|text.*commas"),
        ("a.csv", "id , text\n1,a\n", r"columns id, text; .*\bid , text.*spaces"),
        ("a.jsonl", '{"id": 1, "text": "a"}\n{"id": 2,', r"line 2\b.*JSON: .*column 10\b"),
        ("a.csv", 'id,text\n1,"a\n', r"\ba\.csv: line 2: .*quotation mark"),
        ("a.csv", b"id,text\n1,caf\xe9\n", r"\ba\.\w+: .*UTF-8\b"),
        ("a.json", b'[{"id": "\xff"}]', r"\ba\.\w+: .*UTF-8\b"),
        ("a.json", "[1,2]", r"\brow 1\b.*\b1; .*object"),
        ("a.json", "[[1, 2]]", r"\brow 1\b.*\[1, 2\]; .*object"),
        ("a.json", "[]", r"\ba\.\w+ .*rows"),
        ("a.json", "{}", "columns id, text"),
        ("a.json", "null", r"None; .*list.*objects"),
        ("a.json", '{"id": 1, "text": 2}', r"column id\b.*\b1; .*list"),
        ("a.json", '[{"id": 1, "text": "a"}, null]', r"\brow 2\b.*None; .*object"),
        ("a.json", '[{"id": [1, 2], "text": "a"}]', r"\brow 1: id.*\[1, 2\].*list"),
        ("a.json", '[{"id": {}, "text": "a"}]', r"\brow 1: id.*{}.*dict.*text"),
        ("a.json", "[" * 100_000, r"\ba\.json.* is not JSON.*nested"),
        ("a.jsonl", '{"text": ' + "[" * 100_000, r"\ba\.jsonl.* is not JSON.*nested"),
        ("a.jsonl", '{"id": 1, "text": "a"}\nnull\n', r"line 2\b.*None; .*object"),
        ("a.jsonl", '{"id": 1, "text": "a"}\n{"id"\n', r"line 2\b.*JSON: "),
        ("a.parquet", "PAR1 and nothing more PAR1", r"\ba\.parquet: "),
        ("a.xlsx", "x", r"\ba\.xlsx.*workbook.*password"),
        ("a.ods", "x", r"\ba\.ods\b.*\.xlsx"),
        ("a.docx", "x", r"\ba\.docx; .*\.csv, \.tsv\b"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused(tmp_path, name, content, message):
    with pytest.raises(UserError, match=message) as refusal:
        read_rows(written(tmp_path, name, content), COLUMNS)
    assert len(str(refusal.value)) < 600


def test_parquet_with_lists_or_broken_metadata(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [[1], [2]], "text": ["a", "b"]}), file)
    with pytest.raises(UserError, match=r"\brow 1: id.*\[1\].*list"):
        read_rows(str(file), COLUMNS)
    table = pa.table({"id": ["1"], "text": ["a"]})
    pq.write_table(table.replace_schema_metadata({"pandas": '{"index_columns": ["gone"]}'}), file)
    assert cells(str(file)) == [{"id": "1", "text": "a"}]


@pytest.mark.parametrize(
    ("kind", "third"), [(pa.float16(), 0.3333), (pa.float32(), 0.33333334), (pa.float64(), 1 / 3)]
)
def test_numbers_of_few_bits_are_those_that_were_written(tmp_path, kind, third):
    numbers = [1.1, 1 / 3, 2.0, -0.0, float("inf"), None]
    file = tmp_path / "a.parquet"
    column = pa.array(numbers, type=pa.float64()).cast(kind)
    pq.write_table(pa.table({"id": column, "text": ["x"] * len(numbers)}), file)
    read = [row["id"] for row in cells(str(file))]
    assert read == [1.1, third, 2.0, -0.0, float("inf"), None]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", r"data.*\.csv, \.tsv\b.*\bhub"),
        (" ", r"data.*\.csv, \.tsv\b.*\bhub"),
        ("x" * 5000, r"'x+\.\.\.x+' \(\w"),
        ("a\0b", r"'a\\x00b'"),
        ("exp:1", r"'exp:1'.*\.csv, \.tsv\b"),
        ("http://localhost/data.csv", r"'http\S+'.*\.csv, \.tsv\b"),
        ("owner/\udcff", r"'owner/.udcff'.*path"),
        ("/dev/null", r"/dev/null; .*\.csv, \.tsv\b"),
    ],
)
def test_names_of_nothing_are_refused(source, message):
    with pytest.raises(UserError, match=message) as refusal:
        read_rows(source, COLUMNS)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("folder", ["exp:1", "s3:", "file:"])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_path_is_never_taken_for_an_address(tmp_path, monkeypatch, folder, suffix):
    (tmp_path / folder).mkdir()
    write_table(pd.DataFrame(ROWS), tmp_path / folder / f"rows{suffix}")
    monkeypatch.chdir(tmp_path)
    assert cells(folder) == cells(f"{folder}/rows{suffix}") == ROWS


def test_only_files_of_a_folder_are_read(tmp_path):
    (tmp_path / "a.csv").mkdir()
    os.mkfifo(tmp_path / "b.csv")
    with pytest.raises(UserError, match=r"data file.*\.csv, \.tsv\b"):
        read_rows(str(tmp_path), COLUMNS)
    written(tmp_path, "c.csv", "id,text\n1,a\n")
    written(tmp_path, "dataset_info.json", "{}")
    assert cells(str(tmp_path)) == [{"id": "1", "text": "a"}]


def test_columns_of_none_of_which_anything_is_known_are_named(tmp_path):
    # Without required columns, as when the kind of a table is found out.
    for data in ({"data": [{"id": 1}], "version": 1}, {"0": {"id": 1}, "1": {"id": 2}}):
        with pytest.raises(UserError, match=f"{', '.join(data)} .*list of objects"):
            read_rows(written(tmp_path, "a.json", json.dumps(data)), (), optional=COLUMNS)
    with pytest.raises(UserError, match=r"\bline 2\b.*\b2\b.*\b1\b"):
        read_rows(written(tmp_path, "a.csv", "# mine\nid,text\n1,a\n"), (), optional=COLUMNS)


def test_wrong_rows_are_counted_and_the_first_are_told():
    def parse(text):
        if not text.isdigit():
            raise UserError(f"{text} is no number")
        return int(text)

    items = [(f"line {place}", text) for place, text in enumerate("1a2bcde")]
    assert parse_each([items[0], items[2]], parse) == [1, 2]
    with pytest.raises(UserError, match=r"\Aline 1: a is no number\Z"):
        parse_each(items[:3], parse)
    with pytest.raises(UserError) as refusal:
        parse_each(items, parse)
    assert str(refusal.value).splitlines() == [
        "5 invalid rows, starting with:",
        "  line 1: a is no number",
        "  line 3: b is no number",
        "  line 4: c is no number",
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '[{"id": 1, "text": "x"},\n {"id": 2, "text": "y",\n "id": 3}]', "as 2 and 3;"),
        ("b.json", '{"id": [1], "text": ["x"],\n\n"id": [2]}', "as [1] and [2];"),
        ("c.json", '{"id": {"a": 1}, "text": {"a": "{\\"", "b": 1, "a": "x"}}', "and 'x';"),
        ("d.json", '[{"id": 1, "text": "x", "\\u0069d": 2}]', "as 1 and 2;"),
        ("a.jsonl", '{"id": 1, "text": "x"}\n{"id": 2, "id": 3, "text": "y"}', "line 2 "),
    ],
)
def test_a_key_that_an_object_has_twice_is_refused(tmp_path, name, content, message):
    with pytest.raises(UserError, match=rf"\b{name}: .*'(id|a)'.*object") as told:
        cells(written(tmp_path, name, content))
    assert message in str(told.value)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize(
    "row", [{"id": "a\ud800", "text": ""}, {"id": "", "text": "", "\udfff": 1}]
)
def test_half_of_a_character_is_refused(tmp_path, name, row):
    content = json.dumps([row] if name == "a.json" else row)
    with pytest.raises(UserError, match=r"JSON.*'\\ud[8f](00|ff)'"):
        cells(written(tmp_path, name, content))


def test_a_key_twice_with_one_value_is_read(tmp_path):
    text = '[{"id": "1", "text": "x", "id": "1"}, {"id": "2", "id": "2", "text": "y"}]'
    assert [row["id"] for row in cells(written(tmp_path, "a.json", text))] == ["1", "2"]
    text = text.replace('"id": "2", "text"', '"id": 2, "text"')
    with pytest.raises(UserError, match=r"JSON.*'id'.*as '2' and 2;"):
        cells(written(tmp_path, "a.json", text))


def test_whole_characters_and_backslashes_are_read(tmp_path):
    rows = [{"id": "\U0001f642", "text": "\\ud800"}]
    assert cells(written(tmp_path, "a.json", json.dumps(rows))) == rows


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_a_file_that_is_larger_than_memory_is_not_read(tmp_path, monkeypatch, suffix):
    file = tmp_path / f"large{suffix}"
    with file.open("wb") as stream:
        stream.truncate(2**36)
    free = psutil.virtual_memory()._replace(available=2**30)
    monkeypatch.setattr("interp.files.psutil.virtual_memory", lambda: free)
    with pytest.raises(UserError, match=r"\b68,719,476,736 bytes.*1,073,741,824 bytes"):
        cells(str(file))
