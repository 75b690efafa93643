import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.models.names import ModelChoice, absolute, chosen, names_of, short_name

HASH = "0123456789abcdef" * 2 + "01234567"


def made(root, *places):
    for place in places:
        (root / place).mkdir(parents=True)
    return [str(root / place) for place in places]


def named(*texts, **recorded):
    return names_of([chosen(text) for text in texts], {v: k for k, v in recorded.items()})


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_last_part_of_a_path_is_the_name(here):
    (folder,) = made(here, "a/b/tuned")
    for text in (folder, f"{folder}/", "a/b/tuned", "./a/b/../b/tuned//", f"{folder}/."):
        assert named(text) == ["tuned"]
    os.chdir(folder)
    assert named(".") == ["tuned"]
    assert named("..") == ["b"]
    assert named("organism/gemma2", "org/gemma2") == ["organism/gemma2", "org/gemma2"]


def test_a_snapshot_has_its_name_on_the_hub(tmp_path):
    first, second = made(
        tmp_path, f"models--org--tiny/snapshots/{HASH}", f"models--org--tiny/snapshots/{HASH[::-1]}"
    )
    assert named(first) == ["org/tiny"]
    assert named(first, second) == ["org/tiny@0123456", "org/tiny@7654321"]
    (tmp_path / "mine").symlink_to(first)
    assert named(str(tmp_path / "mine")) == ["mine"]
    (alone,) = made(tmp_path, f"tiny/snapshots/{HASH}")  # of no hub
    assert named(alone) == ["tiny"]


def test_models_that_would_be_alike_are_told_apart(tmp_path):
    a, b, c, other = made(tmp_path, "a/m", "b/m", "c/b/m", "other")
    assert named(a, other) == ["m", "other"]
    assert named(a, b, other) == ["a/m", "b/m", "other"]
    assert named(a, b, c)[0] == "a/m"
    assert named(b, c) == [f"{tmp_path.name}/b/m", "c/b/m"]


def test_a_given_name_is_kept_and_others_give_way(tmp_path):
    a, b = made(tmp_path, "a/m", "b/m")
    assert named(f"m={a}", b) == ["m", "b/m"]
    assert named(f"x={a}", f"y={b}", "z=organism/gemma2") == ["x", "y", "z"]
    assert named(f"x={a}", a) == ["x", "m"]


def test_a_run_keeps_the_names_that_it_has(tmp_path):
    a, b = made(tmp_path, "a/m", "b/m")
    assert named(a, b, m=a) == ["m", "b/m"]
    assert named(b, m=a) == ["b/m"]
    assert named(a, **{"a/m": a, "b/m": b}) == ["a/m"]
    assert named(f"x={a}", m=a) == ["x"]


def test_a_path_may_contain_an_equals_sign(here):
    folder, *_ = made(here, "runs/lr=0.1/m", "lr=0.2", "a")
    assert named(folder) == named("runs/lr=0.1/m") == ["m"]
    assert named("lr=0.2") == ["lr=0.2"]
    assert named("x=lr=0.2", f"y={folder}") == ["x", "y"]
    assert chosen("runs/lr=0.1/missing").place == "runs/lr=0.1/missing"
    assert chosen("a=a") == ModelChoice(place="a", name="a")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "NAME=PATH") for text in ("=m", " =m", "a\nb=m", "a\x1b[31m=m", "a=")),
        ("x" * 201 + "=m", "NAME=PATH"),
        ("x=organism/llama-shalow", "organism/llama-shallow"),
    ],
)
def test_invalid_names_are_refused(text, words):
    with pytest.raises(UserError, match=words):
        chosen(text)


@pytest.mark.parametrize(
    "texts",
    [
        *(("m", "m/"), ("m", "./m"), ("x=m", "x=n"), ("organism/gemma2",) * 2, ("org/a",) * 2),
        *(("m", "link"), ("recorded", "m=n")),
    ],
)
def test_nothing_is_named_twice(here, texts):
    made(here, "m", "n", "recorded")
    (here / "link").symlink_to("m")
    with pytest.raises(UserError, match=r"model (m|x|org/a|organism/gemma2) .*NAME=PATH"):
        named(*texts, m=str(here / "recorded"))
    assert named("a=m", "b=link") == ["a", "b"]


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1))
def test_names_are_on_one_line(tmp_path_factory, part):
    if part in (".", "..") or len(part.encode()) > 200:
        return
    root = tmp_path_factory.mktemp("names")
    (root / part).mkdir()
    assert short_name(str(root / part)).isprintable()
    assert absolute(str(root / part)) == str(root / part)
    assert chosen(f"x={root / part}").name == "x"


def test_no_folder_is_called_like_an_organism(tmp_path):
    own, other = made(tmp_path, "organism/gemma2", "b/gemma2")
    names = named(own, other, "organism/gemma2")
    assert len(set(names)) == 3
    assert sum(name.startswith("organism/") for name in names) == 1
