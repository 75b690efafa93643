"""The header of a GGUF file: its settings and where its tensors are.

Its counts may be as large as 2^64. Therefore everything that it announces must lie within the file
and within limits. The format is specified at https://github.com/ggml-org/ggml.
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader
from pathlib import Path
from typing import Any

from interp.errors import one_line
from interp.files import open_plain
from interp.models.checkpoint import StoredTensor

_MAGIC = b"GGUF"
_STRING, _ARRAY, _UINT32 = 8, 9, 4
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Codes of single values by their number in the format, in the notation of `struct`."""

_MOST_ENTRIES = 2**16
"""Largest number of settings, and of tensors."""

_LONGEST_TEXT = 2**20
"""Largest number of bytes in any other string, such as a chat template."""


@dataclass(frozen=True, slots=True)
class Header:
    """The content of a header."""

    settings: Mapping[str, Any]
    """Values by key; arrays are lists."""
    tensors: Mapping[str, StoredTensor]
    """The tensors with their type in the format, such as Q4_1."""
    places: Mapping[str, int]
    """Where each tensor's values begin, in bytes."""

    @property
    def architecture(self) -> str:
        """The architecture, such as llama."""
        return str(self.settings["general.architecture"])


def header_of(file: Path) -> Header:
    """The header of a file, read once as long as it does not change; a ValueError if damaged."""
    # A file in the hub's cache is a link.
    target = file.resolve()
    status = target.stat()
    return unchanged_header(target, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1)
def unchanged_header(file: Path, inode: int, size: int, changed: int) -> Header:
    """The header of a file in this state."""
    with open_plain(file) as stream:
        return _walk(_Bytes(stream, size))


@dataclass(slots=True)
class _Bytes:
    """The bytes of a file, none of which is read twice."""

    stream: BufferedReader
    size: int
    elements: int = 0
    """Number of elements in all arrays so far."""

    def take(self, count: int) -> bytes:
        taken = self.stream.read(count) if count <= self.size else b""
        if len(taken) < count:
            raise ValueError(f"the file ends within its header, after {self.size:,} bytes")
        return taken

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def count(self, what: str, most: int, code: str = "Q") -> int:
        count: int = self.number(code)
        if count > most:
            raise ValueError(f"the header announces {count:,} {what}, more than {most:,}")
        return count

    def text(self, longest: int = _LONGEST_TEXT) -> str:
        return self.take(self.count("bytes of text", longest)).decode()

    def value(self, kind: int) -> Any:
        """A setting of a type in the format."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_scalar(kind))
        inner: int = self.number("I")
        # A vocabulary of 256,000 tokens needs a third of these.
        count = self.count("elements of arrays", 2**22 - self.elements)
        self.elements += count
        if inner == _STRING:
            # Short, since merges are searched in every token.
            return [self.text(4096) for _ in range(count)]
        code = f"<{count}{_scalar(inner)}"
        return list(struct.unpack(code, self.take(struct.calcsize(code))))


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"the header holds a value of the unknown type {kind}")
    return _SCALARS[kind]


def _walk(header: _Bytes) -> Header:
    if (magic := header.take(4)) != _MAGIC:
        raise ValueError(f"the file begins with {magic!r}, not with {_MAGIC!r}")
    if (version := header.number("I")) not in (2, 3):
        raise ValueError(f"the file has version {version:,} of the format; expected 2 or 3")
    tensor_count = header.count("tensors", _MOST_ENTRIES)
    settings: dict[str, Any] = {}
    for _ in range(header.count("settings", _MOST_ENTRIES)):
        key = _new(header.text(), settings)
        kind: int = header.number("I")
        settings[key] = header.value(kind)
        if key == "general.alignment" and kind != _UINT32:
            raise ValueError("general.alignment has another type than uint32")
    tensors: dict[str, StoredTensor] = {}
    spans: dict[str, tuple[int, int]] = {}
    for _ in range(tensor_count):
        key = _new(header.text(), tensors)
        tensors[key], spans[key] = _tensor(header, key)
    start = _check_places(header, settings.get("general.alignment", 32), spans)
    places = {key: start + begin for key, (begin, _) in spans.items()}
    return Header(settings, tensors, places)


def _check_places(header: _Bytes, alignment: int, spans: Mapping[str, tuple[int, int]]) -> int:
    """Where the tensors' values begin, if they lie beside each other within the file."""
    if alignment.bit_count() != 1:
        raise ValueError(f"general.alignment is {alignment}; expected a power of two")
    start = math.ceil(header.stream.tell() / alignment) * alignment
    end = 0
    for own_start, own_end in sorted(spans.values()):
        if own_start < end or own_start % alignment:
            raise ValueError(
                f"a tensor begins {own_start:,} bytes after the header; expected a multiple of "
                f"{alignment} at which no other tensor is"
            )
        end = own_end
    if start + end > header.size:
        raise ValueError(
            f"its tensors need {start + end:,} bytes, but the file has {header.size:,}; copy or "
            "download it again"
        )
    return start


def _new(key: str, known: Mapping[str, object]) -> str:
    if key in known:
        raise ValueError(f"the header holds {one_line(key, 60)} twice")
    return key


def _tensor(header: _Bytes, key: str) -> tuple[StoredTensor, tuple[int, int]]:
    """A tensor, and the begin and end of its values, in bytes after the header."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    sizes = [header.number("Q") for _ in range(header.count("axes of a tensor", 4, "I"))]
    kind = GGMLQuantizationType(header.number("I"))
    block, nbytes = GGML_QUANT_SIZES[kind]
    tensor = StoredTensor(tuple(reversed(sizes)), kind.name)
    if not sizes or 0 in sizes or sizes[0] % block:
        raise ValueError(
            f"the tensor {one_line(key, 60)} of type {kind.name} has the shape {tensor.shape}; "
            f"expected rows of whole blocks of {block}"
        )
    start: int = header.number("Q")
    return tensor, (start, start + tensor.size // block * nbytes)
