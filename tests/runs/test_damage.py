"""Whatever lies in a run folder, nothing outside it is reached, and a message names the file."""

import os
import re
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interp.errors import UserError
from interp.files import checksum, inside, read_bytes
from interp.measuring.spec import Spec
from interp.runs.folder import PROMPTS, RunFolder, evaluating, problems, slug
from interp.runs.records import updated, write_record
from tests.support.processes import child, ended
from tests.support.records import edited
from tests.support.runs import MODELS, SHARD_PROMPTS, resume, run_in

LLAMA = f"{slug('tiny llama')}.json"


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", SHARD_PROMPTS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run, to be copied."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with child(run_in, folder) as process:
        assert ended(process) == 0
    return folder


@pytest.fixture
def run(tmp_path, whole):
    """A copy of a finished run inside a scratch folder that also holds a thesis."""
    folder = tmp_path / "scratch" / "run"
    shutil.copytree(whole, folder)
    thesis = folder.parent / "thesis"
    thesis.mkdir()
    (thesis / "thesis.tex").write_text("precious")
    return folder


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def resumed(folder, **options):
    """The exit code of the same command again: 2 for a message."""
    with child(resume, folder, options) as process:
        return ended(process)


def forged(folder, change):
    """Change the prompts table of a run, and its checksum with it."""
    table = pq.read_table(folder / PROMPTS)
    pq.write_table(change(table), folder / PROMPTS)
    record = RunFolder.read(folder).record
    files = {**record.files, PROMPTS: checksum(folder / PROMPTS)}
    write_record(folder / "run.json", updated(record, {"files": files}))


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda t: pa.concat_tables([t, t]), lambda t: t.slice(1)])
def test_tables_of_other_prompts_with_right_checksums_are_refused(run, change):
    forged(run, change)
    with pytest.raises(UserError, match="prompt"):
        for name in ("prompts", "answers"):
            RunFolder.read(run).table(name)


def test_tables_that_do_not_fit_together_give_one_message(tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path}.*KeyError"), evaluating(tmp_path):
        {}["p1"]
    with pytest.raises(UserError, match=r"^own$"), evaluating(tmp_path):
        raise UserError("own")


HOSTILE_IDS = ("{thesis}", "../../../thesis", "../../x", "", ".", "shards", 7, None, "0" * 31)


@pytest.mark.quick(1)
@pytest.mark.parametrize("id_", HOSTILE_IDS)
@pytest.mark.parametrize("retry", [False, True])
def test_an_id_that_this_program_does_not_make_is_refused(run, id_, retry):
    if isinstance(id_, str):
        id_ = id_.format(thesis=run.parent / "thesis")
    edited(run / "models" / LLAMA, lambda record: record["shards"].append(id_))
    before = contents(run)
    assert resumed(run, retry_errors=retry) == 2
    assert (run.parent / "thesis" / "thesis.tex").read_text() == "precious"
    assert contents(run) == before


@pytest.mark.quick(1)
@pytest.mark.parametrize("place", ["run.json", "models", f"models/{LLAMA}", "shards", "workers"])
def test_links_are_not_followed(run, place):
    shutil.rmtree(RunFolder.read(run).shards("tiny llama")[0])
    elsewhere = run.parent / "elsewhere"
    (run / place).rename(elsewhere)
    (run / place).symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()}
    assert resumed(run) == 2
    assert {path: path.read_bytes() for path in elsewhere.rglob("*") if path.is_file()} == before


@pytest.mark.quick(1)
@pytest.mark.parametrize("place", ["run.json", f"models/{LLAMA}", "memory.json", "manifest"])
def test_pipes_and_devices_are_not_opened(run, place):
    if place == "manifest":
        place = f"{RunFolder.read(run).shards('tiny llama')[0].relative_to(run)}/manifest.json"
    (run / place).unlink(missing_ok=True)
    os.mkfifo(run / place)
    start = time.monotonic()
    code = resumed(run)
    # What only saves time is passed over, what is damaged is set aside; the rest is refused.
    assert code == (2 if place in ("run.json", f"models/{LLAMA}") else 0)
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    ("file", "change", "named"),
    [
        ("run.json", lambda r: r.update(run=None), r"\brun\.json.*--out\b"),
        ("run.json", lambda r: r.update(models="all"), r"run\.json.* models: "),
        ("run.json", lambda r: r["files"].update({"../x.parquet": "0" * 64}), r"run\.json.* files"),
        (f"models/{LLAMA}", lambda r: r.pop("data_hash"), r"models/tiny.* data_hash: "),
        (f"models/{LLAMA}", lambda r: r.update(shards=2 * r["shards"]), r"tiny.* shards: .*ids"),
        (f"models/{LLAMA}", lambda r: r.update(shards="../../../thesis"), r"tiny.* shards: "),
        (f"models/{LLAMA}", lambda r: r.update(name="gpt"), r"record.*'gpt'"),
        (f"models/{LLAMA}", lambda r: r.update(further=1), r"models/tiny.* further: "),
    ],
)
def test_a_damaged_record_is_told_by_file_and_field(run, file, change, named):
    edited(run / file, change)
    with pytest.raises(UserError, match=named):
        RunFolder.read(run)


def test_deeply_nested_and_broken_text_are_damage(run):
    for content in (b"[" * 100_000, b"\xff\xfe", b"", b"{"):
        (run / "run.json").write_bytes(content)
        with pytest.raises(UserError, match=r"\brun\.json.*JSON"):
            RunFolder.read(run)


@pytest.mark.slow
def test_what_stands_in_the_place_of_a_shard_is_set_aside_and_kept(run):
    folder = RunFolder.read(run)
    one, other = folder.shards("tiny llama")[:2]
    before = contents(run)
    shutil.rmtree(one)
    shutil.copytree(other, one)
    assert any("shard" in line for line in problems(folder))
    assert resumed(run) == 0
    assert {path: before[path] for path in contents(run) if path in before} == before
    assert [path.name.split("-")[0] for path in (run / "set-aside").iterdir()] == [one.name]
    assert list(problems(RunFolder.read(run))) == []


def test_validate_finds_runs_that_are_not_finished(run):
    record = run / "run.json"
    text = record.read_text()
    for change, told in (
        (lambda r: r.update(models=[]), "no model was named"),
        (lambda r: r.update(models=[*MODELS, "third"]), "third was not begun"),
        (lambda r: r.update(finished=None), "the run is not finished"),
        (lambda r: r["files"].pop("answers.parquet"), "answers.parquet is not on record"),
        (lambda r: r["merged"].pop("tiny gpt2"), "the tables lack the shards of tiny gpt2"),
    ):
        edited(record, change)
        assert any(told in line for line in problems(RunFolder.read(run))), told
        record.write_text(text)
    shutil.rmtree(run / "models")
    assert any("begun" in line for line in problems(RunFolder.read(run)))


def test_names_lead_nowhere_else(tmp_path):
    for part in ("..", ".", "", "a/b", "a\0b"):
        with pytest.raises(UserError, match=re.escape(f"{part!r} ")):
            inside(tmp_path, part)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(UserError, match=r"links?\b"):
        inside(tmp_path, "link", "x")


def test_a_device_is_no_plain_file(tmp_path):
    with pytest.raises(UserError, match="plain file"):
        read_bytes(tmp_path / ".." / ".." / ".." / ".." / ".." / ".." / "dev" / "null")


def test_names_of_models_never_share_a_file():
    names = ["m", "m/", "./m", "a b", "a_b", "a/b", "модель", "模型", "Org/M", "org/m", "x" * 300]
    slugs = {slug(name).lower() for name in names}
    assert len(slugs) == len(names)
    assert all(len(name) < 120 and "/" not in name and name[0] != "." for name in slugs)


@pytest.mark.parametrize("format_", [None, 1, 3])
def test_a_folder_of_another_format_is_refused_as_such(run, format_):
    def as_another_version_wrote_it(record):
        record["format"] = format_
        if format_ is None:
            del record["format"]
        record["started"] = record.pop("history")[0]["started"]

    edited(run / "run.json", as_another_version_wrote_it)
    with pytest.raises(UserError, match=r"\brun\.json.*version.*interp.*--out\b"):
        RunFolder.read(run)
