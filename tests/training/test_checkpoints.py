import os
from pathlib import Path

import pytest

from interp.errors import UserError
from interp.files import process_space
from interp.training.folder import (
    declare_whole,
    keep,
    last_whole,
    remove_checkpoints,
    take,
    workplace,
)
from tests.support.processes import child, ended


def checkpoint(folder, step, *, whole=True):
    place = folder / f"checkpoint-{step}"
    place.mkdir(parents=True)
    (place / "model.safetensors").write_text(f"weights {step}")
    (place / "optimizer.pt").write_text("means")
    if whole:
        declare_whole(place)
    return place


def test_the_last_whole_checkpoint_is_found(tmp_path):
    assert last_whole(tmp_path) is None
    for step in (9, 10):
        checkpoint(tmp_path, step)
    assert last_whole(tmp_path) == (10, tmp_path / "checkpoint-10")


def test_checkpoints_of_a_folder_that_was_taken_are_removed(tmp_path):
    checkpoint(tmp_path, 1)
    take(tmp_path)
    half, kept = checkpoint(tmp_path, 2, whole=False), checkpoint(tmp_path, 3)
    precious = tmp_path / "elsewhere"
    precious.mkdir()
    (precious / "thesis.tex").write_text("precious")
    (tmp_path / "checkpoint-4").symlink_to(precious)
    (tmp_path / "checkpoint-mine").mkdir()
    remove_checkpoints(tmp_path, but=3)
    assert not half.exists()
    assert last_whole(tmp_path) == (3, kept)
    remove_checkpoints(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "checkpoint-mine"}
    assert (precious / "thesis.tex").read_text() == "precious"


def test_checkpoints_of_another_program_stay(tmp_path):
    checkpoint(tmp_path, 5, whole=False)
    with pytest.raises(UserError, match=r"checkpoint-5\b.*program"):
        take(tmp_path)
    remove_checkpoints(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-5"]
    assert len(list((tmp_path / "checkpoint-5").iterdir())) == 2


@pytest.mark.parametrize("damage", ["changed", "missing", "further", "manifest", "half written"])
def test_a_damaged_one_does_not_count(tmp_path, damage):
    whole, damaged = checkpoint(tmp_path, 1), checkpoint(tmp_path, 2)
    match damage:
        case "changed":
            (damaged / "optimizer.pt").write_text("other means")
        case "missing":
            (damaged / "optimizer.pt").unlink()
        case "half written":
            (damaged / "manifest.json").unlink()
        case "further":
            (damaged / "scheduler.pt").write_text("pickled")
        case "manifest":
            (damaged / "manifest.json").write_text('{"files": {"../run.json": "' + "0" * 64 + '"}}')
    assert last_whole(tmp_path) == (1, whole)


def test_links_are_not_followed(tmp_path):
    elsewhere = checkpoint(tmp_path / "elsewhere", 3)
    inside = tmp_path / "run"
    inside.mkdir()
    (inside / "checkpoint-3").symlink_to(elsewhere)
    linked = checkpoint(inside, 2)
    (linked / "optimizer.pt").unlink()
    (linked / "optimizer.pt").symlink_to(elsewhere / "optimizer.pt")
    assert last_whole(inside) is None
    assert sorted(file.name for file in elsewhere.iterdir()) == [
        "manifest.json",
        "model.safetensors",
        "optimizer.pt",
    ]


def test_what_is_no_plain_file_is_no_part_of_a_checkpoint(tmp_path):
    place = checkpoint(tmp_path, 1, whole=False)
    (place / "folder").mkdir()
    with pytest.raises(UserError, match="file; "):
        declare_whole(place)


def saved(place, step):
    return checkpoint(place, step, whole=False)


def test_a_checkpoint_is_put_in_its_place_whole(tmp_path):
    take(tmp_path)
    with workplace(tmp_path) as place:
        keep(saved(place, 1), tmp_path)
        saved(tmp_path, 2)  # of a process that was killed
        keep(saved(place, 2), tmp_path)
        saved(place, 3)  # interrupted
    assert last_whole(tmp_path) == (2, tmp_path / "checkpoint-2")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".training", "checkpoint-2"]


def test_a_link_that_was_put_there_meanwhile_is_replaced_and_not_followed(tmp_path):
    elsewhere, run = checkpoint(tmp_path / "elsewhere", 2), tmp_path / "run"
    take(run)
    with workplace(run) as place:
        (run / "checkpoint-2").symlink_to(elsewhere)
        keep(saved(place, 2), run)
    assert not (run / "checkpoint-2").is_symlink()
    assert last_whole(elsewhere.parent) == (2, elsewhere)


def test_without_the_mark_nothing_is_removed(tmp_path):
    take(tmp_path)
    with workplace(tmp_path) as place:
        saved(tmp_path, 2)
        (tmp_path / ".training").unlink()
        with pytest.raises(UserError, match="checkpoint-2"):
            keep(saved(place, 2), tmp_path)
    assert len(list((tmp_path / "checkpoint-2").iterdir())) == 2


def killed_while_saving(folder: str) -> None:
    """Half of a checkpoint is saved when the process ends."""
    with workplace(Path(folder)) as place:
        saved(place, 1)
        os._exit(9)


def test_what_a_killed_process_left_half_saved_is_removed(tmp_path):
    take(tmp_path)
    with child(killed_while_saving, str(tmp_path)) as process:
        assert ended(process) == 9
    (left,) = tmp_path.glob(".checkpoints.*.unfinished")
    take(tmp_path)
    assert not left.exists()


def test_what_holds_more_than_files_is_no_leftover(tmp_path):
    left = tmp_path / f".checkpoints.{process_space()}.999999999.{'0' * 16}.unfinished"
    elsewhere = checkpoint(tmp_path / "elsewhere", 1)
    left.mkdir()
    (left / "checkpoint-1").symlink_to(elsewhere)
    take(tmp_path)
    assert last_whole(elsewhere.parent) == (1, elsewhere)
    assert (left / "checkpoint-1").is_symlink()
