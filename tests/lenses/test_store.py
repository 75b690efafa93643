"""Fitted lenses on disk: fitted once, resumed, and refused if damaged."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from interp.cli import main
from interp.errors import UserError
from interp.lenses import store
from interp.lenses.corpus import read_corpus, sentences
from interp.lenses.rows import EMBEDDING, FIRST, read_texts
from interp.lenses.store import cache_folder, fitted
from interp.models.organisms import DEFAULT
from tests.support.tiny import tiny_model

WORDS = (5, 9)
TEXTS = ("It rained.", "We need flour.", "He sat on a mat.")


@pytest.fixture
def no_fit(monkeypatch):
    """Make every fit fail."""

    def refused(*unused, **options):
        raise AssertionError("fitted again")

    return lambda: monkeypatch.setattr(store, "summed_rows", refused)


def test_a_lens_is_fitted_once_per_model(tmp_path, no_fit):
    model = tiny_model("llama")
    found = fitted(model, WORDS, [EMBEDDING, 1], TEXTS, folder=tmp_path)
    no_fit()
    again = fitted(model, (9, 5, 9), [1], TEXTS, folder=tmp_path)
    assert torch.equal(again[0], found[1][[1, 0, 1]])
    for other in (
        {"token_ids": (5, 20)},
        {"texts": TEXTS[:2]},
        {"model": tiny_model("mistral")},
        {"model": tiny_model("llama", dtype=torch.float64)},
    ):
        named = {"model": model, "token_ids": WORDS, "layers": [0], "texts": TEXTS}
        with pytest.raises(AssertionError, match="fitted again"):
            fitted(**{**named, **other}, folder=tmp_path)


@pytest.mark.slow
def test_a_lens_is_fitted_once_for_several_commands(tmp_path, monkeypatch, no_fit):
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path / "lenses")
    common = ["--model", DEFAULT, "--device", "cpu", "--layers", "0", "--limit", "2"]

    def run(name, *options, out):
        return main([name, *common, *options, "--out", str(tmp_path / out)])

    def fitted_files():
        return {file: file.read_bytes() for file in (tmp_path / "lenses").rglob("*.safetensors")}

    assert run("steer", "--draws", "1", out="first") == 0
    files = fitted_files()
    no_fit()
    assert run("steer", "--draws", "1", out="second") == 0
    # Another measurement that reads some of the same words.
    assert run("lens", out="third") == 0
    assert fitted_files() == files
    for table in ("steered", "steering_effects"):
        first, second = (tmp_path / out / f"{table}.parquet" for out in ("first", "second"))
        assert first.read_bytes() == second.read_bytes()
    with pytest.raises(AssertionError, match="fitted again"):
        run("lens", "--words", "Peru", "Norway", out="fourth")


def test_an_interrupted_fit_goes_on(tmp_path, monkeypatch):
    model = tiny_model("llama")
    whole, read = store.summed_rows, []

    def interrupted(*arguments, **options):
        for number, found in whole(*arguments, **options):
            read.append(number)
            yield number, found
            if len(read) == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(store, "summed_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(model, WORDS, [0], TEXTS, folder=tmp_path)
    # The words go on behind the first text; the new one begins with it.
    found = fitted(model, (5, 9, 20), [0], TEXTS, folder=tmp_path)
    assert read == [1, 1, 2, 2]
    monkeypatch.undo()
    at_once = fitted(model, (5, 9, 20), [0], TEXTS, folder=tmp_path / "other")
    assert torch.allclose(found, at_once, atol=1e-6)


def test_damaged_files_are_refused(tmp_path):
    model = tiny_model("llama")
    fitted(model, WORDS, [0], TEXTS, folder=tmp_path)
    (file,) = tmp_path.glob("*/5.safetensors")
    good, tensors = file.read_bytes(), load_file(file)

    def refused():
        with pytest.raises(UserError, match=r"5\.safetensors"):
            fitted(model, WORDS, [0], TEXTS, folder=tmp_path)

    for content in (b"", good[:50], good[:-1], good[:-40] + b"\x01" + good[-39:], good + b" "):
        file.write_bytes(content)
        refused()
    for changes in (
        {"texts": torch.tensor(4)},
        {"texts": torch.tensor([3])},
        {"rows": tensors["rows"][1:]},
        {"rows": tensors["rows"].double()},
        {"rows": torch.full_like(tensors["rows"], torch.inf)},
        {"sha256": torch.zeros(32)},
    ):
        save_file({**tensors, **changes}, file)
        refused()
    file.write_bytes(bytes(10**6))  # larger than any file of this lens
    refused()
    file.unlink()
    file.symlink_to("/etc/passwd")
    refused()
    file.unlink()
    fitted(model, WORDS, [0], TEXTS, folder=tmp_path)
    record = file.parent / store.RECORD
    record.write_text(record.read_text().replace('"first": 4', '"first": 5'))
    with pytest.raises(UserError, match=r"lens\.json is damaged"):
        fitted(model, WORDS, [0], TEXTS, folder=tmp_path)


def test_lenses_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "cache_folder", cache_folder)  # the tests' own is elsewhere
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fitted(tiny_model("llama"), WORDS, [0], TEXTS)
    assert cache_folder() == tmp_path / "interp" / "lenses"
    assert len(list(cache_folder().glob("*/*.safetensors"))) == 2


def test_every_sentence_that_comes_along_is_long_enough():
    assert len(set(sentences())) == len(sentences()) == 64
    assert len(read_texts(tiny_model("llama"), sentences())) == 64
    assert min(len(sentence.split()) for sentence in sentences()) > 2 * FIRST


def test_bad_corpora_are_refused(tmp_path):
    for content, reason in ((b"\n \n", "no text"), (b"\xff\xfe", "not UTF-8")):
        (tmp_path / "texts").write_bytes(content)
        with pytest.raises(UserError, match=reason):
            read_corpus(tmp_path / "texts")
    with pytest.raises(UserError, match="there is no file"):
        read_corpus(tmp_path / "none")
