"""The user's own facts: completions that a model may or may not know, for the fact probes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from interp.choices import OWN_PAIRS
from interp.errors import UserError, shortened
from interp.prompts.answers import Completion, longer_names
from interp.prompts.files import Row, parse_each
from interp.prompts.own.layout import FACTS, FORMS, TEXT, check_names, factors_of
from interp.prompts.own.table import Source, described, table_of, text_of
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import FACT_SIDE, load_facts, system_names


def read_facts(source: Source) -> PromptSet:
    """Facts from a table with one row per fact.

    Columns:
        fact: an id, such as "stockholm".
        text: the sentence to complete, such as "Complete the sentence: Stockholm is in".
        answer: the completion; other names follow after "/", as in "Sweden/Kingdom of Sweden", or
            after "//" if a name contains a slash, as in "AC/DC//Acca Dacca".

    Other columns are factors; text_NAME holds the fact in another wording, such as text_question. A
    name does not count within a longer name of another fact, as Guinea in Equatorial Guinea.

    Raises:
        UserError: the table cannot be read, lacks a column, has an empty cell or repeats an id.
    """
    table = table_of(source, FACTS)
    columns = table.columns
    check_names(columns, FACTS)
    if missing := [name for name in FACTS if name not in columns]:
        raise UserError(
            f"the columns {', '.join(missing)} are missing; a table of facts has {', '.join(FACTS)}"
        )
    factors = factors_of([name for name in columns if name not in FACTS])

    cells_of = [text_of(row.cells.get("answer")) for row in table.rows]
    longer = longer_names(name for cell in cells_of for name in _names(cell))

    def prompt(row: Row) -> Prompt:
        cells = table.texts(row)
        fact = cells["fact"].strip()
        names = _names(cells["answer"])
        others = dict.fromkeys(other for name in names for other in longer.get(name, ()))
        return Prompt(
            id=fact,
            text=cells[TEXT],
            segments={},
            answer=Completion(names, tuple(name for name in others if name not in names)),
            pair_id=fact,
            side=FACT_SIDE,
            factors={factor: cells[column] for column, factor in factors.items()},
        )

    prompts = parse_each([(row.where, row) for row in table.rows], prompt)
    about = {"data": described(source)}
    facts = replace(PromptSet.of(prompts), system=OWN_PAIRS, description=about)
    facts.check()
    return facts


def _names(cell: str) -> tuple[str, ...]:
    parts = cell.split(FORMS if FORMS in cell else "/")
    return tuple(dict.fromkeys(filter(None, map(str.strip, parts))))


def find_facts(source: str) -> PromptSet:
    """The facts of an installed system, by its name, or of a table, by its path.

    Raises:
        UserError: the system has no facts, or the table cannot be read.
    """
    return load_facts(source) if source in system_names() else read_facts(Path(source))


SUBJECT = "entity_b"
"""The factor of a system's facts that names their subject."""


class Subjects:
    """Facts by what they are about: an id of your own facts, or the subject of a system's."""

    def __init__(self, facts: Sequence[Prompt]) -> None:
        self._of_system = {fact.factors[SUBJECT]: fact for fact in facts if SUBJECT in fact.factors}
        self._own = {fact.id: fact for fact in facts if SUBJECT not in fact.factors}

    def about(self, prompt: Prompt) -> Prompt:
        """The fact that a prompt is about: its subject is a factor of the prompt.

        Raises:
            UserError: no fact is about the prompt, or several are.
        """
        named: Mapping[str, str] = prompt.factors
        facts = {value: self._own[value] for value in named.values() if value in self._own}
        if named.get(SUBJECT) in self._of_system:
            facts[named[SUBJECT]] = self._of_system[named[SUBJECT]]
        if len(facts) != 1:
            what = f"{len(facts)} facts ({shortened(', '.join(facts), 80)})" if facts else "no fact"
            raise UserError(
                f"prompt {shortened(prompt.id, 60)!r} is about {what}; expected that one of its "
                "factors (columns), such as city, is the id of one fact"
            )
        return next(iter(facts.values()))


def facts_about(prompts: Sequence[Prompt], facts: PromptSet) -> PromptSet:
    """The facts that prompts are about, in the order of the prompts, so that a run can grow.

    Raises:
        UserError: a prompt is about no fact, or about several.
    """
    subjects = Subjects(facts)
    number_of = {fact.id: number for number, fact in zip(facts.numbers, facts, strict=True)}
    about = dict.fromkeys(subjects.about(prompt).id for prompt in prompts)
    return replace(facts, numbers=[number_of[fact] for fact in about], drawn_from=facts.numbers)
