"""A user's own pairs, from a file or a table in memory, as a prompt set.

All faults are reported, with their lines, before anything is measured.
"""

import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from interp.choices import OWN_PAIRS
from interp.errors import UserError, shortened
from interp.prompts.files import SHOWN, Row, read_rows
from interp.prompts.own.layout import PAIR, PHRASING, REQUIRED, Layout
from interp.prompts.prompt import Donor, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System

PREMISES = ("premise2", "premise1")
"""Segments whose scores are compared if a table has both, the first over the second."""

EXAMPLE = pd.DataFrame(
    [
        (pair, side, gold, "Yes|No", f"All {kind} are {what}.", f"{name} is a {one}.", question)
        for pair, (kind, what, name, one, other) in enumerate(
            [
                ("sparrows", "birds", "Pip", "sparrow", "trout"),
                ("pines", "trees", "Goliath", "pine", "fern"),
                ("violins", "instruments", "Vesper", "violin", "teapot"),
                ("poodles", "dogs", "Rex", "poodle", "parrot"),
            ],
            start=1,
        )
        for side, gold, one, question in (
            ("follows", "Yes", one, f"Does it follow that {name} is one of the {what}?"),
            ("does_not", "No", other, f"Does it follow that {name} is one of the {what}?"),
        )
    ],
    columns=["pair", "side", "gold", "options", "premise1", "premise2", "question"],
)
"""A table to begin with."""


def read_pairs(source: str | Path | pd.DataFrame, *, templates: Sequence[str] = ()) -> PromptSet:
    r"""Pairs, or larger groups of variants, from a table with one row per prompt.

    Columns: pair: the name shared by the members of a group. side: the name of the member; every
        group has one prompt for each side. gold: the correct option. options: the options,
        separated by "|", each with its surface forms separated by "/", of
            which the first is its name; "Yes|No" if there is no such column.
        text: the prompt, with marked segments: "<premise1>It rains.</premise1> Is it wet?".
            All other columns are factors.

    Instead of `text`, each segment may have its own column, such as premise1, premise2 and
    question. Segments are written one per line, in the order of the columns, without empty cells.
    Columns whose names begin with `factor_` are factors, one column each in the tables.

    Args:
        source: a CSV, JSON, JSONL or Parquet file, a folder of them, or a data frame.
        templates: phrasings that compose the segments instead, such as ``"{premise1}
            {premise2}\n{question}"``; each phrasing yields separate prompts, under the factor
            phrasing, and columns that no template names are factors.

    Raises:
        UserError: the table cannot be read, or has faults; the message quotes the first few.
    """
    prompts, found = _read(source, templates)
    if len(found) > 1:
        raise UserError("\n  ".join([f"{len(found):,} faults, the first:", *found[:SHOWN]]))
    if found:
        raise UserError(found[0])
    return _as_set(prompts, source)


def faults(source: str | Path | pd.DataFrame, *, templates: Sequence[str] = ()) -> list[str]:
    """A line about each fault in a table of pairs, with its location.

    Raises: UserError: the table cannot be read at all, or its columns are invalid.
    """
    return _read(source, templates)[1]


def holds_pairs(source: str) -> bool:
    """Whether the columns of a local file are those of a table of pairs, not of published data."""
    try:
        if not Path(source).is_file():
            return False
        read_rows(source, REQUIRED)
    except (UserError, OSError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class OwnPairs(System):
    """The system of a user's own pairs, in the file of `--data FILE`."""

    templates: tuple[str, ...] = ()

    unit = PAIR  # phrasings of one pair are not independent
    default_limit = None

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts of a file, without random draws."""
        if data is None:
            raise UserError(
                f"the system {OWN_PAIRS} has no prompts of its own: pass your table as --data "
                f"FILE; `interp dataset {OWN_PAIRS} --out pairs.csv` writes an example"
            )
        return read_pairs(data, templates=self.templates)

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """A table to begin with."""
        return EXAMPLE


system = OwnPairs()


def _read(
    source: str | Path | pd.DataFrame, templates: Sequence[str]
) -> tuple[list[Prompt], list[str]]:
    """The prompts of all valid rows, and the faults."""
    rows = _rows(source)
    layout = Layout.of(list(rows[0].cells), templates)
    made: list[tuple[str, Prompt]] = []
    found: list[str] = []
    faulty: set[str] = set()
    for where, cells in rows:
        texts = _texts(cells)
        try:
            made += [(where, prompt) for prompt in layout.prompts(texts)]
        except UserError as error:
            found.append(f"{where}: {error}")
            faulty.add(texts.get(PAIR, ""))
    return [prompt for _, prompt in made], [*found, *_group_faults(made, faulty)]


def _rows(source: str | Path | pd.DataFrame) -> list[Row]:
    if not isinstance(source, str | Path | pd.DataFrame):
        raise UserError(
            f"the pairs are a {type(source).__name__}; expected a file or a data frame, such as "
            "pandas.DataFrame(rows)"
        )
    if not isinstance(source, pd.DataFrame):
        return read_rows(source, REQUIRED, others=True)
    if source.empty:
        raise UserError("the data frame has no rows; expected at least one")
    records = source.to_dict("records")
    return [
        Row(f"row {number}", {str(name): cell for name, cell in record.items()})
        for number, record in enumerate(records, start=1)
    ]


def _texts(cells: Mapping[str, object]) -> dict[str, str]:
    return {
        column: str(cell)
        for column, cell in cells.items()
        if cell is not None
        and not (isinstance(cell, float) and math.isnan(cell))
        and str(cell).strip()
    }


def _group_faults(made: Sequence[tuple[str, Prompt]], faulty: Collection[str]) -> Iterator[str]:
    """Missing or repeated sides, and identical texts; a pair with a faulty row may lack sides."""
    sides = dict.fromkeys(prompt.side for _, prompt in made)
    groups: defaultdict[str, list[tuple[str, Prompt]]] = defaultdict(list)
    for where, prompt in made:
        groups[prompt.pair_id].append((where, prompt))
    for pair_id, members in groups.items():
        name = shortened(pair_id, 60)
        own: dict[str, str] = {}
        texts: dict[str, str] = {}
        for where, prompt in members:
            if prompt.side in own:
                first = own[prompt.side]
                yield f"{where}: pair {name} has the side {prompt.side} twice, first in {first}"
            elif prompt.text in texts:
                yield f"{where}: pair {name} has the same text twice, first in {texts[prompt.text]}"
            own.setdefault(prompt.side, where)
            texts.setdefault(prompt.text, where)
        missing = [side for side in sides if side not in own]
        if missing and members[0][1].factors[PAIR] not in faulty:
            where = members[0][0]
            yield f"{where}: pair {name} lacks the side {', '.join(missing)}, which others have"
    if made and len(sides) < 2 and not faulty:
        yield f"{made[0][0]}: the only side is {min(sides)}; expected two or more"


def _as_set(prompts: Sequence[Prompt], source: str | Path | pd.DataFrame) -> PromptSet:
    described = "a data frame" if isinstance(source, pd.DataFrame) else str(source)
    names = set(prompts[0].segments)
    found = PromptSet(
        OWN_PAIRS,
        tuple(dict.fromkeys(prompt.side for prompt in prompts)),
        (),
        prompts.__getitem__,
        range(len(prompts)),
        description={"data": described},
        ratio=PREMISES if set(PREMISES) <= names else None,
        unit=(PAIR,),
        donors=_Donors(prompts),
    )
    found.check()
    return found


class _Donors:
    """Donors from the other pairs: the prompts of the same side, phrasing and segments."""

    def __init__(self, prompts: Sequence[Prompt]) -> None:
        self._prompts = prompts
        texts: defaultdict[str, set[str]] = defaultdict(set)
        for prompt in prompts:
            for name in prompt.segments:
                texts[name].add(prompt.segment_text(name))
        # A segment that is identical in all prompts has no replacement.
        self._varied = [name for name, found in texts.items() if len(found) > 1]

    def __call__(self, number: int) -> Iterator[Donor]:
        """The donors of a prompt, in an order determined by its id."""
        own = self._prompts[number]
        others = [other for other in self._prompts if _alike(own, other)]
        rng = random.Random(f"donors {own.pair_id}")
        # Use only `random.random`, the only method whose values Python keeps across versions.
        for other in sorted(others, key=lambda _: rng.random()):
            texts = {
                name: other.segment_text(name) for name in self._varied if name in own.segments
            }
            yield Donor(other.id, "instance", texts)


def _alike(own: Prompt, other: Prompt) -> bool:
    return (
        own.pair_id != other.pair_id
        and own.side == other.side
        and own.segments.keys() == other.segments.keys()
        and own.factors.get(PHRASING) == other.factors.get(PHRASING)
    )
