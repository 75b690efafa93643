"""Instances as prompts (Section 4.2): segments and the roles in them, answers, and donors."""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache

from interp import AnswerOption, Choice, Prompt, PromptSet
from interp.extend import Donor, Outline, Span, compose, placed
from interp_experiments.rulebreakers.instances import EntityPair, Instance, shuffled
from interp_experiments.rulebreakers.templates import PHRASINGS, RULES, Phrasing

ENTITIES = {
    rule: {"premise1": (first, second), "premise2": (second,), "conclusion": (first,)}
    for rule, first, second in (("mt", "entity_a", "entity_b"), ("ds", "entity_b", "entity_a"))
}
"""The entities that each sentence names, in the order of the templates."""


def sentence_roles(
    sentences: Mapping[str, str], *, rule: str, entity_a: str, entity_b: str
) -> dict[str, dict[str, Span]]:
    """Spans in which sentences name A (country or type) and B (city or instance), by role.

    The search starts at the end, because "Mexico City or somewhere in Mexico" names A only there. A
    name that is spelled differently in the sentence has no span.

    `sentences` holds the texts of premise1, premise2 and conclusion.
    """
    names = {"entity_a": entity_a, "entity_b": entity_b}
    found: dict[str, dict[str, Span]] = {}
    for segment, mentions in ENTITIES[rule].items():
        text, before = sentences[segment], len(sentences[segment])
        spans = {}
        for entity in reversed(mentions):
            start = text.rfind(names[entity], 0, before)
            if start >= 0:
                spans[f"{segment}_{entity}"] = (start, start + len(names[entity]))
                before = start
        found[segment] = spans
    return found


class EntityDonors:
    """Donors of instances: the same template, rule, verb and name, but other entities.

    The entities come from other instances in the set that have the same rule, verb and side, and a
    different A and a different B. Their order depends only on the pair, so, where possible, both
    sides of a pair have donors with the same B.
    """

    def __init__(self, instances: Sequence[Instance], seed: int) -> None:
        self._instances = instances
        self._seed = seed

    def __call__(self, number: int) -> Iterator[Donor]:
        """The donors of prompt 10 i + p (instance i, phrasing p)."""
        instance = self._instances[number // len(PHRASINGS)]
        rng = random.Random(f"donors {self._seed} {instance.pair_id}")
        for pair in shuffled(self._by_template[_template(instance)], rng):
            a, b = pair.entity_a, pair.entity_b
            if a != instance.entity_a and b != instance.entity_b:
                texts = instance.about(pair)._asdict()
                roles = sentence_roles(texts, rule=instance.rule, entity_a=a, entity_b=b)
                yield Donor(f"{a}/{b}", "instance", texts, roles)

    @cached_property
    def _by_template(self) -> dict[tuple[str, str, bool], list[EntityPair]]:
        found: defaultdict[tuple[str, str, bool], dict[EntityPair, None]] = defaultdict(dict)
        for own in self._instances:
            found[_template(own)][own.pair] = None
        return {template: list(pairs) for template, pairs in found.items()}


def _template(instance: Instance) -> tuple[str, str, bool]:
    return instance.rule, instance.verb, instance.label


SIDES = ("rulebreaker", "non_rulebreaker")

STRATA = ("rule", "entity_group", "verb", "phrasing")

CROSSED = ("verb", "category", "entity_b", "name")
"""Factors whose combinations are units, which a limit keeps whole. As in the data set, each unit is
asked under both rules and in every phrasing, so rules and phrasings are compared within entity
pairs."""

RATIO = ("premise2", "premise1")
"""The segments of the score ratio; the score of the first is divided by that of the second."""

_OPTIONS = {
    answers: [AnswerOption(name, (name, name.upper(), name.lower())) for name in names]
    for answers, names in {"yes/no": ("Yes", "No"), "true/false": ("True", "False")}.items()
}
"""The positive and the negative option, with their surface forms (formulas 4 and 5)."""

POSITIVE = tuple(positive.name for positive, _ in _OPTIONS.values())
"""The names of the options that accept the conclusion."""

_CHOICES = {
    (answers, gold): Choice.between(*options, gold=gold)
    for answers, options in _OPTIONS.items()
    for gold in (True, False)
}


def to_prompt(instance: Instance, phrasing: Phrasing) -> Prompt:
    """One of the ten prompts of an instance."""
    outline = _phrased(_outline(instance), phrasing)
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
        answer=_CHOICES[phrasing.answers, instance.label],
        pair_id=outline.pair_id,
        side=SIDES[instance.label],
        factors=outline.factors,
        roles=placed(
            segments,
            sentence_roles(
                instance.reasoning._asdict(),
                rule=instance.rule,
                entity_a=instance.entity_a,
                entity_b=instance.entity_b,
            ),
        ),
    )


def _outline(instance: Instance) -> Outline:
    """What the ten prompts of an instance share of their outlines."""
    factors = {
        "rule": instance.rule,
        "entity_group": instance.pair.entity_group,
        "category": instance.category,
        "verb": instance.verb,
        "entity_a": instance.entity_a,
        "entity_b": instance.entity_b,
        "name": instance.name,
    }
    return Outline(instance.pair_id, factors)


def _phrased(outline: Outline, phrasing: Phrasing) -> Outline:
    pair_id, factors = outline
    return Outline(f"{pair_id}/{phrasing.id}", {**factors, "phrasing": phrasing.id})


def prompt_set(
    instances: Sequence[Instance], *, seed: int, description: dict[str, str]
) -> PromptSet:
    """All instances in all ten phrasings: prompts 10 i to 10 i + 9 belong to instance i."""
    # The ten prompts of an instance follow one another: drawing two pairs reads all 256,000.
    shared = lru_cache(maxsize=1)(lambda index: _outline(instances[index]))

    def build(number: int) -> Prompt:
        index, phrasing = divmod(number, len(PHRASINGS))
        return to_prompt(instances[index], PHRASINGS[phrasing])

    def outline(number: int) -> Outline:
        index, phrasing = divmod(number, len(PHRASINGS))
        return _phrased(shared(index), PHRASINGS[phrasing])

    return PromptSet(
        system="rulebreakers",
        sides=SIDES,
        strata=STRATA,
        build=build,
        outline=outline,
        numbers=range(len(instances) * len(PHRASINGS)),
        seed=seed,
        description=description,
        ratio=RATIO,
        unit=CROSSED,
        clusters=("category", "entity_b"),
        turns=len(RULES),
        donors=EntityDonors(instances, seed),
    )
