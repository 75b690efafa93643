"""Export of activations: one safetensors file per model, and an index of all vectors.

Shards are read twice, one at a time: vectors are counted, and then written at their places. A
safetensors file starts with the length of its header in 8 bytes, little-endian. The header, which
is JSON with the type, shape and offsets of each tensor, precedes the tensors
(https://huggingface.co/docs/safetensors).
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float32
from numpy import ndarray

from interp.errors import UserError
from interp.report.page import FigureItem, FileItem, TableItem
from interp.results.measured import InFolder
from interp.results.result import Result
from interp.runs.folder import RunFolder, slug
from interp.runs.shards import read_table
from interp.statistics.summaries import grouped
from interp.tables import SCHEMAS, activations_index, factors_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INDEX = "activations.parquet"

_TABLE = "activation_vectors"

_KEY = ["model", "site", "layer"]

_PLACE = [name for name in SCHEMAS[_TABLE].names if name != "vector"]

Part = tuple[str, Float32[ndarray, "row width"]]
"""A tensor's name and its next rows."""


class ActivationVectors(Result):
    """The vectors that were read; a run folder also holds them as safetensors files."""

    def items(self) -> Iterator[TableItem | FigureItem | FileItem]:
        """Counts of vectors by site, their mean norm in each layer, and files of all vectors."""
        sites = self._counts.groupby(["model", "site"], sort=False)
        # Every layer of a site has the same number of vectors.
        last = {name: (name, "last") for name in ("prompts", "vectors", "width")}
        table = sites.agg(layers=("layer", "size"), **last).reset_index()
        yield TableItem("activation_table", "Vectors of each layer, by model and site", table)
        yield FigureItem("norms", "Mean norm of the vectors", partial(_draw, self._counts))
        if isinstance(self.measured, InFolder):
            yield from _files(self.measured.run, self._counts)

    @cached_property
    def _counts(self) -> pd.DataFrame:
        return _counted(self.measured.parts(_TABLE, [*_KEY, "prompt_id", "vector"]))


def file_name(model: str) -> str:
    """The name of the file with a model's vectors."""
    return f"activations-{slug(model)}.safetensors"


def _counted(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One row per model, site and layer: width, vectors, prompts, norms (their sum)."""
    key = [*_KEY, "width"]
    each = [pd.DataFrame(columns=[*key, "vectors", "prompts", "norms"])]
    for part in parts:
        norms = part["vector"].map(lambda vector: np.linalg.norm(np.asarray(vector, dtype=float)))
        each_key = part.assign(width=part["vector"].map(len), norm=norms).groupby(key, sort=False)
        numbers = {"vectors": ("norm", "size"), "prompts": ("prompt_id", "nunique")}
        each.append(each_key.agg(**numbers, norms=("norm", "sum")).reset_index())
    counts = pd.concat(each[1:] or each).groupby(key, sort=False).sum().reset_index()
    for place, rows in grouped(counts[counts.duplicated(_KEY, keep=False)], _KEY):
        raise UserError(
            f"{place['model']} has vectors of widths {' and '.join(map(str, rows['width']))} at "
            f"{place['site']} of layer {place['layer']}; measure into another folder"
        )
    return counts


def _draw(counts: pd.DataFrame) -> "Axes":
    from interp.report.figures.lines import lines

    norms = counts["norms"] / counts["vectors"]
    table = counts.assign(mean_norm=norms, site=counts["model"] + ", " + counts["site"])
    return lines(table, x="layer", y="mean_norm", hue="site", n="vectors")


def _files(run: RunFolder, counts: pd.DataFrame) -> Iterator[FileItem]:
    """The vectors of each model as tensors; then the index, which refers to their rows."""
    models = run.finished_models()
    for model in models:
        rows = counts[counts["model"] == model]
        sizes = zip(rows["vectors"].tolist(), rows["width"].tolist(), strict=True)
        if len(rows):
            shapes = dict(zip(_tensors(rows), sizes, strict=True))
            yield FileItem(file_name(model), partial(_write_tensors, run, model, shapes))
    yield FileItem(INDEX, partial(_write_index, run, models))


def _write_tensors(
    run: RunFolder, model: str, shapes: Mapping[str, tuple[int, int]], file: Path
) -> None:
    parts = (
        part
        for shard in run.done(model)
        for part in _by_tensor(_read(run, model, shard, _TABLE, ["site", "layer", "vector"]))
    )
    fill_tensors(file, shapes, parts, about={"model": model, "index": INDEX})


def _by_tensor(shard: pa.Table) -> Iterator[Part]:
    vectors = shard["vector"].combine_chunks()
    names = _tensors(shard.select(["site", "layer"]).to_pandas())
    for name, rows in names.groupby(names, sort=False).indices.items():
        numbers = vectors.take(pa.array(rows)).flatten().to_numpy()
        yield str(name), numbers.reshape(len(rows), -1)


def _tensors(places: pd.DataFrame) -> pd.Series:
    """The names of the tensors of vectors, of which there is one for each site and layer."""
    return (places["site"] + "." + places["layer"].astype(str)).astype(object)


def _write_index(run: RunFolder, models: Sequence[str], file: Path) -> None:
    prompts = run.table("prompts")
    schema = activations_index(factors_of(prompts))
    with pq.ParquetWriter(file, schema) as writer:
        for model in models:
            for part in _index(run, model, prompts):
                table = pa.Table.from_pandas(part[schema.names], schema, preserve_index=False)
                writer.write_table(table)


def _index(run: RunFolder, model: str, prompts: pd.DataFrame) -> Iterator[pd.DataFrame]:
    counts = Counter[str]()
    for shard in run.done(model):
        places = _read(run, model, shard, _TABLE, _PLACE).to_pandas()
        answers = _read(run, model, shard, "answers", ["prompt_id", "answer", "correct"])
        tensors = _tensors(places)
        rows = tensors.map(lambda name: counts[name]) + tensors.groupby(tensors).cumcount()
        counts.update(tensors)
        places = places.assign(file=file_name(model), tensor=tensors, row=rows)
        for other in (answers.to_pandas(), prompts):
            if not places["prompt_id"].isin(other["prompt_id"]).all():
                raise UserError(
                    "some vectors belong to prompts that are not in the run; measure them again"
                )
            new = other[["prompt_id", *(name for name in other if name not in places)]]
            places = places.merge(new, on="prompt_id", how="left")
        yield places


def _read(run: RunFolder, model: str, shard: Path, name: str, columns: Sequence[str]) -> pa.Table:
    return read_table(shard, name, run.models()[model].tables[name], columns=columns)


def fill_tensors(
    file: Path,
    shapes: Mapping[str, tuple[int, int]],
    parts: Iterable[Part],
    *,
    about: Mapping[str, str],
) -> None:
    """Write tensors in fp32, (rows, width), as their rows arrive.

    `parts` are names of tensors, each with its next rows; `about` is the file's metadata.
    """
    sizes = [4 * rows * width for rows, width in shapes.values()]
    ends = dict(zip(shapes, accumulate(sizes), strict=True))
    written = {name: ends[name] - size for name, size in zip(shapes, sizes, strict=True)}
    entries = {
        name: {"dtype": "F32", "shape": list(shape), "data_offsets": [written[name], ends[name]]}
        for name, shape in shapes.items()
    }
    header = json.dumps({"__metadata__": dict(about), **entries}).encode()
    header += b" " * (-len(header) % 8)  # so that tensors are aligned
    with file.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        data = stream.tell()
        for name, rows_of_part in parts:
            content = np.ascontiguousarray(rows_of_part, dtype="<f4").tobytes()
            fits = rows_of_part.shape[1] == shapes[name][1]
            if not fits or written[name] + len(content) > ends[name]:
                raise ValueError(f"{name} has rows that do not match its shape {shapes[name]}")
            stream.seek(data + written[name])
            stream.write(content)
            written[name] += len(content)
    if written != ends:
        raise ValueError("some tensors lack rows")
