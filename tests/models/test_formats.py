import shutil
from contextlib import contextmanager
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

import interp
from interp import plugins
from interp.errors import UserError
from interp.models.formats import FOLDER, Contents, Format, format_of, model_file
from interp.models.names import short_name
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


class Zipped(Format):
    """A folder in a zip file."""

    configuration = "its configuration"
    may_quantize = False

    def read(self, name, place, *, allow_pickle):
        with self.readable(place) as folder:
            return Contents(FOLDER.read(name, folder, allow_pickle=allow_pickle).stored)

    @contextmanager
    def readable(self, place):
        with TemporaryDirectory() as folder:
            shutil.unpack_archive(place, folder, "zip")
            yield Path(folder)


ZIPPED = Zipped()


@pytest.fixture
def another_package(monkeypatch):
    """Install a format of files, "zipped", of another package."""
    original = plugins._entry_points

    def install(value):
        def found(group, path):
            own = [EntryPoint("zipped", value, group)] if group == plugins.FORMATS else []
            return EntryPoints([*original(group, path), *own])

        monkeypatch.setattr(plugins, "_entry_points", found)

    return install


@pytest.fixture
def zipped(tmp_path):
    model = make_tiny("llama", byte_level())
    for part in (model.hf, model.tokenizer):
        part.save_pretrained(tmp_path / "folder")
    made = shutil.make_archive(str(tmp_path / "small"), "zip", tmp_path / "folder")
    return Path(made).rename(tmp_path / "small.zipped")


def test_another_package_adds_a_format(zipped, another_package):
    with pytest.raises(UserError, match=r"/small\.zipped'.*config\.json.*GGUF"):
        interp.load_model(str(zipped))
    another_package(f"{__name__}:ZIPPED")
    folder = zipped.parent / "folder"
    model, original = interp.load_model(str(zipped)), interp.load_model(str(folder))
    assert model.name == short_name(str(zipped)) == "small"
    assert model.source["kind"] == "file"
    ids = torch.arange(5)[None]
    assert torch.equal(model.hf(ids).logits, original.hf(ids).logits)
    with pytest.raises(UserError, match="quantization '8bit'"):
        interp.load_model(str(zipped), quantization="8bit")
    with pytest.raises(UserError, match=r"ZIPPED file.*missing\.zipped"):
        interp.load_model(str(zipped.with_name("missing.zipped")))


def test_the_only_file_of_a_folder_is_its_model_and_several_are_refused(zipped, another_package):
    another_package(f"{__name__}:ZIPPED")
    folder = zipped.parent / "download"
    folder.mkdir()
    shutil.copy(zipped, folder)
    assert model_file("download", folder) == folder / zipped.name
    assert interp.load_model(str(folder)).name == "download"
    shutil.copy(zipped, folder / "again.zipped")
    with pytest.raises(UserError, match=r"2 files .*again\.zipped, small\.zipped"):
        interp.load_model(str(folder))
    assert model_file("folder", zipped.parent / "folder") == zipped.parent / "folder"


@pytest.mark.parametrize("value", ["no_such_package:THING", f"{__name__}:Zipped"])
def test_a_format_that_is_none_is_refused(zipped, another_package, value):
    another_package(value)
    assert format_of("org/model.zipped") is FOLDER
    with pytest.raises(UserError, match=r"'zipped'.*interp\.formats"):
        interp.load_model(str(zipped))
