"""A model of the hub in the cache of this machine: its commit, and its weights."""

import re
from contextlib import suppress
from pathlib import Path

from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError

from interp.models.checkpoint import PICKLE_FILES, WEIGHT_FILES, indexed_files
from interp.models.problems import reading


def cached_commit(name: str, revision: str | None) -> str | None:
    """The commit whose configuration is cached for a revision; None if none is."""
    file = try_to_load_from_cache(name, "config.json", revision=revision)
    commit = Path(file).parent.name if isinstance(file, str) else ""
    return commit if re.fullmatch("[0-9a-f]{40}", commit) else None


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
