"""Models in the cache of the hub's client, which tests cannot reach."""

from pathlib import Path

import pytest
from huggingface_hub import constants

from interp.models.model import Model
from tests.support.tiny import save

COMMIT = "0123456789abcdef" * 2 + "01234567"


def cached(
    model: Model, cache: Path, monkeypatch: pytest.MonkeyPatch, *, weights: bool = True
) -> Path:
    """The folder of the model org/tiny; its files are links, as the hub's client makes them."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repository = cache / "models--org--tiny"
    folder, blobs = repository / "snapshots" / COMMIT, repository / "blobs"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    save(model, blobs)
    folder.mkdir(parents=True)
    for file in blobs.iterdir():
        if weights or file.suffix != ".safetensors":
            (folder / file.name).symlink_to(file)
    return folder
