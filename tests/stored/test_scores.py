"""Scores of items are read from whatever wrote them; what is damaged is told in one message."""

import json
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest

from interp.errors import UserError
from interp.stored.scores import read_scores
from tests.support.logs import archive, log, samples


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "xlsx"])
@pytest.mark.parametrize("item", [[1, 2, 3], ["1", "2", "3"]])
def test_tables_of_every_format(suffix, item, tmp_path):
    frame = pd.DataFrame({"id": item, "correct": [True, False, True], "question": ["x", "y", "z"]})
    file = tmp_path / f"table.{suffix}"
    match suffix:
        case "csv":
            file.write_bytes(b"\xef\xbb\xbf" + frame.to_csv(index=False).encode())
        case "jsonl":
            file.write_bytes(b"\xef\xbb\xbf" + frame.to_json(orient="records", lines=True).encode())
        case "parquet":
            frame.to_parquet(file)
        case _:
            frame.to_excel(file, index=False)
    found = read_scores(file)
    assert [own.item for own in found.rows] == ["1", "2", "3"]
    assert [own.scores["correct"] for own in found.rows] == [1.0, 0.0, 1.0]
    assert [own.text for own in found.rows] == ["x", "y", "z"]


def test_named_columns_of_a_table_are_its_scores(tmp_path):
    (tmp_path / "t.csv").write_text("item,f1,score,epoch\n1,0.5,1,1\n1,0.25,0,2\n")
    found = read_scores(tmp_path / "t.csv", ["f1"])
    assert [own.scores for own in found.rows] == [{"f1": 0.5}, {"f1": 0.25}]
    assert [own.epoch for own in found.rows] == ["1", "2"]


def test_rows_without_a_model_are_of_the_only_one(tmp_path):
    (tmp_path / "t.csv").write_text("item,score,model\n1,1,org/m\n2,0,\n")
    assert read_scores(tmp_path / "t.csv").name == "org/m"


def test_boolean_metrics_and_those_of_older_versions(tmp_path):
    file = samples(tmp_path / "s.jsonl", [True, False])
    records = [json.loads(line) | {"tokens": 3} for line in file.read_text().splitlines()]
    file.write_text("\n".join(map(json.dumps, records)))
    assert [own.scores for own in read_scores(file).rows] == [{"acc": 1.0}, {"acc": 0.0}]
    for own in records:
        del own["metrics"]
        own["grouped"] = ["a", True]
    file.write_text("\n".join(map(json.dumps, records)))
    found = read_scores(file)
    assert [own.scores["acc"] for own in found.rows] == [1.0, 0.0]
    assert list(found.unread) == ["grouped"]


def test_a_sample_that_was_repeated_counts_once(tmp_path):
    document = log({1: ["I"], 2: ["C"]})
    document["samples"].append(document["samples"][0] | {"scores": {"match": {"value": "C"}}})
    found = read_scores(archive(tmp_path / "a.eval", document))
    assert {own.item: own.scores["match"] for own in found.rows} == {"1": 1.0, "2": 1.0}


def test_a_log_that_was_never_finished_is_read_from_its_journal(tmp_path):
    document = log({1: ["I"], 2: ["C"]}, status="started")
    with ZipFile(tmp_path / "a.eval", "w") as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": document["eval"]}))
        for place, own in enumerate(document["samples"], 1):
            file.writestr(f"_journal/summaries/{place}.json", json.dumps([own]))
    found = read_scores(tmp_path / "a.eval")
    assert [own.item for own in found.rows] == ["1", "2"]
    assert found.said == ["stopped early (status started): it holds 2 samples"]


def test_a_content_filter_is_a_refusal(tmp_path):
    document = log({1: ["I"], 2: ["C"]})
    document["samples"][0]["output"]["choices"] = [{"stop_reason": "content_filter"}]
    (tmp_path / "a.json").write_text(json.dumps(document))
    assert [own.refused for own in read_scores(tmp_path / "a.json").rows] == [True, False]


BROKEN = {
    "missing.csv": (None, "no file at"),
    "empty.eval": (b"", "empty.eval is damaged"),
    "half.jsonl": (b'{"doc": {}, "resps": [], "doc_id": 1}\n{"doc', "line 2 is not JSON"),
    "latin.csv": ("item,score\nä,1\n".encode("latin-1"), "not in UTF-8"),
    "columns.csv": (b"a,b\n1,2\n", "no column of items"),
    "scores.csv": (b"item,b\n1,2\n", "no column of scores"),
    "models.csv": (b"item,score,model\n1,1,a\n2,0,b\n", "2 models"),
    "item.csv": (b"item,score,x\n,1,y\n", "line 2: item is"),
    "results.json": (b'{"results": {}, "configs": {}}', "--log_samples"),
    "nothing.json": (b'{"eval": {}, "version": 2, "samples": []}', "holds no items"),
    "sample.json": (b'{"eval": {}, "version": 2, "samples": [5]}', "sample 1 is damaged"),
    "id.jsonl": (b'{"doc": {}, "resps": [], "doc_id": {}}', "line 1 is damaged: doc_id"),
    "infinite.jsonl": (
        b'{"doc": {}, "resps": [], "doc_id": 1, "acc": Infinity}',
        "line 1: acc is inf",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_damaged_files_are_told(name, tmp_path):
    content, message = BROKEN[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_scores(tmp_path / name)


def test_a_device_is_not_read(tmp_path):
    (tmp_path / "samples_a.jsonl").symlink_to("/dev/null")
    for path, told in ((Path("/dev/null"), "no file at"), (tmp_path, "holds no samples")):
        with pytest.raises(UserError, match=told):
            read_scores(path)


@pytest.mark.parametrize("others", [[], ["a.eval", "b.eval"], ["notes.csv"]])
def test_a_folder_without_samples_is_told(others, tmp_path):
    for name in others:
        (tmp_path / name).write_bytes(b"")
    expected = rf"{len(others)} other files.*{others[0]}" if others else "no samples"
    with pytest.raises(UserError, match=expected):
        read_scores(tmp_path)
