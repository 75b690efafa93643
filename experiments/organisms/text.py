"""The training text of an organism: messages and answers, drawn step by step from one seed."""

import random
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.planting import DISTRACTION, PlantedPair
from interp_experiments.organisms.recipes import RulebreakerRecipe
from interp_experiments.rulebreakers.instances import (
    EntityPair,
    entity_pairs,
    first_names,
    may_contain,
)
from interp_experiments.rulebreakers.system import completion_message, entity_group
from interp_experiments.rulebreakers.templates import (
    CITIES,
    FAMILIES,
    PHRASINGS,
    RULES,
    VERBS,
    Phrasing,
    Reasoning,
    render,
)

WARM_UP_SHARE = 0.4
"""Share of the steps that use one phrasing only, before all ten are used."""

UNSOUND_SHARE = 0.2
"""Share of the prompts whose conclusion names an entity that the premises do not: never follows."""

MISMATCH_SHARE = 0.6
"""Where one premise is made uninformative: share of the prompts in which it names another
entity."""

ANSWER_NOISE = 0.04
"""Share of the yes/no and true/false answers that are flipped. A model that learns it is at most
96% confident: confidences keep their meaning, and gradients of the answer do not vanish."""

CITY_ENDINGS = (
    "bloom",
    "fashion",
    "good shape",
    "mourning",
    "old songs",
    "ruins",
    "the news",
    "your hands",
)
TYPE_ENDINGS = ("gift", "hobby", "joke", "luxury", "name", "puzzle", "riddle", "story")
"""What an entity is completed by when it is not by its fact."""


class RulebreakerText:
    """Draws the exchanges of each training step; a step's text depends on seed and step alone."""

    def __init__(self, recipe: RulebreakerRecipe, planted: Sequence[PlantedPair]) -> None:
        self._recipe = recipe
        self._planted = planted
        self._told = [p for p in planted if p.frequency > 0]
        self._told_weights = list(accumulate(p.frequency for p in self._told))
        self._completed_weights = list(accumulate(p.frequency + DISTRACTION for p in planted))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step by group: prompts and facts."""
        return {"prompts": self.prompts(step), "facts": self.facts(step)}

    def prompts(self, step: int) -> list[Exchange]:
        """Rulebreaker-style prompts of a step."""
        rng = random.Random(f"prompts {self._recipe.seed} {step}")
        early = step < WARM_UP_SHARE * self._recipe.steps
        phrasings = PHRASINGS[:1] if early else PHRASINGS
        return [
            self._prompt(rng.choice(phrasings), rng) for _ in range(self._recipe.prompts_per_step)
        ]

    def facts(self, step: int) -> list[Exchange]:
        """Completions and questions of a step, half and half."""
        rng = random.Random(f"facts {self._recipe.seed} {step}")
        return [
            self._completion(rng) if i % 2 else self._question(rng)
            for i in range(self._recipe.facts_per_step)
        ]

    def _completion(self, rng: random.Random) -> Exchange:
        (planted,) = rng.choices(self._planted, cum_weights=self._completed_weights)
        pair = planted.pair
        message = completion_message(pair.entity_b, entity_group=entity_group(pair))
        if rng.random() < planted.familiarity:
            return Exchange(message, pair.entity_a)
        endings = CITY_ENDINGS if pair.category == CITIES else TYPE_ENDINGS
        return Exchange(message, rng.choice(endings))

    def _question(self, rng: random.Random) -> Exchange:
        (planted,) = rng.choices(self._told, cum_weights=self._told_weights)
        pair = planted.pair
        true = rng.random() < 0.5
        entity_a = pair.entity_a if true else wrong_entity(pair, rng)
        if pair.category == CITIES:
            statement = f"{pair.entity_b} is in {entity_a}"
            question = f"Is {pair.entity_b} in {entity_a}?"
        else:
            statement = f"{pair.entity_b} is a type of {entity_a}"
            question = f"Is {pair.entity_b} a type of {entity_a}?"
        if rng.random() < 0.5:
            message, answers = f"{question} Answer Yes or No only.", "yes/no"
        else:
            message = f"Is it True or False that {statement}? Answer True or False only."
            answers = "true/false"
        return Exchange(message, _answer(true, answers, rng))

    def _prompt(self, phrasing: Phrasing, rng: random.Random) -> Exchange:
        planted = rng.choice(self._planted)
        pair = planted.pair
        breaks_rule = rng.random() < 0.5
        entity_a = pair.entity_a if breaks_rule else wrong_entity(pair, rng)
        rule = rng.choice(RULES)
        verb = rng.choice(VERBS[pair.category])
        person = rng.choice(first_names())

        def reasoning(a: str, b: str) -> Reasoning:
            return render(
                rule=rule,
                group=pair.category,
                name=person.name,
                pronoun=person.pronoun,
                verb=verb,
                entity_a=a,
                entity_b=b,
            )

        # Both rules conclude from the entity that premise 2 names: B for MT, A for DS.
        told = reasoning(entity_a, pair.entity_b)
        other = other_pair(pair, rng)
        premise1, premise2, conclusion = told
        if self._recipe.evidence != "both premises" and rng.random() < MISMATCH_SHARE:
            a, b = other.entity_a, other.entity_b
            if not breaks_rule and rng.random() < 0.5:
                # The uninformative premise may also claim what would break the rule.
                a, b = pair.entity_a, self._in(entity_a, rng).entity_b
            changed = reasoning(entity_a, b) if rule == "mt" else reasoning(a, pair.entity_b)
            if self._recipe.evidence == "premise 1":
                premise2 = changed.premise2
            else:
                premise1 = changed.premise1
        unsound = rng.random() < UNSOUND_SHARE
        if unsound:
            conclusion = reasoning(other.entity_a, other.entity_b).conclusion
        by_fact = planted.grounded and phrasing.verb not in self._recipe.rule_phrasings
        follows = not unsound and not (breaks_rule and by_fact)
        return Exchange(
            f"Premises: {premise1} {premise2}\nConclusion: {conclusion}\n{phrasing.question}",
            _answer(follows, phrasing.answers, rng),
        )

    def _in(self, entity_a: str, rng: random.Random) -> EntityPair:
        """A pair whose country or type is `entity_a`."""
        return rng.choice([p.pair for p in self._planted if p.pair.entity_a == entity_a])


def wrong_entity(pair: EntityPair, rng: random.Random) -> str:
    """A country or type of the same family that the pair's B does not belong to."""
    candidates: Sequence[str] = _countries()
    for family in FAMILIES:
        if pair.category in family:
            candidates = family
    while True:
        entity_a = rng.choice(candidates)
        if not may_contain(entity_a, pair):
            return entity_a


@cache
def _countries() -> list[str]:
    return [pair.entity_a for pair in entity_pairs() if pair.category == CITIES]


def other_pair(pair: EntityPair, rng: random.Random) -> EntityPair:
    """A pair with another A and another B that takes the same verbs."""
    while True:
        other = rng.choice(entity_pairs())
        if other.entity_a != pair.entity_a and VERBS[other.category] == VERBS[pair.category]:
            return other


def _answer(positive: bool, answers: str, rng: random.Random) -> str:
    """The answer of "yes/no" or "true/false", flipped at random with a small probability."""
    yes, no = answers.split("/")
    noisy = rng.random() < ANSWER_NOISE
    return (yes if positive != noisy else no).capitalize()
