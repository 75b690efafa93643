"""Checks on a model's folder before anything in it is loaded."""

import json
import math
import os
import pickle
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from pydantic import BaseModel, ValidationError
from safetensors import safe_open
from transformers import GenerationConfig

from interp.errors import UserError, fault_of, kind_of, one_line
from interp.files import RECORD_BYTES, read_bytes

MODEL = "a saved Hugging Face causal language model, sequence classifier or text-to-text model"


@contextmanager
def as_user_error(part: str, name: str, *, expected: str = MODEL) -> Iterator[None]:
    """Turn any error within the block into a UserError that names the part of the model being read.

    Each library that reads a damaged folder raises its own errors. Panics in the tokenizers library
    do not derive from `Exception`, so everything is caught except errors that end the program.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise UserError(
            f"the model {one_line(name)!r} cannot be loaded: {part} does not fit into the "
            "remaining memory. Use a smaller model or a larger machine, or look for a damaged "
            "file"
        ) from error
    except BaseException as error:
        text = fault_of(error) if isinstance(error, ValidationError) else str(error)
        if type(error) in (TypeError, IndexError, ZeroDivisionError):
            text = f"a value has another type or size than expected ({type(error).__name__})"
        elif not text or isinstance(error, KeyError):  # the text of a KeyError is only the key
            text = f"{type(error).__name__} {text}"
        raise UserError(
            f"the model {one_line(name)!r} cannot be loaded: {part}: "
            f"{one_line(text, 160).rstrip('.')}. Expected {expected}"
        ) from error


WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
GENERATION = "generation_config.json"

_SUFFIXES = frozenset({".bin", ".jinja", ".json", ".model", ".safetensors", ".txt"})
"""Suffixes of the files from which models are read."""

PICKLE_FILES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as described in a file's header."""

    shape: tuple[int, ...]
    dtype: str
    """Name of the type in safetensors (BF16) or, for a pickle, in PyTorch (bfloat16)."""

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes."""
        bits = re.search(r"\d+", self.dtype)
        return self.size * max(1, int(bits[0]) // 8) if bits else self.size


Stored = Mapping[str, StoredTensor]
"""The tensors of a checkpoint by name."""


class _Index(BaseModel, strict=True):
    weight_map: dict[str, str]


def check_folder(name: str, folder: Path, *, allow_pickle: bool) -> None:
    """Check that a folder contains a configuration, weights and a tokenizer as regular files.

    Raises:
        UserError: a file is missing or not regular, or the weights are a pickle that is not
            allowed.
    """
    shown = one_line(name)
    check_regular(name, folder)
    if not (folder / "config.json").is_file():
        raise UserError(f"{shown} has no config.json; expected a saved Hugging Face model")
    if not weights_in(folder, allow_pickle=True):
        raise UserError(f"{shown} has no weights; expected {' or '.join(WEIGHT_FILES)}")
    read = weights_in(folder, allow_pickle=allow_pickle)
    if not read:
        raise UserError(
            f"{shown} stores its weights as a pickle, which can run code when loaded; pass "
            "--allow-pickle if you trust it, or convert it to safetensors"
        )
    for other in read[1:]:
        _check_same_weights(name, read[0], other)
    if not has_tokenizer(folder):
        raise UserError(f"{shown} has no tokenizer; expected tokenizer.json, saved with the model")
    if (folder / GENERATION).exists():
        # transformers would ignore a file that it cannot read, and blame the weights for a setting.
        settings = read_object(name, folder / GENERATION)
        with as_user_error(GENERATION, name):
            GenerationConfig.from_dict(settings)


def weight_names(*, allow_pickle: bool) -> tuple[str, ...]:
    """Names of files of weights, or of their indexes, of which transformers reads the first."""
    return WEIGHT_FILES + (PICKLE_FILES if allow_pickle else ())


def weights_in(folder: Path, *, allow_pickle: bool) -> list[Path]:
    """Those of these files that a folder holds, in this order."""
    files = [folder / name for name in weight_names(allow_pickle=allow_pickle)]
    return [file for file in files if file.is_file()]


def _parts(name: str, file: Path) -> list[Path]:
    """The files of weights that an index lists; a file of weights itself."""
    if file.suffix != ".json":
        return [file]
    return [file.with_name(part) for part in indexed_files(name, file)]


def _check_same_weights(name: str, first: Path, other: Path) -> None:
    """Check that a file of weights beside the one that is read does not hold different weights.

    Pickles beside safetensors are not opened unless they are allowed.
    """
    read, beside = _parts(name, first), _parts(name, other)
    with as_user_error(one_line(other.name), name):
        same = read == beside or (
            all(part.is_file() for part in beside) and _same_tensors(read, beside)
        )
    if not same:
        listed = f"the files that {other.name} lists" if other.suffix == ".json" else other.name
        raise UserError(
            f"{one_line(name)} holds two different sets of weights: {first.name}, and "
            f"{listed}; keep the one that belongs to its config.json"
        )


def _same_tensors(some: list[Path], others: list[Path]) -> bool:
    """Whether some files together hold the same tensors as others, which are read one at a time.

    A pickle may hold more than safetensors, which omit the second of two tied tensors.
    """
    with ExitStack() as stack:
        first, second = (_opened(files, stack) for files in (some, others))
        alike = some[0].suffix == others[0].suffix
        named = first.keys() == second.keys() if alike else first.keys() <= second.keys()
        return named and all(torch.equal(tensor(), second[key]()) for key, tensor in first.items())


def _opened(files: list[Path], stack: ExitStack) -> dict[str, Callable[[], torch.Tensor]]:
    """The tensors of several files by name, each read when it is asked for."""
    lazy: dict[str, Callable[[], torch.Tensor]] = {}
    for file in files:
        if file.suffix == ".safetensors":
            opened = stack.enter_context(safe_open(file, framework="pt"))
            lazy |= {key: partial(opened.get_tensor, key) for key in opened.keys()}  # noqa: SIM118
        else:
            # Values stay in the file until they are compared.
            pickled = unpickled(file, "cpu", mmap=is_zipfile(file))
            lazy |= {key: partial(pickled.__getitem__, key) for key in pickled}
    return lazy


def has_tokenizer(folder: Path) -> bool:
    """Whether a tokenizer was saved in a folder."""
    return any((folder / file).is_file() for file in ("tokenizer.json", "tokenizer_config.json"))


def check_regular(name: str, folder: Path) -> None:
    """Raise a UserError unless a folder has only folders and readable files.

    transformers would skip files that it cannot open, and reading a pipe might never end.
    """
    for entry in (*folder.iterdir(), *folder.glob("additional_chat_templates/*")):
        shown = f"{one_line(entry.name)} in {one_line(name)}"
        if entry.is_symlink() and not entry.exists():
            if not entry.name.startswith("."):
                raise UserError(f"{shown} is a broken link; copy the file, or remove the link")
        elif entry.is_dir():
            if entry.suffix in _SUFFIXES:
                raise UserError(f"{shown} is a folder; expected a file")
        elif not stat.S_ISREG(entry.stat().st_mode):
            raise UserError(f"{shown} is not a regular file; remove it")
        elif not os.access(entry, os.R_OK):
            raise UserError(f"{shown} cannot be read; change its permissions")


def stored_tensors(name: str, folder: Path, *, allow_pickle: bool) -> Stored:
    """The tensors that transformers would load from a folder; empty without weights.

    A file or index that is damaged raises a UserError (`weight_files`).
    """
    tensors: dict[str, StoredTensor] = {}
    for file in weight_files(name, folder, allow_pickle=allow_pickle):
        with as_user_error(one_line(file.name), name):
            tensors.update(header(file))
    return tensors


def weight_files(name: str, folder: Path, *, allow_pickle: bool) -> list[Path]:
    """The files from which transformers would read weights: one file, or those listed in an index.

    Raises:
        UserError: an index is damaged, or lists anything other than weight files next to it.
    """
    weights = weights_in(folder, allow_pickle=allow_pickle)
    files = _parts(name, weights[0]) if weights else []
    for file in files:
        if not file.is_file():
            raise UserError(
                f"{one_line(name)} lacks the weight file {one_line(file.name)}, which its "
                f"{weights[0].name} lists; copy the whole folder again"
            )
    return files


def indexed_files(name: str, index: Path) -> list[str]:
    """Names of the weight files that an index lists.

    Raises:
        UserError: the index is damaged, or lists anything other than weight files next to it.
    """
    suffix = Path(index.name.removesuffix(".index.json")).suffix
    with as_user_error(index.name, name):
        weight_map = _Index.model_validate_json(index.read_bytes()).weight_map
    files = sorted(set(weight_map.values()))
    for file in files:
        # Only a name without a path is certain to refer to a file in the folder.
        if not re.fullmatch(rf"\w[\w.-]{{0,200}}{re.escape(suffix)}", file, re.ASCII):
            raise UserError(
                f"{index.name} in {one_line(name)} lists the file {one_line(file)!r}; expected "
                f"the name of a {suffix} file next to it"
            )
    return files


def header(file: Path) -> Iterator[tuple[str, StoredTensor]]:
    """Name, shape and type of each tensor in a file."""
    if file.suffix == ".safetensors":
        with safe_open(file, framework="pt") as opened:
            for key in opened.keys():  # noqa: SIM118  # this object is not a dictionary
                view = opened.get_slice(key)
                yield key, StoredTensor(tuple(view.get_shape()), view.get_dtype())
        return
    for key, tensor in unpickled(file, "meta").items():
        yield key, StoredTensor(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


def unpickled(file: Path, device: str, *, mmap: bool = False) -> dict[str, torch.Tensor]:
    """The tensors of a pickle; reached only with --allow-pickle, and even then no code can run.

    Raises:
        UserError: the pickle contains anything else.
    """
    shown = f"the pickle {one_line(file.name)}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the protocol, and types that are refused
            state = torch.load(file, map_location=device, weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        raise UserError(
            f"{shown} is damaged, or contains objects other than tensors, which could run code "
            "and are not read; convert it to safetensors if you trust it"
        ) from error
    for key, tensor in state.items() if isinstance(state, dict) else [("", state)]:
        if not (isinstance(key, str) and isinstance(tensor, torch.Tensor)):
            raise UserError(
                f"{shown} holds {kind_of(tensor)} at {one_line(repr(key))}; expected a dictionary "
                "of tensors by name, as model.state_dict() returns"
            )
    return dict(state)


def read_configuration(name: str, folder: Path) -> dict[str, Any]:
    """The configuration, or a UserError if it is none, or names weights or an attention kernel."""
    config = read_object(name, folder / "config.json")
    if "transformers_weights" in config:
        raise UserError(
            f"config.json in {one_line(name)} sets transformers_weights; expected weights in "
            f"{' or '.join(WEIGHT_FILES)}"
        )
    for key, value in settings(config):
        kernel = key.removeprefix("_").startswith("attn_implementation") and isinstance(value, str)
        if kernel and not re.fullmatch(r"\w{1,64}", value, re.ASCII):
            raise UserError(
                f"config.json in {one_line(name)} specifies the attention kernel "
                f"{one_line(value)!r}, which would be downloaded and run; remove it, and pass it "
                "with --attn-implementation if you trust it"
            )
    return config


def read_object(name: str, file: Path) -> dict[str, Any]:
    """The JSON object in one of a model's files.

    Raises:
        UserError: the file is damaged, or contains something else.
    """
    with as_user_error(file.name, name):
        # As transformers reads it; from bytes, json would guess another encoding.
        content = json.loads(read_bytes(file.resolve(), limit=RECORD_BYTES).decode())
    if not isinstance(content, dict):
        raise UserError(f"{file.name} in {one_line(name)} is not a JSON object")
    return content


def settings(config: Any) -> Iterator[tuple[str, Any]]:
    """All settings in a configuration, including those of nested configurations."""
    if isinstance(config, dict):
        for key, value in config.items():
            yield key, value
            yield from settings(value)
