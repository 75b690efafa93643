"""A folder of a stopped training in which something leads elsewhere: nothing outside changes."""

import os
import shutil

import pytest

from interp.errors import UserError
from interp.training.folder import MANIFEST, last_whole
from tests.support.training import learn, noting


@pytest.fixture
def outside(tmp_path):
    """The folder of another model, beside the run."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("model.safetensors", "config.json", "file"):
        (folder / name).write_text(f"precious {name}")
    return folder


def content(folder):
    return {
        path.name: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.iterdir()
    }


FILES = (
    "checkpoint-2/optimizer.pt",
    "checkpoint-2/config.json",
    "checkpoint-2/trainer_state.json",
    "checkpoint-2/training_args.bin",
    "checkpoint-2/model.safetensors",
    "checkpoint-2/manifest.json",
    "checkpoint-4/optimizer.pt",
    "checkpoint-4/new name",
)
FOLDERS = ("checkpoint-2", "checkpoint-4", "checkpoint-5")


@pytest.mark.parametrize(
    ("place", "end"),
    [(place, "file") for place in FILES]
    + [(place, "missing") for place in (*FILES[3:5], *FOLDERS)]
    + [(place, "") for place in FOLDERS],
)
def test_a_link_among_checkpoints_is_refused_before_training_begins(run, outside, place, end):
    before, link = content(outside), run / place
    link.parent.mkdir(exist_ok=True)
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(outside / end)
    with pytest.raises(UserError, match=r"checkpoint-\d\b.*\b(file|folder|links?)\b"):
        learn(run)
    assert content(outside) == before
    assert link.is_symlink()
    assert not (run / "checkpoint-5" / MANIFEST).exists()


@pytest.mark.parametrize("place", ["checkpoint-2/optimizer.pt", "checkpoint-4/optimizer.pt"])
def test_a_pipe_is_refused_and_not_waited_for(run, place):
    pipe = run / place
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(UserError, match=r"optimizer\.pt .* plain file"):
        learn(run)


@pytest.mark.parametrize("place", ["checkpoint-2/optimizer.pt", "checkpoint-4/optimizer.pt"])
def test_a_file_with_a_second_name_elsewhere_keeps_its_content(run, outside, place):
    before, second = content(outside), run / place
    second.parent.mkdir(exist_ok=True)
    second.unlink(missing_ok=True)
    os.link(outside / "file", second)
    learn(run)
    assert content(outside) == before
    assert [path.name for path in run.glob("checkpoint-*")] == ["checkpoint-5"]


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "name",
    [
        "model.safetensors",
        "config.json",
        "tokenizer.json",
        "runs",
        "logs",
        "training_args.bin",
        ".training",
    ],
)
def test_a_link_beside_checkpoints_is_not_written_through(run, outside, name):
    before = content(outside)
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(outside if name in ("runs", "logs") else outside / "file")
    learn(run)
    assert content(outside) == before
    assert last_whole(run)[0] == 5


def test_a_run_folder_that_is_a_link_itself_is_resumed(run, tmp_path):
    (tmp_path / "link").symlink_to(run)
    seen = []
    learn(tmp_path / "link", noting(seen))
    assert seen == [3, 4, 5]
    assert last_whole(run)[0] == last_whole(tmp_path / "link")[0] == 5
