"""MIB's IOI and addition tasks as systems, with the counterfactuals from its circuit track.

Rows have the columns of the published data sets (mib-bench/ioi, mib-bench/arithmetic_addition;
Mueller et al. 2025), whether they are generated here, with our own sentences, or read from those
data sets. The metric is MIB's: the logit of the prompt's answer minus that of the counterfactual's
answer.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from interp import AnswerOption, Choice, Prompt, PromptSet, System, UserError
from interp.extend import Span, one_line
from interp.extend.data import Row, parse_each, read_rows
from interp_experiments.chance import below, happens, pick, some

if TYPE_CHECKING:
    import pandas as pd

PAIRS = 1000
"""Number of generated pairs."""

SIDES = ("prompt", "counterfactual")

NAMES = (
    "Alice", "Andrew", "Anna", "Brian", "Clara", "David", "Emma", "Frank", "George", "Henry",
    "Jack", "James", "Julia", "Laura", "Lisa", "Maria", "Mark", "Paul", "Peter", "Sarah", "Simon",
    "Tom",
)  # fmt: skip
PLACES = ("beach", "office", "library", "museum", "station", "farm", "market", "church")
OBJECTS = ("ticket", "basket", "letter", "book", "key", "lamp", "map", "coat")
SCENES = (
    "When {first} and {second} came to the {place}, {subject} handed a {object} to",
    "{first} and {second} spent the day at the {place}, where {subject} gave a {object} to",
    "After {first} met {second} at the {place}, {subject} offered a {object} to",
    "Once {first} and {second} had left the {place}, {subject} sent a {object} to",
)
SUMS = ("{} plus {} is ", "The sum of {} and {} is ", "Adding {} to {} gives ")

Text = Annotated[str, Field(min_length=1, max_length=10_000)]


class _Names(BaseModel):
    indirect_object: Text
    subject: Text


class _Prompt(BaseModel):
    prompt: Text


class _Ioi(BaseModel):
    template: Text
    prompt: Text
    metadata: _Names
    s2_io_flip_counterfactual: _Prompt


class _Sum(_Prompt):
    label: Text | int


class _Addition(_Sum):
    template: Text
    random_counterfactual: _Sum | None


class _Pair(NamedTuple):
    """What a row says about a prompt and its counterfactual."""

    texts: tuple[str, str]
    answers: tuple[str, str]
    roles: Sequence[Mapping[str, Span]] = ({}, {})


@dataclass(frozen=True)
class MibTask(System):
    """Pairs of a prompt and its counterfactual."""

    name: str
    schema: type[_Ioi | _Addition]
    """The columns to read from MIB's data."""
    row: Callable[[random.Random], dict[str, object]]
    """Function that generates a row with MIB's columns."""
    pair: Callable[[Any], _Pair | None]
    """Function that reads a row; it returns None if MIB has no counterfactual for the row."""

    default_limit = 100

    def rows(self, seed: int) -> list[dict[str, object]]:
        """All generated rows."""
        return [self.row(random.Random(f"{self.name} {seed} {n}")) for n in range(PAIRS)]

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts, either generated from `seed` or read from MIB's own data.

        Raises:
            UserError: the data cannot be read.
        """
        if data is None:
            rows = [Row(f"row {n}", cells) for n, cells in enumerate(self.rows(seed))]
        else:
            rows = read_rows(data, tuple(self.schema.model_fields), nested=True)
        numbered = [(row.where, (number, row.cells)) for number, row in enumerate(rows)]
        made = [p for pair in parse_each(numbered, lambda item: self._sides(*item)) for p in pair]
        return PromptSet(
            system=self.name,
            sides=SIDES,
            strata=("template",),
            build=made.__getitem__,
            numbers=range(len(made)),
            seed=seed,
            description={"data": "generated" if data is None else data},
        )

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """All generated rows with MIB's columns."""
        import pandas as pd

        return pd.DataFrame(self.rows(seed))

    def _sides(self, number: int, cells: Mapping[str, object]) -> list[Prompt]:
        """A prompt and its counterfactual, each with its answer."""
        try:
            row = self.schema.model_validate(cells)
        except ValidationError as error:
            told = one_line(str(error), 200)
            raise UserError(f"the row does not have MIB's format: {told}") from error
        pair = self.pair(row)
        if pair is None:
            return []
        first, second = (AnswerOption(answer, (answer,)) for answer in pair.answers)
        return [
            Prompt(
                id=f"{self.name}/{number}/{side}",
                text=text,
                segments={"sentence": (0, len(text.rstrip()))},
                answer=Choice.between(first, second, gold=side == SIDES[0]),
                pair_id=f"{self.name}/{number}",
                side=side,
                factors={"template": row.template},
                roles=roles,
            )
            for side, text, roles in zip(SIDES, pair.texts, pair.roles, strict=True)
        ]


def _scene(rng: random.Random) -> dict[str, object]:
    """A scene of two people in random order, a place and an object, and three unused names."""
    receiver, subject, *others = some(rng, NAMES, 5)
    place, given, template = (pick(rng, items) for items in (PLACES, OBJECTS, SCENES))
    first, second = (receiver, subject) if happens(rng, 0.5) else (subject, receiver)

    def told(giver: str) -> str:
        return template.format(first=first, second=second, subject=giver, place=place, object=given)

    names = dict(zip(("random_a", "random_b", "random_c"), others, strict=True))
    people = {"indirect_object": receiver, "subject": subject}
    choices = [receiver, subject]
    return {
        "template": template,
        "metadata": {**people, "object": given, "place": place, **names},
        "prompt": told(subject),
        "choices": choices,
        "answerKey": 0,
        "s2_io_flip_counterfactual": {"prompt": told(receiver), "choices": choices, "answerKey": 1},
    }


def _people(row: _Ioi) -> _Pair:
    """The prompts of a row, with the occurrences of names as roles name1, name2 and name3."""
    answers = (row.metadata.indirect_object, row.metadata.subject)
    texts = (row.prompt, row.s2_io_flip_counterfactual.prompt)
    return _Pair(texts, answers, [_places(text, answers) for text in texts])


ioi = MibTask("mib-ioi", _Ioi, _scene, _people)
"""Indirect object identification: the answer is the name that occurs once (Wang et al. 2023).

The counterfactual repeats the other name instead (MIB's s2_io_flip), so its answer is the prompt's
subject.
"""


def _sums(rng: random.Random) -> dict[str, object]:
    """Two sums with the same wording."""
    template, operands = pick(rng, SUMS), [10 + below(rng, 90) for _ in range(4)]
    while str(sum(operands[:2]))[0] == str(sum(operands[2:]))[0]:
        operands[2:] = [10 + below(rng, 90) for _ in range(2)]
    one, other = (
        {"prompt": template.format(a, b), "label": a + b, "operand1": a, "operand2": b}
        for a, b in (operands[:2], operands[2:])
    )
    labels = {"label": str(one["label"]), "operator": "+", "num_digit": 2}
    return {"template": template, **one, **labels, "random_counterfactual": other}


def _added(row: _Addition) -> _Pair | None:
    """The prompts of a row; none if it lacks a counterfactual or both sums are equal."""
    other = row.random_counterfactual
    if other is None or str(other.label) == str(row.label):
        return None
    return _Pair((row.prompt, other.prompt), (str(row.label), str(other.label)))


addition = MibTask("mib-addition", _Addition, _sums, _added)
"""Sums of two two-digit numbers; the counterfactual is another sum (MIB's "random").

Prompts end in a space, so answers consist only of digits. The two sums of a generated row begin
with different digits, so their first tokens differ even if each digit is a token.
"""


def _places(text: str, names: Sequence[str]) -> dict[str, Span]:
    """The spans of the names in a text, numbered in order of occurrence."""
    occurrences = re.finditer("|".join(rf"\b{re.escape(name)}\b" for name in names), text)
    return {f"name{number}": name.span() for number, name in enumerate(occurrences, start=1)}
