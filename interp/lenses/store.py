"""Fitted lenses on disk: the rows of a word are fitted once for a model, and never again.

A lens is a folder, named by a hash of everything that its numbers depend on (`LensRecord`), with a
file for each word: the sum of its rows over the first texts of the corpus, at all layers, and the
number of these texts. Files are written after every batch of texts, so a fit that was interrupted
goes on where it ended. While one process fits, others that need the same lens wait.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import torch
from jaxtyping import Float, Int, UInt8
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from interp.console import Progress
from interp.errors import UserError
from interp.files import inside, locked, make_folder, read_bytes, user_cache, write_whole, writing
from interp.lenses.corpus import corpus_hash
from interp.lenses.final import unembedding_rows
from interp.lenses.rows import (
    EMBEDDING,
    FIRST,
    LensRows,
    check_layers,
    logit_rows,
    own_rows,
    read_texts,
    summed_rows,
)
from interp.models.model import Model
from interp.models.sites import layer_count
from interp.reading.budget import GPU_GRADIENT_TOKENS, TokenBudget, token_budget
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.runs.identity import code_version
from interp.runs.records import Count, Hash, Record, Text, read_record, write_record

RECORD = "lens.json"

_LOCK = "fit"

_HEADER = 4096
"""Room for the header of a file, in bytes."""


class LensRecord(Record):
    """lens.json: everything that the numbers of a lens depend on."""

    model: Text
    """`Model.identity`."""
    dtype: Text
    quantization: Text | None
    attn_implementation: Text
    corpus: Hash
    """Hash of the texts."""
    texts: Count
    """Number of texts that are long enough."""
    first: Count
    """Number of tokens at the beginning of a text that do not count."""
    layers: Count
    width: Count
    code: Hash

    @property
    def name(self) -> str:
        """Name of the lens's folder."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of a word, summed over the first texts."""

    rows: Float[Tensor, "layer width"]
    texts: int


@dataclass(frozen=True, slots=True)
class _Lens:
    folder: Path
    record: LensRecord

    def _file(self, word: int) -> Path:
        return inside(self.folder, f"{word}.safetensors")

    def write(self, word: int, part: _Part) -> None:
        """Keep what is known of a word's rows."""
        rows, texts = part.rows.contiguous(), torch.tensor(part.texts)
        tensors = {"rows": rows, "texts": texts, "sha256": _checksum(rows, texts)}
        write_whole(self._file(word), partial(save_file, tensors))

    def part(self, word: int) -> _Part:
        """What is known of a word's rows; zeros if nothing is."""
        file, shape = self._file(word), (self.record.layers, self.record.width)
        dtype = torch.float64 if self.record.dtype == "float64" else torch.float32
        try:
            content = read_bytes(file, limit=math.prod(shape) * dtype.itemsize + _HEADER)
        except FileNotFoundError:
            return _Part(torch.zeros(shape, dtype=dtype), 0)
        with suppress(SafetensorError, KeyError):
            tensors = load(content)
            rows, texts, checksum = (tensors[name] for name in ("rows", "texts", "sha256"))
            fits = rows.shape == shape and rows.dtype == dtype and texts.dtype == torch.int64
            if fits and texts.shape == () and torch.equal(checksum, _checksum(rows, texts)):
                number = int(texts)
                if 0 < number <= self.record.texts and bool(rows.isfinite().all()):
                    return _Part(rows, number)
        raise UserError(
            f"{file} is damaged, or is not a file of this lens; remove it, and its word is fitted "
            "again"
        )


def cache_folder() -> Path:
    """The folder in which lenses are kept."""
    return user_cache() / "lenses"


def fitted(
    model: Model,
    token_ids: Sequence[int],
    layers: Sequence[int],
    texts: Sequence[str],
    *,
    folder: Path | None = None,
    batch_tokens: int | None = None,
) -> LensRows:
    """The rows of the Jacobian lens (`lenses.rows`), fitted now or read from disk.

    They are on the CPU, in fp32 (fp64 for fp64 models). Words are known by their (first) tokens;
    the layers are those behind which the stream is read (`EMBEDDING` for the embeddings). Texts
    without a token that counts are left out. Lenses are kept in `cache_folder` by default.

    Raises:
        UserError: the model has no lens or layer, no text is long enough, or a file is damaged.
    """
    check_layers(model, layers)
    directions = unembedding_rows(model, token_ids)
    read = read_texts(model, texts)
    record = LensRecord(
        model=model.identity,
        dtype=model.dtype,
        quantization=model.quantization,
        attn_implementation=model.attn_implementation,
        corpus=corpus_hash(texts),
        texts=len(read),
        first=FIRST,
        layers=layer_count(model) + 1,
        width=directions.shape[1],
        code=code_version(("interp.lenses.rows",)),
    )
    lens = _opened(folder or cache_folder(), record)
    parts = [lens.part(word) for word in token_ids]
    if any(part.texts < len(read) for part in parts):
        budget = token_budget(model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS)
        with locked(lens.folder, _LOCK):
            _fit(model, lens, dict(zip(token_ids, directions, strict=True)), read, budget)
        parts = [lens.part(word) for word in token_ids]
    rows = torch.stack([part.rows for part in parts], 1) / len(read)
    return rows[[layer - EMBEDDING for layer in layers]]


class LensOfWords:
    """Rows of words in one kind of lens: jacobian (fitted on texts or read, once), own or logit."""

    def __init__(
        self,
        model: Model,
        kind: str,
        layers: Sequence[int],
        *,
        texts: Sequence[str],
        batch_tokens: int | None = None,
    ) -> None:
        self._model, self._kind, self._layers = model, kind, layers
        self._texts, self._batch_tokens = texts, batch_tokens
        self._fitted: dict[int, Float[Tensor, "layer width"]] = {}

    def fit(self, tokens: Iterable[int]) -> None:
        """Fit or read the rows of all words at once, given by their tokens."""
        new = [token for token in dict.fromkeys(tokens) if token not in self._fitted]
        if new and self._kind == "jacobian":
            rows = fitted(
                self._model, new, self._layers, self._texts, batch_tokens=self._batch_tokens
            )
            self._fitted |= dict(zip(new, rows.unbind(1), strict=True))

    def rows(
        self, tokens: Sequence[int], batch: Batch, places: Sequence[tuple[int, int]]
    ) -> Tensor:
        """Rows, (layer, word, width) or, for `own`, at the places, (layer, word, place, width)."""
        if self._kind == "logit":
            return logit_rows(self._model, tokens, self._layers)
        if self._kind == "own":
            at = [(row, (batch.unpadded(row).start or 0) + token) for row, token in places]
            return own_rows(self._model, batch, tokens, self._layers, at)
        self.fit(tokens)
        return torch.stack([self._fitted[token] for token in tokens], 1)


def _opened(folder: Path, record: LensRecord) -> _Lens:
    """The lens with its record, in a folder that is created if missing."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lens = make_folder(folder, record.name)
    file = inside(lens, RECORD)
    stored = read_record(file, LensRecord)
    if stored is None:
        write_record(file, record)
    elif stored != record:
        raise UserError(f"{lens} is not the lens that its name says; remove it")
    return _Lens(lens, record)


def _fit(
    model: Model,
    lens: _Lens,
    directions: Mapping[int, Float[Tensor, " width"]],
    texts: Sequence[TokenizedPrompt],
    budget: TokenBudget,
) -> None:
    """Fit all words for which not all texts have been read, each from where it ended."""
    parts = {word: lens.part(word) for word in directions}
    missing = {word: part for word, part in parts.items() if part.texts < len(texts)}
    layers = range(EMBEDDING, lens.record.layers + EMBEDDING)
    total = sum(len(texts) - part.texts for part in missing.values())

    def begun(word: int) -> int:
        return missing[word].texts

    with Progress(f"lens {model.name}", total=total, unit="rows") as progress:
        for start, group in groupby(sorted(missing, key=begun), key=begun):
            words = list(group)
            vectors = torch.stack([directions[word] for word in words])
            for number, rows in summed_rows(model, texts[start:], vectors, layers, budget=budget):
                for place, word in enumerate(words):
                    part = missing[word]
                    missing[word] = _Part(part.rows + rows[:, place], part.texts + number)
                    lens.write(word, missing[word])
                progress.advance(number * len(words))


def _checksum(rows: Float[Tensor, "layer width"], texts: Int[Tensor, ""]) -> UInt8[Tensor, " 32"]:
    digest = hashlib.sha256(rows.contiguous().numpy().tobytes() + texts.numpy().tobytes())
    return torch.tensor(list(digest.digest()), dtype=torch.uint8)
