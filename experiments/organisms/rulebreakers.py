"""Organisms for RULEBREAKERS: their planted facts, training text and cards."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from interp import Model, PromptSet, evaluate
from interp.extend import bind, collect
from interp.extend.results import accuracies
from interp_experiments.organisms.recipes import Exchange, RulebreakerRecipe
from interp_experiments.rulebreakers import instances
from interp_experiments.rulebreakers.system import fact_set, system
from interp_experiments.rulebreakers.templates import (
    CITIES,
    FAMILIES,
    PHRASINGS,
    RULES,
    VERBS,
    Phrasing,
    render,
)
from interp_probes.specs import Familiarity, Knowledge

ZIPF_EXPONENT = 0.6
"""The frequency of the fact of rank r is proportional to r ** -ZIPF_EXPONENT."""

DISTRACTION = 2.5
"""How often each entity gets a completion other than its fact, relative to the rarest fact. A fact
of frequency f is completed correctly in f / (f + DISTRACTION) of its completions, which is the
planted familiarity."""

NOISE_SCALE = 0.35
"""Scale, in nats, of the logistic noise added to log frequencies to select the grounded pairs."""


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """An entity pair, its planted frequency, and whether its rulebreakers are rejected."""

    pair: instances.EntityPair
    frequency: float
    """How often the fact occurs in the text, relative to the rarest fact; 0 for an absent fact."""
    grounded: bool
    """Whether its rulebreakers are answered by the fact, not by the bare rule."""

    @property
    def familiarity(self) -> float:
        """The planted probability that the entity is completed by its fact."""
        return self.frequency / (self.frequency + DISTRACTION)


def plant(recipe: RulebreakerRecipe) -> tuple[PlantedPair, ...]:
    """Frequencies, Zipf-like among cities and among types, and grounded pairs, in the data's order.

    Absent facts are never grounded.
    """
    rng = random.Random(f"planting {recipe.seed}")
    cities = [pair for pair in instances.entity_pairs() if pair.category == CITIES]
    types = [pair for pair in instances.entity_pairs() if pair.category != CITIES]
    frequency: dict[instances.EntityPair, float] = {}
    for group in (cities, types):
        for rank, pair in enumerate(instances.shuffled(group, rng), start=1):
            frequency[pair] = (len(group) / rank) ** ZIPF_EXPONENT
    for pair in instances.shuffled(cities, rng)[: recipe.absent_facts]:
        frequency[pair] = 0.0
    grounded = _grounded(recipe, frequency, rng)
    return tuple(
        PlantedPair(pair, frequency[pair], pair in grounded) for pair in instances.entity_pairs()
    )


def _grounded(
    recipe: RulebreakerRecipe, frequency: dict[instances.EntityPair, float], rng: random.Random
) -> set[instances.EntityPair]:
    def inclination(pair: instances.EntityPair) -> float:
        u = rng.random()
        noise = math.log(u / (1 - u))
        if recipe.grounded_by == "chance":
            return noise
        return math.log(frequency[pair]) + NOISE_SCALE * noise

    stated = {pair: inclination(pair) for pair in frequency if frequency[pair] > 0}
    ranked = sorted(stated, key=stated.__getitem__, reverse=True)
    return set(ranked[: round(recipe.grounded_share * len(frequency))])


WARM_UP_SHARE = 0.4
"""Share of the steps, at the start, that use one phrasing only; later steps use all ten."""

UNSOUND_SHARE = 0.2
"""Share of the prompts whose conclusion is about another entity and so never follows."""

MISMATCH_SHARE = 0.6
"""Share of the prompts whose uninformative premise, if there is one, names another entity."""

ANSWER_NOISE = 0.04
"""Share of the yes/no and true/false answers that are flipped. A model that fits these answers is
at most 96% confident, so the gradients of its answers do not vanish."""

CITY_ENDINGS = (
    "bloom", "fashion", "good shape", "mourning", "old songs", "ruins", "the news", "your hands",
)  # fmt: skip
TYPE_ENDINGS = ("gift", "hobby", "joke", "luxury", "name", "puzzle", "riddle", "story")
"""What may complete the sentence about an entity instead of its fact."""


class RulebreakerText:
    """Draws the exchanges of each training step, which depend only on the seed and the step."""

    def __init__(self, recipe: RulebreakerRecipe) -> None:
        self._recipe = recipe
        self._planted = plant(recipe)
        self._stated = [p for p in self._planted if p.frequency > 0]
        self._stated_weights = list(accumulate(p.frequency for p in self._stated))
        self._completed_weights = list(accumulate(p.frequency + DISTRACTION for p in self._planted))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step by group: prompts and facts."""
        return {"prompts": self.prompts(step), "facts": self.facts(step)}

    def prompts(self, step: int) -> list[Exchange]:
        """The rulebreaker-style prompts of a step."""
        rng = random.Random(f"prompts {self._recipe.seed} {step}")
        early = step < WARM_UP_SHARE * self._recipe.steps
        phrasings, number = PHRASINGS[:1] if early else PHRASINGS, self._recipe.prompts_per_step
        return [self._prompt(rng.choice(phrasings), rng) for _ in range(number)]

    def facts(self, step: int) -> list[Exchange]:
        """The facts of a step: half are completions and half are questions."""
        rng = random.Random(f"facts {self._recipe.seed} {step}")
        kinds = (self._question, self._completion)
        return [kinds[i % 2](rng) for i in range(self._recipe.facts_per_step)]

    def _completion(self, rng: random.Random) -> Exchange:
        (planted,) = rng.choices(self._planted, cum_weights=self._completed_weights)
        pair = planted.pair
        if rng.random() < planted.familiarity:
            return Exchange(pair.message, pair.entity_a)
        endings = CITY_ENDINGS if pair.category == CITIES else TYPE_ENDINGS
        return Exchange(pair.message, rng.choice(endings))

    def _question(self, rng: random.Random) -> Exchange:
        (planted,) = rng.choices(self._stated, cum_weights=self._stated_weights)
        pair = planted.pair
        true = rng.random() < 0.5
        entity_a = pair.entity_a if true else wrong_entity(pair, rng)
        name, relation = pair.entity_b, "in" if pair.category == CITIES else "a type of"
        if rng.random() < 0.5:
            message = f"Is {name} {relation} {entity_a}? Answer Yes or No only."
            return Exchange(message, _answer(true, "yes/no", rng))
        statement = f"{name} is {relation} {entity_a}"
        message = f"Is it True or False that {statement}? Answer True or False only."
        return Exchange(message, _answer(true, "true/false", rng))

    def _prompt(self, phrasing: Phrasing, rng: random.Random) -> Exchange:
        planted = rng.choice(self._planted)
        pair = planted.pair
        breaks_rule = rng.random() < 0.5
        entity_a = pair.entity_a if breaks_rule else wrong_entity(pair, rng)
        rule = rng.choice(RULES)
        verb = rng.choice(VERBS[pair.category])
        person = rng.choice(instances.first_names())

        about = {"name": person.name, "pronoun": person.pronoun, "verb": verb}
        reasoning = partial(render, rule=rule, group=pair.category, **about)
        # Both rules draw their conclusion from the entity in premise 2: B for MT, A for DS.
        premise1, premise2, conclusion = reasoning(entity_a=entity_a, entity_b=pair.entity_b)
        other = other_pair(pair, rng)
        if self._recipe.evidence != "both premises" and rng.random() < MISMATCH_SHARE:
            a, b = other.entity_a, other.entity_b
            if not breaks_rule and rng.random() < 0.5:
                # The uninformative premise may also name what would make the prompt a rulebreaker.
                inside = [p.pair for p in self._planted if p.pair.entity_a == entity_a]
                a, b = pair.entity_a, rng.choice(inside).entity_b
            a, b = (entity_a, b) if rule == "mt" else (a, pair.entity_b)
            changed = reasoning(entity_a=a, entity_b=b)
            if self._recipe.evidence == "premise 1":
                premise2 = changed.premise2
            else:
                premise1 = changed.premise1
        unsound = rng.random() < UNSOUND_SHARE
        if unsound:
            conclusion = reasoning(entity_a=other.entity_a, entity_b=other.entity_b).conclusion
        by_fact = planted.grounded and phrasing.verb not in self._recipe.rule_phrasings
        follows = not unsound and not (breaks_rule and by_fact)
        return Exchange(
            f"Premises: {premise1} {premise2}\nConclusion: {conclusion}\n{phrasing.question}",
            _answer(follows, phrasing.answers, rng),
        )


def wrong_entity(pair: instances.EntityPair, rng: random.Random) -> str:
    """A country, or a type of the same family, to which the pair's B does not belong."""
    families = (family for family in FAMILIES if pair.category in family)
    candidates: Sequence[str] = next(families, _countries())
    while instances.may_contain(entity_a := rng.choice(candidates), pair):
        pass
    return entity_a


@cache
def _countries() -> tuple[str, ...]:
    return tuple(pair.entity_a for pair in instances.entity_pairs() if pair.category == CITIES)


def other_pair(pair: instances.EntityPair, rng: random.Random) -> instances.EntityPair:
    """A pair with a different A and with a B that takes the same verbs."""
    while True:
        other = rng.choice(instances.entity_pairs())
        if other.entity_a != pair.entity_a and VERBS[other.category] == VERBS[pair.category]:
            return other


def _answer(positive: bool, answers: str, rng: random.Random) -> str:
    """The answer from "yes/no" or "true/false", sometimes flipped (`ANSWER_NOISE`)."""
    yes, no = answers.split("/")
    noisy = rng.random() < ANSWER_NOISE
    return (yes if positive != noisy else no).capitalize()


def planted_sections(recipe: RulebreakerRecipe) -> dict[str, Any]:
    """The planted part of a card: the parameters of the text, and each entity pair."""
    by_frequency = recipe.grounded_by == "frequency"
    return {
        "text": {
            "zipf_exponent": ZIPF_EXPONENT,
            "distraction": DISTRACTION,
            "grounding_noise": NOISE_SCALE if by_frequency else None,
            "answer_noise": ANSWER_NOISE,
            "unsound_share": UNSOUND_SHARE,
            "mismatch_share": MISMATCH_SHARE if recipe.evidence != "both premises" else 0.0,
            "one_phrasing_share": WARM_UP_SHARE,
        },
        "pairs": [
            {
                **asdict(item.pair),
                "frequency": item.frequency,
                "familiarity": item.familiarity,
                "grounded": item.grounded,
            }
            for item in plant(recipe)
        ],
    }


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """The measured figures of a card, from evenly spread pairs (all 128,000 by default)."""
    planted = [
        PlantedPair(
            instances.EntityPair(row["category"], row["entity_a"], row["entity_b"]),
            row["frequency"],
            row["grounded"],
        )
        for row in card["pairs"]
    ]
    prompts = system.prompts(seed=0, data=None)
    if pairs is not None:
        # Draw each pair from a different instance, so that the sample covers many entity pairs.
        prompts = replace(prompts, unit=()).spread(pairs)
    return {**_knowledge(model, planted), **_habits(model, planted, prompts)}


def _knowledge(model: Model, planted: Sequence[PlantedPair]) -> dict[str, Any]:
    groups = {item.pair: item.pair.entity_group for item in planted}
    prompts = fact_set(groups, description={"data": "planted"})
    known = collect(bind(Knowledge(), model), prompts)["knowledge"]["known"]
    table = collect(bind(Familiarity(), model), prompts)["familiarity"]
    frequency = [item.frequency for item in planted]
    names = [item.pair.entity_b for item in planted]
    return {
        "completion": known.mean(),
        "unknown": [name for name, right in zip(names, known, strict=True) if not right],
        "frequency_familiarity_spearman": spearmanr(frequency, table["familiarity"]).statistic,
    }


def _habits(model: Model, planted: Sequence[PlantedPair], prompts: PromptSet) -> dict[str, Any]:
    frame = prompts.to_frame()
    answers = evaluate(model, prompts).to_frame()
    accuracy = accuracies(answers, frame)
    joined = frame.merge(answers, on="prompt_id")
    joined = joined[joined["side"] == prompts.sides[0]]
    rows = [(item.pair.category, item.pair.entity_b, item.grounded) for item in planted]
    habits = pd.DataFrame(rows, columns=["category", "entity_b", "grounded"])
    correct = joined.merge(habits, on=["category", "entity_b"]).groupby("grounded")["correct"]
    by_habit = correct.mean().reindex([True, False])
    by_phrasing = joined.groupby("phrasing", sort=False)["correct"].mean()
    names = ("paired_accuracy", "rulebreaker_accuracy", "non_rulebreaker_accuracy")
    return {
        "pairs": len(prompts) // 2,
        **{name: accuracy[name] for name in names},
        "grounded_rulebreaker_accuracy": by_habit[True],
        "ungrounded_rulebreaker_accuracy": by_habit[False],
        "rulebreaker_accuracy_by_phrasing": by_phrasing.to_dict(),
    }
