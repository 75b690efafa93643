"""Folders of a training that was stopped at a checkpoint and then damaged, before it goes on."""

import pickle
from contextlib import suppress
from pathlib import Path
from random import Random

import torch

from interp.errors import UserError
from interp.training.folder import MANIFEST, declare_whole
from tests.fuzz.case import Case
from tests.fuzz.material import STOPPED, TRAINING, Material
from tests.fuzz.nasty import damage_node, values
from tests.fuzz.targets.run_folders import damage

_PICKLED = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin")
_PLACES = (
    "checkpoint-4",
    "checkpoint-5",
    "checkpoint-4/optimizer.pt",
    "checkpoint-99/model.safetensors",
    *(f"{STOPPED}/{name}" for name in _PICKLED),
    ".training",
    "claims/training.0",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
)


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """The same command again, in a damaged folder."""
    run = material.copy("training", folder / "run")
    words = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        kind = chance.choice((damage, _misplace, _exchange))
        words.append(kind(chance, run, material))
    if number % 3 == 0:
        words.append(_sign(run / STOPPED))
    return Case([*TRAINING, "--out", "run"], damage="; ".join(words))


def _misplace(chance: Random, run: Path, material: Material) -> str:
    """Something else in a place that training is about to read or write."""
    name = chance.choice(_PLACES)
    with suppress(FileExistsError, NotADirectoryError):  # an earlier damage has taken the place
        (run / name).parent.mkdir(exist_ok=True)
        return f"{name}: {damage_node(chance, run / name, material.outside)}"
    return ""


def _exchange(chance: Random, run: Path, material: Material) -> str:
    """A file that torch reads, with other content or with code."""
    name, value = chance.choice(_PICKLED), chance.choice(values(material.outside))
    with suppress(FileNotFoundError, NotADirectoryError):
        (run / STOPPED / name).unlink()
        if chance.random() < 0.5:
            torch.save(value, run / STOPPED / name)
            return f"{name} holds {value!r:.80}"
        (run / STOPPED / name).write_bytes(pickle.dumps(_Code(material.outside / "new")))
        return f"{name} holds code"
    return ""


class _Code:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.file,)


def _sign(checkpoint: Path) -> str:
    """Let the checkpoint's manifest say what is there now."""
    with suppress(UserError, OSError):
        (checkpoint / MANIFEST).unlink()
        declare_whole(checkpoint)
        return "signed"
    return "cannot be signed"
