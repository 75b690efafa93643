"""Safetensors files that are filled piece by piece, so that no tensor is held as a whole.

The format: the length of the header as 8 bytes, little-endian; the header, JSON that names each
tensor's type, shape and place; the tensors one after the other. Source:
https://huggingface.co/docs/safetensors.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

Part = tuple[str, Float32[ndarray, "row width"]]
"""The next rows of a tensor, with its name."""

_ALIGNED = 8
"""Bytes of which the header's length is a multiple, so that tensors are aligned."""


def fill_tensors(
    file: Path,
    shapes: Mapping[str, tuple[int, int]],
    parts: Iterable[Part],
    *,
    about: Mapping[str, str],
) -> None:
    """Write tensors in fp32, (rows, width), as their rows come.

    Args:
        file: what is written.
        shapes: of each tensor, by name.
        parts: rows of the tensors, those of one tensor in order.
        about: what the file says of itself.

    Raises:
        ValueError: the parts are other rows than the shapes say.
    """
    places: dict[str, tuple[int, int]] = {}
    end = 0
    for name, (rows, width) in shapes.items():
        places[name] = end, end + 4 * rows * width
        end = places[name][1]
    entries = {
        name: {"dtype": "F32", "shape": list(shape), "data_offsets": list(places[name])}
        for name, shape in shapes.items()
    }
    header = json.dumps({"__metadata__": dict(about), **entries}).encode()
    header += b" " * (-len(header) % _ALIGNED)
    written = {name: start for name, (start, _) in places.items()}
    with file.open("wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        data = stream.tell()
        for name, rows_of_part in parts:
            content = np.ascontiguousarray(rows_of_part, dtype="<f4").tobytes()
            if (
                rows_of_part.shape[1] != shapes[name][1]
                or written[name] + len(content) > places[name][1]
            ):
                raise ValueError(f"{name} has other rows than its shape {shapes[name]} says")
            stream.seek(data + written[name])
            stream.write(content)
            written[name] += len(content)
    if written != {name: end for name, (_, end) in places.items()}:
        raise ValueError("some tensors lack rows")
