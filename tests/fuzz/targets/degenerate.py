"""Valid use at its edges: one pair, constant or undefined outputs, prompts that all fail."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pandas as pd
from safetensors.torch import load_file, save_file

from tests.fuzz.case import Case
from tests.fuzz.material import Material

_COMMANDS = (
    ("evaluate",),
    ("attribute",),
    ("attribute", "--keep-tokens", "--target", "contrast"),
    ("attribute", "--methods", "attention", "--target", "gold"),
    ("patch", "--layers", "0"),
    ("patch", "--estimate", "gradient", "--verify", "2"),
    ("patch", "--sites", "z,pattern", "--granularity", "position"),
    ("patch", "--sites", "attn_out", "--direction", "noising", "--granularity", "all"),
    ("probe", "familiarity"),
    ("probe", "knowledge"),
    ("probe", "linear"),
    ("run", "rulebreakers"),
)
_OPTIONS = (
    (),
    ("--fail-on-error", "1"),
    ("--batch-tokens", "1"),
    ("--dtype", "float64"),
    ("--dtype", "bfloat16"),
    ("--attn-implementation", "eager"),
    ("--seed", "7"),
)


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command on an odd model and odd data."""
    command = _COMMANDS[number % len(_COMMANDS)]
    weights, data = chance.choice(tuple(_MODELS)), chance.choice(tuple(_DATA))
    model = material.copy("model", folder / "model")
    _MODELS[weights](model)
    _DATA[data](material.frame()).to_csv(folder / "data.csv", index=False)
    limit = ["--limit", chance.choice(("1", "2", "3", "all"))]
    argv = [*command, "--model", "model", "--data", "data.csv", "--device", "cpu", "--out", "out"]
    argv += [] if command[-1] in ("familiarity", "knowledge") else limit
    options = chance.choice(_OPTIONS)
    if not (command[0] in ("run", "probe") and "--seed" in options):
        argv += options
    return Case(argv, damage=f"{weights} model, {data}")


def _scaled(factor: float) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        file = model / "model.safetensors"
        tensors = {name: tensor * factor for name, tensor in load_file(file).items()}
        save_file(tensors, file, metadata={"format": "pt"})

    return change


def _configured(**options: object) -> Callable[[Path], None]:
    def change(model: Path) -> None:
        file = model / "config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**config, **options}), encoding="utf-8")

    return change


_MODELS: dict[str, Callable[[Path], None]] = {
    "random": lambda model: None,
    "constant": _scaled(0.0),
    "undefined": _scaled(float("nan")),
    "infinite": _scaled(1e30),
    "weak": _scaled(1e-6),
    "short of context": _configured(max_position_embeddings=16),
    "almost short of context": _configured(max_position_embeddings=100),
    "half precision": _configured(dtype="float16"),
}

_DATA: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "one pair": lambda frame: frame.head(2),
    "two pairs": lambda frame: frame.head(4),
    "all": lambda frame: frame,
    "one rule": lambda frame: frame[frame["rulebreaker_type"] == frame["rulebreaker_type"].iloc[0]],
    "long premises": lambda frame: frame.assign(premise1=frame["premise1"] + " and so on" * 300),
    "long names": lambda frame: frame.replace(
        {"firstName": {name: name * 40 for name in frame["firstName"]}}
    ),
    "no ASCII": lambda frame: frame.map(
        lambda value: value.replace("a", "ä") if isinstance(value, str) and " " in value else value
    ),
    "one verb": lambda frame: frame[frame["verb"] == frame["verb"].iloc[0]],
}
