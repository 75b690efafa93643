"""GGUF files: one file with the configuration, tokenizer and weights of a model, often quantized.

transformers reads these files and turns quantized weights into ordinary numbers, but its readers
trust the header, whose counts may be as large as 2^64. Therefore the header is walked here first,
and everything that it announces must lie within the file (https://github.com/ggml-org/ggml,
docs/gguf.md).
"""

import json
import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedModel, modeling_gguf_pytorch_utils
from transformers.utils import logging, quantization_config

from interp.errors import UserError, one_line
from interp.files import checksum, open_plain
from interp.models.checkpoint import StoredTensor, as_user_error
from interp.models.formats import Contents, Format

MODEL = "a whole GGUF file of a language model whose architecture transformers reads"

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY, _UINT32 = 8, 9, 4
_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Codes of single values by their number in the format, in the notation of `struct`."""

_MOST_ENTRIES = 2**16
"""Largest number of settings, and of tensors."""

_MOST_ELEMENTS = 2**22
"""Largest number of elements in all arrays; a vocabulary of 256,000 tokens needs a third."""

_LONGEST_TOKEN = 4096
"""Largest number of bytes in a string of an array, since merges are searched in every token."""

_MOST_EXPERTS = 1024

_ROPE = ("rope_freqs.", "rope_factors_")
"""Beginnings of the names of tensors that scale rotary frequencies, which transformers ignores."""

_READ_SCALING = frozenset({"gpt-oss"})
"""Architectures whose settings of rotary scaling transformers reads."""


def read_header(name: str, file: Path) -> Contents:
    """Check the header of a GGUF file, without reading weights.

    Raises:
        UserError: the file is damaged or a part of a split model, its weights would not be read as
            they are meant, or the package gguf is missing.
    """
    if find_spec("gguf") is None:
        raise UserError(
            f"the model {one_line(name)!r} is a GGUF file, which needs the package gguf; run pip "
            "install 'interp[gguf]'"
        )
    # A file in the hub's cache is a link.
    whole = file.resolve()
    with as_user_error(one_line(file.name), name, expected=MODEL), open_plain(whole) as stream:
        settings, tensors = _walk(_Bytes(stream, file.stat().st_size))
        _check_settings(settings, tensors)
    values: Counter[str] = Counter()
    for tensor in tensors.values():
        values[tensor.dtype] += 0 if _is_plain(tensor.dtype) else tensor.size
    stored = {
        key: tensor if _is_plain(tensor.dtype) else StoredTensor(tensor.shape, "F32")
        for key, tensor in tensors.items()
    }
    packed = next((kind for kind, size in values.most_common(1) if size), None)
    return Contents(stored, packed=packed)


def _is_plain(kind: str) -> bool:
    """Whether a type stores each value by itself, as the types of safetensors do."""
    return kind in ("F64", "F32", "F16", "BF16", "I8", "I16", "I32", "I64")


@dataclass(slots=True)
class _Bytes:
    """The bytes of a file, none of which is read twice."""

    stream: BufferedReader
    size: int
    elements: int = 0
    """Number of elements in all arrays so far."""

    def take(self, count: int) -> bytes:
        if count > self.size - self.stream.tell():
            raise ValueError(f"the file ends within its header, after {self.size:,} bytes")
        return self.stream.read(count)

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def count(self, what: str, most: int, code: str = "Q") -> int:
        count: int = self.number(code)
        if count > most:
            raise ValueError(f"the header announces {count:,} {what}, more than {most:,}")
        return count

    def text(self, longest: int | None = None) -> str:
        return self.take(self.count("bytes of text", longest or self.size)).decode()

    def value(self, kind: int) -> Any:
        """A setting; of an array, only the number of elements."""
        if kind == _STRING:
            return self.text()
        return self._array() if kind == _ARRAY else self.number(_scalar(kind))

    def _array(self) -> int:
        kind: int = self.number("I")
        count = self.count("elements of arrays", _MOST_ELEMENTS - self.elements)
        self.elements += count
        if kind != _STRING:
            self.take(count * struct.calcsize(f"<{_scalar(kind)}"))
            return count
        for _ in range(count):
            self.text(_LONGEST_TOKEN)
        return count


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"the header holds a value of the unknown type {kind}")
    return _SCALARS[kind]


def _walk(header: _Bytes) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    """The settings and tensors of a file."""
    if (magic := header.take(4)) != _MAGIC:
        raise ValueError(f"the file begins with {magic!r}, not with {_MAGIC!r}")
    if (version := header.number("I")) not in _VERSIONS:
        raise ValueError(f"the file has version {version:,} of the format; expected 2 or 3")
    tensor_count = header.count("tensors", _MOST_ENTRIES)
    settings: dict[str, Any] = {}
    for _ in range(header.count("settings", _MOST_ENTRIES)):
        key = _new(header.text(), settings)
        kind = header.number("I")
        settings[key] = header.value(kind)
        if key == "general.alignment" and kind != _UINT32:
            raise ValueError("general.alignment has another type than uint32")
    tensors: dict[str, StoredTensor] = {}
    places: list[tuple[int, int]] = []
    for _ in range(tensor_count):
        key = _new(header.text(), tensors)
        tensors[key], place = _tensor(header, key)
        places.append(place)
    alignment = settings.get("general.alignment", 32)
    if alignment.bit_count() != 1:
        raise ValueError(f"general.alignment is {alignment}; expected a power of two")
    start = math.ceil(header.stream.tell() / alignment) * alignment
    end = 0
    for own_start, own_end in sorted(places):
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
    return settings, tensors


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


def _check_settings(settings: Mapping[str, Any], tensors: Mapping[str, StoredTensor]) -> None:
    """Check that the file is a whole model, whose size and rotary scaling transformers can read."""
    kind = settings.get("general.architecture")
    if not isinstance(kind, str):
        raise ValueError("the header names no general.architecture")
    if settings.get("split.count", 0) not in (0, 1):
        raise ValueError("it is a part of a split model; join the parts with llama-gguf-split")
    if not tensors:
        raise ValueError("it holds no tensors")
    limits = {"block_count": len(tensors), "expert_count": _MOST_EXPERTS}
    for key, most in limits.items():
        value = settings.get(f"{kind}.{key}", 0)
        if not isinstance(value, int) or value > most:
            raise ValueError(
                f"it specifies {key} = {one_line(str(value), 40)}, but holds {len(tensors):,} "
                "tensors"
            )
    scaled = [key for key in tensors if key.startswith(_ROPE)]
    if settings.get(f"{kind}.rope.scaling.type", "none") != "none" and kind not in _READ_SCALING:
        scaled.append(f"{kind}.rope.scaling.type")
    if scaled:
        raise ValueError(
            f"transformers ignores {one_line(scaled[0], 60)}, which scales rotary frequencies, and "
            "would compute other numbers than the model; pass the model's original folder"
        )


@contextmanager
def _read_once() -> Iterator[None]:
    """Within the block, headers and tensor names that were already read are not read again.

    Otherwise, transformers reads the header, with the whole vocabulary, for the configuration, the
    tokenizer and the weights, and makes the table of tensor names anew for every module.
    """
    import gguf

    known = gguf.GGUFReader, gguf.get_tensor_name_map
    vars(gguf).update(GGUFReader=_reader, get_tensor_name_map=cache(gguf.get_tensor_name_map))
    try:
        yield
    finally:
        vars(gguf).update(GGUFReader=known[0], get_tensor_name_map=known[1])


def _reader(path: str) -> Any:
    file = Path(path).resolve()
    status = file.stat()
    return _unchanged_reader(file, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1)
def _unchanged_reader(file: Path, *unused: int) -> Any:
    from gguf.gguf_reader import GGUFReader

    class Reader(GGUFReader):
        """Cuts an ordinary array: cutting a memory map takes several times as long."""

        data = property(
            lambda self: vars(self)["data"],
            lambda self, mapped: vars(self).update(data=mapped.view(np.ndarray)),
        )

    return Reader(file)


class GGUF(Format):
    """The format of GGUF files."""

    configuration = "its configuration"
    may_quantize = False

    def check_configuration(self, name: str, place: Path) -> None:
        """Check the header."""
        read_header(name, place)

    def read(self, name: str, place: Path, *, allow_pickle: bool) -> Contents:
        """Check the header."""
        return read_header(name, place)

    def checksum(self, name: str, place: Path, *, allow_pickle: bool) -> str:
        """A hash of the file."""
        return checksum(place.resolve())

    def unread(self, place: Path, *, allow_pickle: bool) -> str | None:
        """None, since nothing beside the file belongs to the model."""
        return None

    @contextmanager
    def readable(self, place: Path | str) -> Iterator[tuple[Path | str, dict[str, Any]]]:
        """A folder that holds the file alone.

        transformers would prefer a tokenizer or an adapter beside the file.
        """
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.gguf"
            file.symlink_to(Path(place).absolute())
            with _read_once():
                # The whole path, because transformers looks first in the working directory.
                yield Path(folder), {"gguf_file": str(file)}

    def options(self) -> dict[str, Any]:
        """The option with which transformers unpacks weights that it could keep in blocks."""
        # Its bar for this does not obey `disable_progress_bar`, unlike all others.
        vars(modeling_gguf_pytorch_utils)["tqdm"] = logging.tqdm
        # Older versions always unpack them, and have no such option.
        option: Any = getattr(quantization_config, "GgufConfig", None)
        return {} if option is None else {"quantization_config": option(dequantize=True)}

    def finish(self, name: str, hf: PreTrainedModel, contents: Contents) -> None:
        """Remove transformers' marks of quantization, since the weights are unpacked.

        transformers leaves out tensors without a word that it expects in no model of this
        architecture, such as those of layers beyond block_count, or biases.

        Raises:
            UserError: the file holds more numbers than the model.
        """
        _unchanged_reader.cache_clear()  # a header in memory takes kilobytes per token
        quantizer: Any = getattr(hf, "hf_quantizer", None)
        if quantizer is not None:
            quantizer.remove_quantization_config(hf)
        held = sum(tensor.size for tensor in contents.stored.values())
        kept = hf.state_dict().keys()
        own = (*hf.named_parameters(), *hf.named_buffers())
        used = sum(tensor.numel() for key, tensor in own if key in kept)
        if held > used:
            raise UserError(
                f"the GGUF file of {one_line(name)} holds {held:,} numbers, but a model with its "
                f"settings has only {used:,}, so transformers would ignore some; copy or download "
                "the file again, or pass the model's original folder"
            )

    def finish_tokenizer(self, tokenizer: Any) -> None:
        """Remove the tokens that transformers adds to the vocabulary of a file, which is whole.

        For a byte-level vocabulary, it builds GPT-2's tokenizer, which has a token <|endoftext|>.
        """
        backend = json.loads(tokenizer.backend_tokenizer.to_str())
        own = [token for token in backend["added_tokens"] if token["id"] < tokenizer.vocab_size]
        if len(own) < len(backend["added_tokens"]):
            changed = json.dumps(backend | {"added_tokens": own})
            tokenizer._tokenizer = Tokenizer.from_str(changed)


FORMAT = GGUF()
