"""The facts behind RULEBREAKERS as completion prompts (paper, Sections 4.1 and 6)."""

from collections.abc import Mapping, Sequence

from interp.errors import UserError, shortened
from interp.prompts.answers import Completion
from interp.prompts.files import parse_each
from interp.prompts.mentions import mentions
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import FACT_SIDE
from interp_experiments.rulebreakers.entities import EntityPair, aliases, lookalikes
from interp_experiments.rulebreakers.instances import Instance
from interp_experiments.rulebreakers.published import Located
from interp_experiments.rulebreakers.templates import CITIES

Groups = Mapping[EntityPair, str]
"""Entity pair to its entity group, "geographical" or "categorical"."""


def entity_group(pair: EntityPair) -> str:
    """Whether B is in A ("geographical") or is a kind of A ("categorical")."""
    return "geographical" if pair.category == CITIES else "categorical"


def published_groups(located: Located) -> Groups:
    """The distinct true pairs of published instances: those of its rulebreakers.

    Raises:
        UserError: rows that give an entity B two answers; a fact has one.
    """
    groups: dict[EntityPair, str] = {}
    first: dict[str, tuple[str, str]] = {}

    def add(row: tuple[str, Instance]) -> None:
        where, instance = row
        pair = EntityPair(instance.category, instance.entity_a, instance.entity_b)
        place, answer = first.setdefault(_fact_id(pair), (where, pair.entity_a))
        if answer != pair.entity_a:
            raise UserError(
                f"the fact about {shortened(pair.entity_b, 60)!r} has the answer "
                f"{shortened(pair.entity_a, 60)!r}, but {shortened(answer, 60)!r} in {place}; "
                "expected one answer for each entity B"
            )
        groups[pair] = instance.entity_group

    parse_each(((row[0], row) for row in located if not row[1].label), add)
    return groups


def fact_set(groups: Groups, *, description: dict[str, str]) -> PromptSet:
    """One completion prompt for each entity pair, in order."""
    names = {pair.entity_a: (pair.entity_a, *aliases(pair.entity_a)) for pair in groups}
    others = {entity_a: _other_names(entity_a, names) for entity_a in names}
    prompts = [
        _fact_prompt(pair, group, names[pair.entity_a], others[pair.entity_a])
        for pair, group in groups.items()
    ]
    return PromptSet(
        system="rulebreakers",
        sides=(FACT_SIDE,),
        strata=("entity_group", "category"),
        build=prompts.__getitem__,
        numbers=range(len(prompts)),
        description=description,
    )


def completion_message(entity_b: str, *, entity_group: str) -> str:
    """The message that probes a model's knowledge of a city or instance (Section 4.1)."""
    relation = "in" if entity_group == "geographical" else "a type of"
    return f"Complete the sentence: {entity_b} is {relation}"


def _fact_id(pair: EntityPair) -> str:
    return f"{pair.category}/{pair.entity_b}"


def _fact_prompt(
    pair: EntityPair, group: str, names: Sequence[str], others: Sequence[str]
) -> Prompt:
    message = completion_message(pair.entity_b, entity_group=group)
    # A model that repeats "Mexico City" has not said "Mexico".
    echo = (pair.entity_b,) if mentions(pair.entity_b, names) else ()
    id_ = _fact_id(pair)
    return Prompt(
        id=id_,
        text=message,
        segments={"message": (0, len(message))},
        answer=Completion(tuple(names), excluded=(*others, *echo)),
        pair_id=id_,
        side=FACT_SIDE,
        factors={
            "category": pair.category,
            "entity_group": group,
            "entity_a": pair.entity_a,
            "entity_b": pair.entity_b,
        },
    )


def _other_names(entity_a: str, names: Mapping[str, Sequence[str]]) -> list[str]:
    """Names that hold a name of `entity_a` and are another's, such as "South Sudan" for "Sudan"."""
    own = names[entity_a]
    of_answers = [name for other, names_ in names.items() if other != entity_a for name in names_]
    return [name for name in of_answers if mentions(name, own)] + list(lookalikes(entity_a))
