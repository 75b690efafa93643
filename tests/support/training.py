"""A training task that a tiny model learns in a few steps, and handmade records of trainings."""

import json
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn
from torch.utils.data import Dataset

from interp.models.load import load_model
from interp.models.loading import Loading
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt
from interp.runs.records import read_record
from interp.training.fit import fit
from interp.training.folder import RECORD, TrainRecord
from interp.training.run import Training
from interp.training.spec import CheckpointOptions, TrainSpec
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

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


class Steps(Dataset):
    """Batches that say which step they are for."""

    def __len__(self):
        return 5

    def __getitem__(self, step):
        return {"input_ids": torch.tensor([[step + 1, 2, 3]])}


def next_token_loss(model, batch):
    ids = batch["input_ids"]
    logits = model(input_ids=ids).logits
    return nn.functional.cross_entropy(logits[0, :-1], ids[0, 1:])


def stopping(model, batch):
    """A loss whose fourth step is interrupted."""
    if int(batch["input_ids"][0, 0]) == 4:
        raise KeyboardInterrupt
    return next_token_loss(model, batch)


def noting(seen):
    """A loss that notes the number of each step."""

    def loss(model, batch):
        seen.append(int(batch["input_ids"][0, 0]))
        return next_token_loss(model, batch)

    return loss


def learn(folder, loss=next_token_loss, *, save_steps=2):
    """Fit a tiny model to `Steps`; returns it."""
    model = make_tiny("llama", byte_level()).hf
    options = {"title": "learn", "use_cpu": True, "learning_rate": 1e-2}
    fit(model, Steps(), loss, folder, save_steps=save_steps, **options)
    return model


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
