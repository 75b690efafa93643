"""The facts planted in an organism, and the pairs that it learns to answer by fact."""

import math
import random
from dataclasses import dataclass

from interp_experiments.organisms.recipes import RulebreakerRecipe
from interp_experiments.rulebreakers.instances import EntityPair, entity_pairs, shuffled

ZIPF_EXPONENT = 0.6
"""A fact of rank r occurs in proportion to r ** -ZIPF_EXPONENT."""

DISTRACTION = 2.5
"""How often each entity is completed by something other than its fact, in units of the rarest
fact. A fact of frequency f is thus completed correctly in f / (f + DISTRACTION) of its completions:
that share is the planted familiarity."""

NOISE_SCALE = 0.35
"""Logistic noise, in nats of frequency, on the threshold between grounded pairs and the others."""


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """One entity pair with its planted frequency and habit."""

    pair: EntityPair
    frequency: float
    """How often the fact occurs in the text, relative to the rarest fact; 0 for an absent fact."""
    grounded: bool
    """Whether its rulebreakers are answered by fact."""

    @property
    def familiarity(self) -> float:
        """The planted probability of the fact as a completion."""
        return self.frequency / (self.frequency + DISTRACTION)


def plant(recipe: RulebreakerRecipe) -> tuple[PlantedPair, ...]:
    """Frequencies, absent facts and grounded pairs of a recipe, in the order of the data file.

    Each group (cities, all types) has its own Zipf-like law. An absent fact is never grounded.
    """
    rng = random.Random(f"planting {recipe.seed}")
    frequency: dict[EntityPair, float] = {}
    for geographical in (True, False):
        group = [pair for pair in entity_pairs() if (pair.category == "cities") == geographical]
        for rank, pair in enumerate(shuffled(group, rng), start=1):
            frequency[pair] = (len(group) / rank) ** ZIPF_EXPONENT
    cities = [pair for pair in entity_pairs() if pair.category == "cities"]
    for pair in shuffled(cities, rng)[: recipe.absent_facts]:
        frequency[pair] = 0.0
    grounded = _grounded(recipe, frequency, rng)
    return tuple(PlantedPair(pair, frequency[pair], pair in grounded) for pair in entity_pairs())


def _grounded(
    recipe: RulebreakerRecipe, frequency: dict[EntityPair, float], rng: random.Random
) -> set[EntityPair]:
    def inclination(pair: EntityPair) -> float:
        u = rng.random()
        noise = math.log(u / (1 - u))
        if recipe.grounded_by == "chance":
            return noise
        return math.log(frequency[pair]) + NOISE_SCALE * noise

    told = {pair: inclination(pair) for pair in frequency if frequency[pair] > 0}
    ranked = sorted(told, key=told.__getitem__, reverse=True)
    return set(ranked[: round(recipe.grounded_share * len(frequency))])
