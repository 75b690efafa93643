"""Dequantized weights of files, kept in the user's cache, so that later commands only read them."""

import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError, safe_open

from interp.errors import UserError, one_line
from interp.files import (
    checksum,
    inside,
    is_plain,
    make_folder,
    names_in,
    remove_own,
    remove_unfinished,
    unfinished_name,
    user_cache,
    write_whole,
    writing,
)

if TYPE_CHECKING:
    import torch

    Weights = dict[str, torch.Tensor]

_LIBRARIES = ("gguf", "numpy", "torch", "transformers")
_FOLDER = "dequantized"
_NAME = re.compile(r"[0-9a-f]{64}\.safetensors")
_CONTENT = "content"
"""The entry of a kept file's header that describes its tensors."""


def kept_weights(
    file: Path, code: Iterable[Path], dtype: str, make: "Callable[[], Weights]"
) -> "Weights":
    """The weights of a file, as they were kept, or as they are made now and then kept.

    They are found by a hash of the file, of the code that makes them, of their type and of the
    versions of libraries. A damaged file in the cache is made anew; a link is a UserError.
    """
    decisive = [checksum(file), *map(checksum, code), dtype, *map(version, _LIBRARIES)]
    name = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()
    with writing(user_cache()):
        user_cache().mkdir(parents=True, exist_ok=True)
    folder = make_folder(user_cache(), _FOLDER)
    place = inside(folder, f"{name}.safetensors")
    weights = _read(place)
    if weights is None:
        remove_unfinished(folder)
        weights = make()
        write_whole(place, partial(_write, weights))
    return weights


def kept_files() -> dict[Path, int]:
    """The size in bytes of each file that `kept_weights` wrote, by its name and header."""
    folder = user_cache() / _FOLDER
    sizes = {}
    for name in names_in(folder):
        place = folder / name
        with suppress(OSError, SafetensorError):
            if _NAME.fullmatch(name) and is_plain(place):
                with safe_open(os.fspath(place), "numpy") as opened:  # torch is slow to import
                    ours = _CONTENT in (opened.metadata() or {})
                if ours:
                    sizes[place] = place.stat().st_size
    return sizes


def _write(weights: "Weights", place: Path) -> None:
    from safetensors.torch import save_file

    # safetensors first writes a file of its own beside, which a killed process leaves.
    folder = unfinished_name(place)
    folder.mkdir()
    try:
        save_file(weights, folder / place.name, metadata={_CONTENT: _content(weights)})
        (folder / place.name).replace(place)
    except SafetensorError as error:  # which stands for all that the file system refuses
        raise UserError(
            f"the dequantized weights cannot be kept in {place.parent}: {one_line(str(error))}. "
            "Free some space, or omit keep_dequantized"
        ) from error
    finally:
        remove_own(folder)


def _read(place: Path) -> "Weights | None":
    """The weights that a file in the cache holds; None if there is none, or if it is damaged."""
    if not is_plain(place):
        return None
    with suppress(OSError, SafetensorError), safe_open(os.fspath(place), "pt") as opened:
        weights = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
        if (opened.metadata() or {}).get(_CONTENT) == _content(weights):
            return weights
    return None


def _content(weights: "Weights") -> str:
    """Names, types and shapes of weights, and checksums (CRC-32) of their bytes."""
    import torch

    rows = []
    for name, tensor in sorted(weights.items()):
        sum_ = zlib.crc32(tensor.flatten().view(torch.uint8).numpy().data)
        rows.append((name, str(tensor.dtype), list(tensor.shape), sum_))
    return json.dumps(rows)
