"""Dequantized weights in the cache: read instead of made again, and never if they are damaged."""

import json
import os
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from interp.cli import main
from interp.models import gguf as gguf_format
from interp.models import gguf_header, kept
from interp.models.gguf import _types
from interp.models.loading import Loading
from interp.models.organisms import DEFAULT
from tests.models import conftest
from tests.models.conftest import IDS
from tests.models.test_gguf import write
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

pytest.importorskip("gguf")


@pytest.fixture
def held():
    """A model, which `write` rounds as its file does."""
    return make_tiny("llama", byte_level())


@pytest.fixture
def file(held, tmp_path):
    return write(tmp_path / "tiny.gguf", held)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of kept weights, which the first load makes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "interp" / "dequantized"


@pytest.fixture
def made(monkeypatch):
    """How often weights are dequantized."""
    calls = []
    original = gguf_format._weights
    monkeypatch.setattr(gguf_format, "_weights", lambda *a: calls.append(1) or original(*a))
    return calls


load = partial(conftest.load, keep_dequantized=True)
refused = partial(conftest.refused, keep_dequantized=True)


def same(one, other):
    ours, theirs = one.hf.state_dict(), other.hf.state_dict()
    assert ours.keys() == theirs.keys()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_weights_are_made_once_and_are_those_of_the_file(held, file, cache, made, dtype):
    plain = load(file, keep_dequantized=False, dtype=dtype)
    rounded = plain.hf.state_dict()
    for key, own in held.hf.state_dict().items():
        assert torch.equal(rounded[key], own.to(getattr(torch, dtype)))
    assert not cache.exists()
    first, second = load(file, dtype=dtype), load(file, dtype=dtype)
    assert len(made) == 2
    assert same(first, plain)
    assert same(second, plain)
    assert second.identity == plain.identity
    assert second.source == plain.source
    assert torch.equal(second.hf(IDS).logits, plain.hf(IDS).logits)
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    with torch.no_grad():  # as an adapter changes weights when it is merged
        second.hf.lm_head.weight.add_(1)
    assert kept.read_bytes() == content
    assert {own.dtype for own in load_file(kept).values()} == {getattr(torch, dtype)}
    assert Loading(keep_dequantized=True).identity() == Loading().identity()


def test_another_type_code_file_or_version_is_another_entry(
    file, cache, made, monkeypatch, tmp_path
):
    load(file)
    load(file, dtype="bfloat16")
    places = {Path(one.__file__) for one in (gguf_format, gguf_header)}
    assert {*gguf_format._CODE} == places  # what reads weights
    for place in places:
        other = tmp_path / place.name
        other.write_text(f"{place.read_text()}# changed")
        code = [other if one == place else one for one in gguf_format._CODE]
        with monkeypatch.context() as patch:
            patch.setattr(gguf_format, "_CODE", code)
            load(file)
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    load(file)
    monkeypatch.setattr("interp.models.kept.version", lambda name: "0")
    load(file)
    assert len(made) == len([*cache.iterdir()]) == 6
    load(file)
    assert len(made) == 6


def flipped(kept):
    content = bytearray(kept.read_bytes())
    content[-9] ^= 1
    kept.write_bytes(content)


def renamed(kept):
    kept.write_bytes(kept.read_bytes().replace(b"layers.0.mlp.up", b"layers.0.mlp.uq", 1))


def copied(kept):
    """What a file holds, in memory of its own: a file that is read must not be overwritten."""
    return {key: own.clone() for key, own in load_file(kept).items()}


def of_others(kept):
    save_file(copied(kept), kept)


def without_one(kept):
    content = dict(list(copied(kept).items())[1:])
    save_file(content, kept, metadata={"content": json.dumps([])})


DAMAGES = (
    *(flipped, renamed, of_others, without_one),
    lambda kept: kept.write_bytes(kept.read_bytes()[:-100]),
    lambda kept: kept.write_bytes(b""),
    lambda kept: kept.write_bytes(b"\xff" * 1000),
    lambda kept: (kept.unlink(), os.mkfifo(kept)),
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_made_anew(file, cache, made, damage):
    plain = load(file)
    (kept,) = cache.iterdir()
    whole = copied(kept)
    other = cache / "other.safetensors"
    other.write_text("not ours")
    damage(kept)
    assert same(load(file), plain)
    assert len(made) == 2
    again = load_file(kept)
    assert again.keys() == whole.keys()
    assert all(torch.equal(again[key], whole[key]) for key in whole)
    assert other.read_text() == "not ours"


def test_links_and_models_that_are_not_dequantized_are_refused(file, cache, tmp_path):
    load(file)
    (kept,) = cache.iterdir()
    kept.rename(tmp_path / "elsewhere")
    kept.symlink_to(tmp_path / "elsewhere")
    refused("link", file)
    refused(r"keep_dequantized.*GGUF", DEFAULT)


def test_a_cache_that_cannot_be_written_is_named(file, cache, tmp_path, monkeypatch):
    def full(*given, **named):
        raise SafetensorError("Error while serializing: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    refused(r"^the dequantized weights .* kept .*No space left", file)
    assert [*cache.iterdir()] == []
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "plain"))
    refused("plain", file)


def test_what_a_killed_process_left_is_removed(file, cache, made, monkeypatch):
    def killed(weights, place, **named):
        (Path(place).parent / ".tmpx").write_bytes(b"half of them")
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", killed)
        patch.setattr(kept, "remove_own", lambda folder: None)  # as nothing is done after a kill
        with pytest.raises(SystemExit):
            load(file)
    (left,) = cache.iterdir()
    assert [own.name for own in left.iterdir()] == [".tmpx"]
    monkeypatch.setattr("interp.files.has_ended", lambda space, process: True)
    load(file)
    assert [own.suffix for own in cache.iterdir()] == [".safetensors"]


def test_weights_that_stay_in_fp32_are_not_rounded_before(monkeypatch):
    hf = tiny_model("llama", dtype=torch.bfloat16).hf
    assert set(_types(hf).values()) == {torch.bfloat16}
    monkeypatch.setattr(hf, "_keep_in_fp32_modules_strict", {"norm"})
    assert _types(hf) == {}


def test_models_says_how_large_kept_weights_are_and_removes_nothing_else(file, cache, capsys):
    load(file)
    (ours,) = cache.iterdir()
    held = {"weight": torch.ones(2)}
    others = [cache / "notes.txt", cache / f"{'a' * 64}.safetensors", cache / "b.safetensors"]
    others[0].write_text("mine")
    save_file(held, others[1])  # named like ours, without our header
    others[2].hardlink_to(ours)
    link = cache / f"{'c' * 64}.safetensors"
    link.symlink_to(ours)
    cut = cache / f"{'d' * 64}.safetensors"
    cut.write_bytes(ours.read_bytes()[:100])
    assert kept.kept_files() == {ours: ours.stat().st_size}
    assert main(["models"]) == 0
    assert str(cache) in capsys.readouterr().out.replace("\n", "")
    assert main(["models", "--remove-dequantized"]) == 0
    assert not ours.exists()
    assert {*cache.iterdir()} == {*others, link, cut}
    assert main(["models", "--remove-dequantized"]) == 0
    assert "removed 0 files" in capsys.readouterr().out
