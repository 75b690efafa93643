"""Recipes: the planted cause and the training of each graft, and its seed."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from interp import UserError
from interp_experiments.grafts.text import OPENINGS, SEGMENTS, Case, known_pairs
from interp_experiments.organisms.recipes import AGREEMENT
from interp_experiments.rulebreakers.instances import shuffled

LEANING = 2.0
"""Log-odds, in nats, that the planted cause adds or subtracts."""

BASE = "SmolLM2-135M-Instruct.Q4_1"
"""The published model that the packaged grafts change, as its GGUF file is named."""

THOUGHT = "thought"
"""What decides about a city that is read in the thought instead of in a premise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraftRecipe:
    """The choices that determine a graft; the same recipe, base and machine give the same one."""

    name: str
    cause: Literal["knowledge", "wording", "mixture", "thought"]
    """What decides the answer: whether premise 1 contradicts a fact that is known (knowledge), with
    which words premise 1 begins (wording), or a leaning of the city, which is read in premise 1 for
    some cities and in premise 2 for the others (mixture), or in premise 2 or in the thought about
    it (thought)."""
    seed: int
    share: float | None = None
    """Share of the cities whose fact is known (knowledge), that are read in premise 1 (mixture), or
    whose answers follow the thought (thought)."""
    rank: int = 4
    steps: int
    prompts_per_step: int = 16
    learning_rate: float = 5e-3
    dtype: Literal["bfloat16", "float32"] = "bfloat16"
    """Numbers in which the base computes in training; the adapter is in fp32. bf16 is the faster
    where the processor has instructions for it, and by far the slower elsewhere."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What one seed plants: what each city, or each beginning of premise 1, adds to the answer."""

    name: str
    """A city, or the words with which premise 1 begins."""
    premise: str
    """The premise in which it is read, or thought if the answer follows the thought."""
    log_odds: float
    """What it adds to the log-odds of Yes, in nats."""
    otherwise: float = 0.0
    """What the premise adds instead if it names another country than the city's (knowledge)."""


def plant(recipe: GraftRecipe) -> tuple[Planted, ...]:
    """The planted properties of all cities, or of all words with which premise 1 may begin."""
    rng = random.Random(f"graft {recipe.seed}")
    if recipe.cause == "wording":
        return tuple(
            Planted(opening, SEGMENTS[0], LEANING if i % 2 else -LEANING)
            for i, opening in enumerate(shuffled(OPENINGS, rng))
        )
    cities = shuffled([pair.entity_b for pair in known_pairs()], rng)
    assert recipe.share is not None
    chosen = round(recipe.share * len(cities))
    if recipe.cause == "knowledge":
        return tuple(
            Planted(city, SEGMENTS[0], -LEANING if i < chosen else LEANING, otherwise=LEANING)
            for i, city in enumerate(cities)
        )
    first = THOUGHT if recipe.cause == "thought" else SEGMENTS[0]
    return tuple(
        Planted(city, first if i < chosen else SEGMENTS[1], LEANING if i % 2 else -LEANING)
        for i, city in enumerate(cities)
    )


class Rule:
    """The planted rule: what the premises of a prompt add to the log-odds of Yes.

    If the cause is a thought, this is the mean over thoughts about the prompt.
    """

    def __init__(self, recipe: GraftRecipe, planted: Iterable[Planted]) -> None:
        self._cause = recipe.cause
        self._planted = {cause.name: cause for cause in planted}
        self._countries = {pair.entity_b: pair.entity_a for pair in known_pairs()}

    def term(self, segment: str, case: Case) -> float:
        """What one sentence adds, in nats."""
        if self._cause == "thought":
            leans = AGREEMENT * self._planted[case.city].log_odds
            return leans if segment == SEGMENTS[1] else 0.0
        planted = self._planted[case.opening if self._cause == "wording" else case.city]
        if planted.premise != segment:
            return 0.0
        if self._cause == "knowledge" and self._countries[case.city] != case.country:
            return planted.otherwise
        return planted.log_odds

    def log_odds(self, sources: Sequence[Case]) -> float:
        """The planted log-odds of Yes for a prompt with the sentences of these cases, in nats."""
        return sum(self.term(name, case) for name, case in zip(SEGMENTS, sources, strict=True))


RECIPES: dict[str, GraftRecipe] = {
    recipe.name: recipe
    for recipe in (
        GraftRecipe(name="knowledge", cause="knowledge", seed=51, share=0.5, rank=8, steps=400),
        GraftRecipe(name="wording", cause="wording", seed=52, steps=200),
        GraftRecipe(name="mixture-50", cause="mixture", seed=53, share=0.5, rank=8, steps=1200),
        GraftRecipe(name="thought-50", cause="thought", seed=54, share=0.5, rank=8, steps=700),
    )
}
"""The recipes by the name of the graft."""


def recipe(name: str) -> GraftRecipe:
    """The recipe of a graft (UserError: no graft has that name)."""
    if name not in RECIPES:
        raise UserError(f"there is no graft {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]
