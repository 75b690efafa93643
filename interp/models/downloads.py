"""A model of the hub in the cache of this machine: its commit, and its weights."""

import re
from contextlib import suppress
from pathlib import Path

from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from transformers.utils.hub import cached_file

from interp.models.checkpoint import PICKLE_FILES, WEIGHT_FILES, indexed_files, reading


def pinned(name: str, revision: str | None) -> tuple[Path, str]:
    """The cached folder and the commit of a revision, whose configuration is fetched for it.

    Everything else is then read at this commit, whatever is pushed meanwhile.

    Raises:
        UserError: there is no such model, or its configuration cannot be had.
    """
    with reading("config.json", name):
        folder = Path(cached_file(name, "config.json", revision=revision) or "").parent
        if not re.fullmatch("[0-9a-f]{40}", folder.name):
            raise ValueError(f"the hub names no commit of {revision or 'main'}")
    return folder, folder.name


def downloaded_weights(name: str, revision: str | None, *, allow_pickle: bool) -> Path | None:
    """The cached folder of a model, with the weights that transformers will read from it.

    None if there are none; transformers then says what it looked for.

    Raises:
        UserError: they cannot be had, or an index is damaged or names other files than weights.
    """
    for first in WEIGHT_FILES + (PICKLE_FILES if allow_pickle else ()):
        with reading("its weights", name), suppress(EntryNotFoundError):
            file = Path(hf_hub_download(name, first, revision=revision))
            for other in indexed_files(name, file) if file.suffix == ".json" else ():
                hf_hub_download(name, other, revision=revision)
            return file.parent
    return None
