"""Model folders whose configuration, tokenizer or weights are damaged."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.fuzz.case import Case
from tests.fuzz.material import Material
from tests.fuzz.nasty import damage_bytes, damage_json, damage_node

_COMMANDS = (
    ("evaluate",),
    ("evaluate",),
    ("attribute",),
    ("patch", "--layers", "0"),
    ("probe", "linear"),
)
_WEIGHTS = "model.safetensors"


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that loads a damaged model."""
    model = material.copy("model", folder / "model")
    kinds = tuple(_DAMAGES)
    kind = kinds[number % len(kinds)]
    words = _DAMAGES[kind](chance, model, material)
    command = chance.choice(_COMMANDS)
    fixed = ["--data", str(material.data), "--limit", "2", "--device", "cpu", "--out", "out"]
    refused = kind in ("lacking tensors", "renamed tensors")
    return Case([*command, "--model", "model", *fixed], damage=f"{kind}: {words}", refused=refused)


def _json(name: str) -> Callable[[Random, Path, Material], str]:
    def damage(chance: Random, model: Path, material: Material) -> str:
        file = model / name
        text, words = damage_json(chance, file.read_text(encoding="utf-8"), material.outside)
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        return words

    return damage


def _bytes(chance: Random, model: Path, material: Material) -> str:
    file = chance.choice(sorted(model.iterdir()))
    content, words = damage_bytes(chance, file.read_bytes())
    file.write_bytes(content)
    return f"{file.name} {words}"


def _node(chance: Random, model: Path, material: Material) -> str:
    file = chance.choice(sorted(model.iterdir()))
    return f"{file.name} {damage_node(chance, file, material.outside)}"


def _header(chance: Random, model: Path, material: Material) -> str:
    """The JSON in front of the weights: types, shapes and offsets."""
    file = model / _WEIGHTS
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    text, words = damage_json(chance, content[8 : 8 + length].decode(), material.outside)
    header = text.encode(errors="surrogatepass")
    size = chance.choice((len(header), len(header), len(header), 0, length, 2**63))
    file.write_bytes(struct.pack("<Q", size) + header + content[8 + length :])
    return words


def _lacking(chance: Random, model: Path, material: Material) -> str:
    tensors = load_file(model / _WEIGHTS)
    gone = chance.sample(sorted(tensors), chance.choice((1, 1, 2, len(tensors))))
    kept = {name: tensor for name, tensor in tensors.items() if name not in gone}
    save_file(kept, model / _WEIGHTS, metadata={"format": "pt"})
    return f"{gone}"[:200]


def _renamed(chance: Random, model: Path, material: Material) -> str:
    prefix = chance.choice(("module.", "base_model.model.", "x"))
    tensors = {f"{prefix}{name}": tensor for name, tensor in load_file(model / _WEIGHTS).items()}
    save_file(tensors, model / _WEIGHTS, metadata={"format": "pt"})
    return prefix


def _shapes(chance: Random, model: Path, material: Material) -> str:
    tensors = load_file(model / _WEIGHTS)
    name = chance.choice(sorted(tensors))
    kind = chance.choice(tuple(_OTHER_SHAPES))
    tensors[name] = _OTHER_SHAPES[kind](tensors[name]).contiguous()
    save_file(tensors, model / _WEIGHTS, metadata={"format": "pt"})
    return f"{name} {kind}"


def _index(chance: Random, model: Path, material: Material) -> str:
    """The weights in a file that an index names, and the index damaged."""
    file = chance.choice(("part.safetensors", "../part.safetensors", "part.bin"))
    names = sorted(load_file(model / _WEIGHTS))
    (model / _WEIGHTS).rename(model / file)
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, file)}
    text, words = damage_json(chance, json.dumps(index), material.outside)
    if chance.random() < 0.3:
        text, words = json.dumps(index), "as it should be"
    index_file = model / f"{_WEIGHTS}.index.json"
    index_file.write_text(text, encoding="utf-8", errors="surrogatepass")
    return f"{file}: {words}"


_OTHER_SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "half": lambda tensor: tensor[: len(tensor) // 2],
    "flat": Tensor.flatten,
    "one more dimension": lambda tensor: tensor[None],
    "double precision": Tensor.double,
    "whole numbers": Tensor.char,
    "undefined": lambda tensor: tensor * float("nan"),
    "infinite": lambda tensor: tensor * float("inf"),
}

_DAMAGES: dict[str, Callable[[Random, Path, Material], str]] = {
    "config": _json("config.json"),
    "config again": _json("config.json"),
    "tokenizer": _json("tokenizer.json"),
    "tokenizer_config": _json("tokenizer_config.json"),
    "bytes": _bytes,
    "node": _node,
    "header": _header,
    "lacking tensors": _lacking,
    "renamed tensors": _renamed,
    "shapes": _shapes,
    "index": _index,
}
