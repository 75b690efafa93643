"""A training task that a tiny model learns in a few steps."""

from typing import ClassVar

from interp.models.load import load_model
from interp.models.loading import Loading
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt
from interp.training.run import Training
from interp.training.spec import Keeping, TrainSpec

CPU = Loading(device="cpu")

COLOURS = ("red", "blue", "green")
OPTIONS = tuple(AnswerOption(name, (name,)) for name in COLOURS)
THINGS = ("car", "hat", "door", "ball", "cup", "box")
NUMBERS = {"train": range(48), "dev": range(48, 60), "test": range(60, 72)}


class Colours(TrainSpec):
    """Read a colour from a sentence."""

    name: ClassVar[str] = "colours"

    def prompts(self, split):
        return [question(number) for number in NUMBERS[split]]


def question(number: int) -> Prompt:
    thing, colour = THINGS[number % 6], COLOURS[number // 6 % 3]
    return Prompt(
        id=f"q{number}",
        text=f"Number {number}: the {thing} is {colour}. Which colour has the {thing}?",
        segments={"question": (0, 6)},
        answer=Choice(OPTIONS, gold=colour),
        pair_id=f"q{number}",
        side="question",
        factors={},
    )


def train(start, out, *, spec, steps):
    """Train on the CPU, with a checkpoint every so many steps; give the record."""
    return Training(spec, str(start), CPU).run(Keeping(out=out, checkpoint_steps=steps))


def weights(folder):
    return load_model(str(folder), device="cpu").hf.state_dict()
