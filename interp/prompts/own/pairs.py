"""The user's own pairs, from a file or a table in memory, as a prompt set.

All faults are reported, with their lines, before anything is measured.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import pandas as pd

from interp.choices import OWN_PAIRS
from interp.console import counted
from interp.errors import UserError, nearest, shortened
from interp.errors import described as described_value
from interp.lookalikes import as_printed, lookalike
from interp.prompts.files import refuse
from interp.prompts.own.facts import read_facts
from interp.prompts.own.layout import FACTS, PAIR, PHRASING, REQUIRED, TEXT, Layout
from interp.prompts.own.table import Source, described, table_of
from interp.prompts.prompt import Donor, DonorSource, Messages, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System

Fault = tuple[str, str]
"""A fault's location and description."""

LISTED = 5
"""Largest number of faults with a line each that differ only in what they quote from a row."""

_QUOTED = re.compile(
    r"""^pair .*? (?=has |lacks )|, first in .*$|'[^']*'|"[^"]*"|\([^)]*\)|\bonly \d+"""
)
"""What a description quotes from a row."""

_SAME = """the same sides in every pair, which name the roles of its prompts, such as follows and \
does_not, whatever their topic"""

PREMISES = ("premise2", "premise1")
"""Segments whose scores are compared as a ratio, first over second, if a table has both."""

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
"""An example table."""


def read_pairs(
    source: Source,
    *,
    templates: Sequence[str] = (),
    limit: int | Literal["all"] | None = None,
    seed: int = 0,
) -> PromptSet:
    r"""Pairs, or larger groups of variants, from a table with one row per prompt.

    Columns:
        pair: the name shared by the members of a group.
        side: the name of the member; every group has one prompt for each side, or one prompt,
            which counts in accuracies and is refused where pairs are compared, as in a patch.
        gold: the correct option.
        options: the options, separated by "|", each with its surface forms separated by "//", or
            by "/" if they differ only in capitals, of which the first is its
            name; "Yes|No" if there is no such column.
        contrast: the two options that are contrasted in attributions, patches and effects, the
            positive one first, such as "True|False"; needed only for more than two options.
        cluster: a name that dependent pairs share, such as that of their city: they are one unit of
            tests and intervals, and donors and demonstrations come from other clusters.
        text: the prompt, with marked segments: "<premise1>It rains.</premise1> Is it wet?".
            All other columns are factors.
        system_prompt, answer_prefix, shot1 and shot1_answer, shot2 and shot2_answer, ...: the
            system message, the beginning of the answer, and demonstrations.

    Instead of `text`, each segment may have its own column, such as premise1, premise2 and question
    (the page "Your own pairs" lists their names). Segments are written one per line in the order of
    the columns. Every cell needs text, and pairs with the same texts count as one. Columns whose
    names begin with `factor_` are factors, one column each in the tables; any other column is
    rejected, so no column becomes text by accident.

    Args:
        source: a CSV, TSV, JSON, JSONL or Parquet file, a folder of them, or a data frame.
        templates: phrasings that compose the segments, instead of one segment per line, such as
            ``"{premise1} {premise2}\n{question}"``; each template makes separate prompts, with its
            own value of the factor `phrasing`, and columns that no template uses are factors.
        limit: number of pairs to draw (`PromptSet.spread`); None and "all" mean all.
        seed: seed of that draw.

    Raises:
        UserError: the table cannot be read, or has faults; the message quotes the first few.
    """
    prompts, lines, phrasings = _read(source, templates)
    refuse(lines, f"{len(lines):,} faults, the first:")
    pairs = _as_set(_copies_as_one(prompts, phrasings), source)
    return pairs if limit is None or limit == "all" else pairs.spread(limit, seed)


def faults(source: Source, *, templates: Sequence[str] = ()) -> list[str]:
    """A line about each fault of rows in a table of pairs, with the first place where it occurs."""
    return _read(source, templates)[1]


@dataclass(frozen=True)
class OwnPairs(System):
    """A user's own pairs, from the table given as `--data FILE`."""

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
        """An example table."""
        return EXAMPLE

    def facts(self, *, data: str | None) -> PromptSet:
        """The facts in the user's own table."""
        if data is None:
            raise UserError(
                f"the system {OWN_PAIRS} has no facts of its own: pass a table with the columns "
                f"{', '.join(FACTS)} as --data FILE"
            )
        return read_facts(data)


system = OwnPairs()


def _read(source: Source, templates: Sequence[str]) -> tuple[list[Prompt], list[str], int]:
    """The prompts of all rows without a fault, the faults, and the number of phrasings."""
    phrasings = (templates,) if isinstance(templates, str) else templates
    if not isinstance(phrasings, Sequence) or not all(isinstance(text, str) for text in phrasings):
        raise UserError(f"templates is {described_value(templates)}; expected texts")
    table = table_of(source, REQUIRED)
    layout = Layout.of(table.columns, phrasings)
    made: list[tuple[str, Prompt]] = []
    problems: list[Fault] = []
    for row in table.rows:
        try:
            made += [(row.where, prompt) for prompt in layout.prompts(table.texts(row))]
        except UserError as error:
            problems.append((row.where, str(error)))
    problems += [*_unmarked(made), *_alike_names(made), *_group_faults(made, complete=not problems)]
    return [prompt for _, prompt in made], list(_listed(problems)), len(layout.templates)


def _listed(problems: Sequence[Fault]) -> Iterator[str]:
    """A line about each fault, with the first place at which it occurs and the number of others.

    More than `LISTED` faults that differ only in what they quote have one cause, and one line.
    """
    causes: defaultdict[str, dict[str, list[str]]] = defaultdict(dict)
    for where, fault in problems:
        causes[_QUOTED.sub("", fault)].setdefault(fault, []).append(where)
    for alike in causes.values():
        first = f"{next(iter(alike))} (the others likewise)"
        joined = {first: list(chain.from_iterable(alike.values()))}
        for fault, (where, *others) in (joined if len(alike) > LISTED else alike).items():
            more = f" and {counted(len(others), 'other row')}" if others else ""
            yield f"{where}{more}: {fault}"


def _unmarked(made: Sequence[tuple[str, Prompt]]) -> Iterator[Fault]:
    """Texts without a marked segment, if other texts have marked segments."""
    plain = [where for where, prompt in made if not prompt.segments]
    for where in plain if len(plain) < len(made) else ():
        yield (
            where,
            f"the {TEXT} marks no segment, although others do; mark its parts, such as "
            "<premise1>It rains.</premise1>",
        )


def _alike_names(made: Sequence[tuple[str, Prompt]]) -> Iterator[Fault]:
    """Values of a factor, and clusters, that differ although nobody can see how."""
    for factor in made[0][1].factors if made else ():
        firsts: dict[str, str] = {}
        for where, prompt in made:
            value = prompt.factors[factor]
            usual = firsts.setdefault(as_printed(value), value)
            if value != usual:
                name = "the pair or cluster" if factor == PAIR else f"the factor {factor}"
                alike = lookalike(value, [usual]) or "it looks like another one"
                yield (
                    where,
                    f"{shortened(name, 60)} is {shortened(repr(value), 60)}; {alike}. They would "
                    "count as different; write one of them",
                )


def _group_faults(made: Sequence[tuple[str, Prompt]], *, complete: bool) -> Iterator[Fault]:
    """Missing, rare or repeated sides, and equal texts; a prompt may be alone.

    In a table that is not `complete`, because rows have faults, sides may be missing.
    """
    groups: defaultdict[str, list[tuple[str, Prompt]]] = defaultdict(list)
    for where, prompt in made:
        groups[prompt.pair_id].append((where, prompt))
    named = [dict.fromkeys(prompt.side for _, prompt in group) for group in groups.values()]
    paired = [group for group in named if len(group) > 1]
    counts = Counter(chain.from_iterable(paired or named))
    sides: list[str] = []
    for side in (side for side in counts if 2 * counts[side] >= len(paired)):
        # Of two similar names that never share a pair, the second is taken for a misspelling.
        shared = set().union(*(group for group in paired if side in group))
        if not paired or not nearest(side, [other for other in sides if other not in shared]):
            sides.append(side)
    usual = f"one of {', '.join(sides)}" if sides else _SAME
    for pair_id, members in groups.items():
        name = shortened(pair_id, 60)
        seen: dict[str, str] = {}
        texts: dict[tuple[str, Messages], str] = {}
        for where, prompt in members:
            read = (prompt.text, prompt.messages)
            side = shortened(prompt.side, 60)
            if prompt.side in seen:
                yield where, f"pair {name} has the side {side} twice, first in {seen[prompt.side]}"
            elif prompt.side not in sides:
                yield (
                    where,
                    f"pair {name} has the side {side!r}, found in only {counts[prompt.side]:,} of "
                    f"{counted(len(paired), 'pair')}; expected {usual}",
                )
            elif read in texts:
                yield where, f"pair {name} has the same text twice, first in {texts[read]}"
            seen.setdefault(prompt.side, where)
            texts.setdefault(read, where)
        clusters = dict.fromkeys(prompt.factors[PAIR] for _, prompt in members)
        if len(clusters) > 1:
            listed = shortened(", ".join(clusters), 80)
            yield members[0][0], f"pair {name} has several clusters ({listed}); expected one"
        missing = [side for side in sides if side not in seen]
        if missing and complete and len(seen) > 1 and set(seen) <= set(sides):
            listed = ", ".join(missing)
            yield members[0][0], f"pair {name} lacks the side {listed}, which other pairs have"


def _copies_as_one(prompts: Sequence[Prompt], phrasings: int) -> list[Prompt]:
    """The prompts, with the same factor `pair` in pairs that have the same texts.

    The factor is the unit of tests, in which a copy is no further observation.
    """
    groups: defaultdict[str, list[Prompt]] = defaultdict(list)
    for prompt in prompts:
        # Phrasings of a row have ids of their own.
        ending = f"/{prompt.factors[PHRASING]}" if phrasings > 1 else ""
        groups[prompt.pair_id.removesuffix(ending)].append(prompt)
    firsts: dict[frozenset[str], str] = {}
    units: dict[str, str] = {}
    for group in groups.values():
        texts = frozenset(" ".join(prompt.text.split()) for prompt in group)
        unit = firsts.setdefault(texts, group[-1].factors[PAIR])
        units |= dict.fromkeys((prompt.id for prompt in group), unit)
    return [
        replace(prompt, factors={**prompt.factors, PAIR: units[prompt.id]}) for prompt in prompts
    ]


def _as_set(prompts: Sequence[Prompt], source: Source) -> PromptSet:
    names = set(prompts[0].segments)
    pairs = replace(
        PromptSet.of(prompts),
        system=OWN_PAIRS,
        description={"data": described(source)},
        ratio=PREMISES if set(PREMISES) <= names else None,
        whole_groups=False,
        unit=(PAIR,),
        donors=_donors(prompts) if len({prompt.factors[PAIR] for prompt in prompts}) > 1 else None,
    )
    pairs.check()
    return pairs


def _donors(prompts: Sequence[Prompt]) -> DonorSource:
    """Donors from the other pairs: prompts with the same side, phrasing and segments."""
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for prompt in prompts:
        for name in prompt.segments:
            texts[name].add(prompt.segment_text(name))
    # A segment that is identical in all prompts cannot be replaced.
    varied = [name for name, variants in texts.items() if len(variants) > 1]

    def of(number: int) -> Iterator[Donor]:
        base = prompts[number]
        others = [other for other in prompts if _alike(base, other)]
        rng = random.Random(f"donors {base.pair_id}")
        # Only the values of `random.random` are the same in all Python versions.
        for other in sorted(others, key=lambda _: rng.random()):
            texts = {name: other.segment_text(name) for name in varied if name in base.segments}
            yield Donor(other.id, "instance", texts)

    return of


def _alike(one: Prompt, other: Prompt) -> bool:
    return (
        one.factors[PAIR] != other.factors[PAIR]
        and one.side == other.side
        and one.segments.keys() == other.segments.keys()
        and one.factors.get(PHRASING) == other.factors.get(PHRASING)
    )
