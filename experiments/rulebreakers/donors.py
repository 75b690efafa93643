"""Donors for premises and conclusion: the same sentences about another pair of entities."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from interp.errors import UserError
from interp.prompts.prompt import Donor
from interp_experiments.rulebreakers.instances import Instance, shuffled
from interp_experiments.rulebreakers.roles import sentence_roles
from interp_experiments.rulebreakers.templates import PHRASINGS, Reasoning, render

_Entities = tuple[str, str, str]
"""Category, A and B."""


class EntityDonors:
    """Other entities in the template of an instance, with its rule, verb, name and side.

    They are those of the set's other instances with the same rule, verb and side, of which neither
    A nor B is the instance's own; in an order drawn by the pair, so that both sides of a pair have
    donors of the same B where there are any.
    """

    def __init__(self, instances: Sequence[Instance], seed: int) -> None:
        self._instances = instances
        self._seed = seed

    def __call__(self, number: int) -> Iterator[Donor]:
        """The donors of prompt 10 i + p, instance i in phrasing p; none if it fits no template."""
        instance = self._instances[number // len(PHRASINGS)]
        own = _sentences(instance, (instance.category, instance.entity_a, instance.entity_b))
        if own != (instance.premise1, instance.premise2, instance.conclusion):
            return
        rng = random.Random(f"donors {self._seed} {instance.pair_id}")
        for entities in shuffled(self._entities[_template(instance)], rng):
            _, a, b = entities
            sentences = _sentences(instance, entities)
            if a != instance.entity_a and b != instance.entity_b and sentences is not None:
                texts = sentences._asdict()
                roles = sentence_roles(texts, rule=instance.rule, entity_a=a, entity_b=b)
                yield Donor(f"{a}/{b}", "instance", texts, roles)

    @cached_property
    def _entities(self) -> dict[tuple[str, str, bool], list[_Entities]]:
        found: defaultdict[tuple[str, str, bool], dict[_Entities, None]] = defaultdict(dict)
        for own in self._instances:
            found[_template(own)][own.category, own.entity_a, own.entity_b] = None
        return {template: list(entities) for template, entities in found.items()}


def _template(instance: Instance) -> tuple[str, str, bool]:
    return instance.rule, instance.verb, instance.label


def _sentences(instance: Instance, entities: _Entities) -> Reasoning | None:
    """The instance's sentences about these entities; None where there is no template for them."""
    group, entity_a, entity_b = entities
    try:
        return render(
            rule=instance.rule,
            group=group,
            name=instance.name,
            pronoun=instance.pronoun,
            verb=instance.verb,
            entity_a=entity_a,
            entity_b=entity_b,
        )
    except UserError:
        return None
