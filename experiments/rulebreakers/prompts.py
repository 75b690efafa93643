"""Instances as prompts (Section 4.2): segments and the roles in them, answers, and donors."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from interp import AnswerOption, Choice, Prompt, PromptSet
from interp.extend import Donor, Outline, Span, compose, placed
from interp_experiments.rulebreakers.instances import EntityPair, Instance, shuffled
from interp_experiments.rulebreakers.templates import PHRASINGS, RULES, Phrasing, Reasoning

ENTITIES = {
    rule: {"premise1": (first, second), "premise2": (second,), "conclusion": (first,)}
    for rule, first, second in (("mt", "entity_a", "entity_b"), ("ds", "entity_b", "entity_a"))
}
"""In the order of the templates."""


def _roles(sentences: Reasoning, rule: str, pair: EntityPair) -> dict[str, dict[str, Span]]:
    """Spans in which sentences name A (country or type) and B (city or instance), by role.

    The search starts at the end, because "Mexico City or somewhere in Mexico" names A only there. A
    name that is spelled differently in the sentence has no span.
    """
    roles: dict[str, dict[str, Span]] = {}
    for segment, mentions in ENTITIES[rule].items():
        text = getattr(sentences, segment)
        before, spans = len(text), {}
        for entity in reversed(mentions):
            name = getattr(pair, entity)
            start = text.rfind(name, 0, before)
            if start >= 0:
                spans[f"{segment}_{entity}"] = (start, start + len(name))
                before = start
        roles[segment] = spans
    return roles


def entity_donors(instances: Sequence[Instance], seed: int) -> Callable[[int], Iterator[Donor]]:
    """Donors of prompt 10 i + p (instance i, phrasing p): the same sentences, other entities.

    They come from instances of the same rule, verb and side, with a different A and B. Their order
    depends only on the pair, so, where possible, both sides have donors with the same B.
    """

    @cache
    def by_template() -> Mapping[tuple[str, str, bool], list[EntityPair]]:
        grouped: defaultdict[tuple[str, str, bool], dict[EntityPair, None]] = defaultdict(dict)
        for instance in instances:
            grouped[instance.rule, instance.verb, instance.label][instance.pair] = None
        return {template: list(pairs) for template, pairs in grouped.items()}

    def donors(number: int) -> Iterator[Donor]:
        instance = instances[number // len(PHRASINGS)]
        rng = random.Random(f"donors {seed} {instance.pair_id}")
        alike = by_template()[instance.rule, instance.verb, instance.label]
        for pair in shuffled(alike, rng):
            a, b = pair.entity_a, pair.entity_b
            if a != instance.entity_a and b != instance.entity_b:
                texts = instance.about(pair)
                roles = _roles(texts, instance.rule, pair)
                yield Donor(f"{a}/{b}", "instance", texts._asdict(), roles)

    return donors


SIDES = ("rulebreaker", "non_rulebreaker")

CROSSED = ("verb", "category", "entity_b", "name")
"""A limit keeps their combinations whole: each is asked under both rules and in every phrasing, so
that rules and phrasings are compared within entity pairs.
"""

_OPTIONS = {
    answers: [AnswerOption(name, (name, name.upper(), name.lower())) for name in names]
    for answers, names in {"yes/no": ("Yes", "No"), "true/false": ("True", "False")}.items()
}
"""The positive and the negative option, with their surface forms (formulas 4 and 5)."""

POSITIVE = tuple(positive.name for positive, _ in _OPTIONS.values())


def to_prompt(instance: Instance, phrasing: Phrasing) -> Prompt:
    """One of the ten prompts of an instance."""
    outline = _outline(instance, phrasing)
    text, segments = compose(
        [
            (None, "Premises: "),
            ("premise1", instance.premise1),
            (None, " "),
            ("premise2", instance.premise2),
            (None, "\nConclusion: "),
            ("conclusion", instance.conclusion),
            (None, "\n"),
            ("question", phrasing.question),
        ]
    )
    return Prompt(
        id=f"{instance.id}/{phrasing.id}",
        text=text,
        segments=segments,
        answer=Choice.between(*_OPTIONS[phrasing.answers], gold=instance.label),
        pair_id=outline.pair_id,
        side=SIDES[instance.label],
        factors=outline.factors,
        roles=placed(segments, _roles(instance.reasoning, instance.rule, instance.pair)),
    )


def _outline(instance: Instance, phrasing: Phrasing) -> Outline:
    factors = {
        "rule": instance.rule,
        "entity_group": instance.pair.entity_group,
        "category": instance.category,
        "verb": instance.verb,
        "entity_a": instance.entity_a,
        "entity_b": instance.entity_b,
        "name": instance.name,
        "phrasing": phrasing.id,
    }
    return Outline(f"{instance.pair_id}/{phrasing.id}", factors)


def prompt_set(
    instances: Sequence[Instance], *, seed: int, description: dict[str, str]
) -> PromptSet:
    """All instances in all ten phrasings: prompts 10 i to 10 i + 9 belong to instance i."""

    def parts(number: int) -> tuple[Instance, Phrasing]:
        index, phrasing = divmod(number, len(PHRASINGS))
        return instances[index], PHRASINGS[phrasing]

    return PromptSet(
        system="rulebreakers",
        sides=SIDES,
        strata=("rule", "entity_group", "verb", "phrasing"),
        build=lambda number: to_prompt(*parts(number)),
        outline=lambda number: _outline(*parts(number)),
        numbers=range(len(instances) * len(PHRASINGS)),
        seed=seed,
        description=description,
        ratio=("premise2", "premise1"),
        unit=CROSSED,
        clusters=("category", "entity_b"),
        turns=len(RULES),
        donors=entity_donors(instances, seed),
    )
