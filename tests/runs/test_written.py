"""Every changed byte of what a command wrote is noticed; folders of earlier versions still open."""

import shutil
from random import Random

import pytest

from interp.cli import main
from interp.runs.records import RunRecord, is_sealed
from tests.support.records import edited

RUN = ["effects", "--limit", "2", "--device", "cpu", "--out"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run with its page, and a second page."""
    folder = tmp_path_factory.mktemp("written") / "run"
    assert main([*RUN, str(folder)]) == 0
    assert main(["report", str(folder)]) == 0
    assert main(["report", str(folder), "--out", str(folder / "second.html")]) == 0
    return folder


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def validated(folder):
    return main(["validate", str(folder)])


def flipped(file):
    content = bytearray(file.read_bytes())
    chance = Random(str(file.name))
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


DAMAGE = {
    "flipped": flipped,
    "appended": lambda file: file.write_bytes(file.read_bytes() + b" "),
    "removed": lambda file: file.unlink(),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", DAMAGE)
def test_one_change_in_any_file_is_noticed(run, kind):
    files = [path for path in sorted(run.rglob("*")) if path.is_file()]
    names = {path.relative_to(run).parts[0] for path in files}
    parts = {"models", "workers", "figures", "tables", "pairs"}
    assert names >= {"run.json", "second.html", "pairs.html", *parts}
    assert validated(run) == 0
    for file in files:
        content = file.read_bytes()
        DAMAGE[kind](file)
        assert validated(run) == 2, file
        file.write_bytes(content)
    assert validated(run) == 0


@pytest.mark.parametrize(
    "name", ["third.html", "tables/x.csv", "figures/x.svg", "figures/x.png", "pairs/d9.js"]
)
def test_a_page_or_part_of_a_page_that_nobody_wrote_is_noticed(run, name):
    (run / name).write_text("<!doctype html>")
    assert validated(run) == 2


def test_a_page_that_was_removed_on_purpose_is_forgotten_by_the_next_report(run):
    (run / "second.html").unlink()
    (run / "report.html").write_text("changed")
    assert main([*RUN, str(run)]) == 0
    assert validated(run) == 2
    (run / "report.html").unlink()
    assert main(["report", str(run)]) == 0
    assert validated(run) == 0


def test_reports_are_reproducible_and_resuming_changes_nothing(run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert main([*RUN, str(run)]) == 0
    assert main(["report", str(run)]) == 0
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_report_that_was_killed_before_the_record_is_repaired_by_the_next(run, capsys):
    edited(run / "run.json", lambda record: record.update(report={}))
    assert validated(run) == 2
    assert "report.html" in capsys.readouterr().err
    assert main(["report", str(run)]) == 0
    assert main(["report", str(run), "--out", str(run / "second.html")]) == 0
    assert validated(run) == 0


def test_a_folder_of_an_earlier_version_is_valid_and_what_cannot_be_checked_is_named(run, capsys):
    for file in (run / "run.json", *run.glob("models/*"), *run.glob("shards/*/*/*.json")):
        _as_before(file)
    shutil.rmtree(run / "workers")
    assert validated(run) == 0
    told = capsys.readouterr().err
    assert "run.json" in told
    assert "report.html" in told
    assert main(["report", str(run)]) == 0
    assert is_sealed(run / "run.json")


def _as_before(file):
    """Take from a record what earlier versions did not write."""
    text = file.read_text()
    text = text[: text.rindex(',\n  "sha256"')] + "\n}\n"
    if file.name == "run.json":
        record = RunRecord.model_validate_json(text)
        text = record.model_dump_json(indent=2, exclude={"report", "workers"}) + "\n"
    file.write_text(text)
