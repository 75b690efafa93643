"""A training task that a tiny model learns in a few steps, and handmade records of trainings."""

import json
from pathlib import Path
from typing import ClassVar

from interp.models.load import load_model
from interp.models.loading import Loading
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt
from interp.runs.records import read_record
from interp.training.folder import RECORD, TrainRecord
from interp.training.run import Training
from interp.training.spec import CheckpointOptions, TrainSpec

CPU = Loading(device="cpu")

COLOURS = ("red", "blue", "green")
OPTIONS = tuple(AnswerOption(name, (name,)) for name in COLOURS)
THINGS = ("car", "hat", "door", "ball", "cup", "box")
NUMBERS = {"train": range(48), "dev": range(48, 60), "test": range(60, 72)}


class Colors(TrainSpec):
    """Read a color from a sentence."""

    name: ClassVar[str] = "colors"

    def prompts(self, split):
        return [question(number) for number in NUMBERS[split]]


def question(number: int) -> Prompt:
    thing, color = THINGS[number % 6], COLOURS[number // 6 % 3]
    return Prompt(
        id=f"q{number}",
        text=f"Number {number}: the {thing} is {color}. Which colour has the {thing}?",
        segments={"question": (0, 6)},
        answer=Choice(OPTIONS, gold=color),
        pair_id=f"q{number}",
        side="question",
        factors={},
    )


def train(start, out, *, spec, steps):
    """Train on the CPU, with a checkpoint every `steps` steps; returns the record."""
    return Training(spec, str(start), CPU).run(CheckpointOptions(out=out, checkpoint_steps=steps))


def write_training(folder: Path, *, task, options, model, finished="now") -> str:
    """Make a model folder with only the record of its training; returns its name."""
    record = {
        "training": {
            "task": task,
            "options": options,
            "model": model,
            "origin": {},
            "lessons": 1,
            "data": "0" * 64,
            "code": "0" * 64,
        },
        "too_long": 0,
        "steps": 1,
        "parameters": 1,
        "history": [],
        "finished": finished,
        "metrics": {"dev": {"prompts": 1}} if finished else {},
    }
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / RECORD).write_text(json.dumps(record))
    assert read_record(folder / RECORD, TrainRecord) is not None
    return str(folder)


def weights(folder):
    return load_model(str(folder), device="cpu").hf.state_dict()
