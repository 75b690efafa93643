"""Dose organisms: every entity leans towards yes or no, and is read in only one premise.

The log-odds of the positive answer are g_1 + g_2, where g_i is the leaning of the entity that
premise i names last, and 0 if that entity is read in the other premise (docs/organisms.md, also on
Shapley values). In the data set, both premises of a prompt are about one entity.
"""

import math
import random
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any

import pandas as pd

from interp import Effects, Model, Prompt, PromptSet
from interp.extend import Donor, bind, collect
from interp.extend.prompts import DONORS, donors_of, with_donors
from interp.extend.statistics import cluster_mean
from interp_experiments.organisms.recipes import RECIPES, DoseRecipe, Exchange
from interp_experiments.organisms.rulebreakers import other_pair, wrong_entity
from interp_experiments.rulebreakers import templates
from interp_experiments.rulebreakers.instances import (
    EntityPair,
    entity_pairs,
    first_names,
    shuffled,
)
from interp_experiments.rulebreakers.prompts import POSITIVE
from interp_experiments.rulebreakers.system import system

LEANING = 2.0
"""Log-odds, in nats, that an entity adds or subtracts in the premise in which it is read."""

PREMISES = ("premise1", "premise2")


@dataclass(frozen=True, slots=True)
class Leaning:
    """The planted properties of one entity."""

    entity: str
    log_odds: float
    """Its contribution to the log-odds of the positive answer, in nats."""
    premise: str
    """The only premise in which the entity is read."""


def plant_leanings(recipe: DoseRecipe) -> tuple[Leaning, ...]:
    """For every entity in the data set, its leaning and the premise in which it is read.

    Half of the countries, and half of each family's types, lean towards yes. The recipe's share of
    the countries, and of the types, is read in premise 1: up to rounding, the same share of both
    leanings. A fine-tuned organism has the leanings of its base.
    """
    base = RECIPES[recipe.base] if recipe.base else recipe
    signs = random.Random(f"leanings {base.seed}")
    places = random.Random(f"premises {recipe.seed}")
    countries = [pair.entity_a for pair in entity_pairs() if pair.category == templates.CITIES]
    types = [_halved(family, signs) for family in templates.FAMILIES]
    planted: dict[str, Leaning] = {}
    for group in (_halved(countries, signs), list(chain.from_iterable(types))):
        planted |= {leaning.entity: leaning for leaning in _placed(group, recipe.share, places)}
    named_b = (replace(planted[pair.entity_a], entity=pair.entity_b) for pair in entity_pairs())
    return (*planted.values(), *named_b)


def _halved(entities: Sequence[str], rng: random.Random) -> list[tuple[str, float]]:
    """Entities in random order, with their leanings; every second one leans towards yes."""
    return [(e, LEANING if i % 2 else -LEANING) for i, e in enumerate(shuffled(entities, rng))]


def _placed(
    group: Sequence[tuple[str, float]], share: float, rng: random.Random
) -> Iterator[Leaning]:
    """Entities with their premises: `share` of the entities of each leaning get premise 1."""
    ordered = sorted(shuffled(group, rng), key=itemgetter(1))
    for i, (entity, log_odds) in enumerate(ordered):
        # True if the running sum of the shares, when rounded, increases at this entity.
        first = math.floor((i + 1) * share + 0.5) > math.floor(i * share + 0.5)
        yield Leaning(entity, log_odds, PREMISES[0] if first else PREMISES[1])


def named_last(sentence: str, entities: Container[str]) -> str:
    """The entity that a premise names last; the longest matching name counts."""
    words = sentence.removesuffix(".").split(" ")
    endings = (" ".join(words[start:]) for start in range(len(words)))
    return next(name for name in endings if name in entities)


class Rule:
    """The planted rule, as a function of the premises."""

    def __init__(self, leanings: Iterable[Leaning]) -> None:
        self._leanings = {leaning.entity: leaning for leaning in leanings}

    def read(self, sentence: str) -> Leaning:
        """The leaning of the entity that a premise names last."""
        return self._leanings[named_last(sentence, self._leanings)]

    def term(self, premise: str, sentence: str) -> float:
        """What a premise adds to the log-odds of the positive answer, in nats."""
        leaning = self.read(sentence)
        return leaning.log_odds if leaning.premise == premise else 0.0

    def log_odds(self, premise1: str, premise2: str) -> float:
        """The planted log-odds of the positive answer, in nats."""
        return self.term(PREMISES[0], premise1) + self.term(PREMISES[1], premise2)

    def decisive(self, prompt: Prompt) -> str:
        """The premise that decides the answer to a prompt of the data set."""
        return self.read(prompt.segment_text(PREMISES[0])).premise

    def shapley(self, prompt: Prompt, donors: Sequence[Donor]) -> dict[str, float]:
        """The planted Shapley value of each segment: nats added to the positive answer."""
        values = {
            premise: self.term(premise, prompt.segment_text(premise))
            - math.fsum(self.term(premise, donor.segments[premise]) for donor in donors)
            / len(donors)
            for premise in PREMISES
        }
        return {**values, "conclusion": 0.0}


INTACT_SHARE, COUNTERPART_SHARE = 0.3, 0.2
"""Share of the prompts in which all sentences are about one pair of entities; and of the others,
the share mixed with the other side of their own pair instead of with another pair. Each sentence
comes from either source with equal probability, so any mixture of a prompt with a donor may occur.
"""


class DoseText:
    """Draws the exchanges of each training step, which depend only on the seed and the step."""

    def __init__(self, recipe: DoseRecipe) -> None:
        self._recipe = recipe
        self._rule = Rule(plant_leanings(recipe))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: single premises in early steps, prompts in later ones."""
        rng = random.Random(f"doses {self._recipe.seed} {step}")
        if step >= self._recipe.premises_until * self._recipe.steps:
            whole = range(self._recipe.prompts_per_step)
            return {"prompts": in_turns(self._prompt(rng) for _ in whole)}
        single = range(self._recipe.premises_per_step)
        return {"premises": in_turns(self._premise(rng) for _ in single)}

    def _prompt(self, rng: random.Random) -> Exchange:
        message, said, answers = mixed_prompt(rng)
        return by_log_odds(message, answers, self._rule.log_odds(said.premise1, said.premise2))

    def _premise(self, rng: random.Random) -> Exchange:
        """A single premise; unless its entity is read in it, both answers are equally likely."""
        reasoning, _ = with_donor(rng)
        premise = rng.choice(PREMISES)
        sentence = reasoning._asdict()[premise]
        answers = rng.choice(("Yes/No", "True/False"))
        return by_log_odds(
            f"Premises: {sentence}\nAnswer {answers.replace('/', ' or ')} only.",
            answers,
            self._rule.term(premise, sentence),
        )


def mixed_prompt(rng: random.Random) -> tuple[str, templates.Reasoning, str]:
    """A message with sentences drawn from two pairs, the sentences, and its answer options."""
    said = templates.Reasoning(*map(rng.choice, zip(*with_donor(rng), strict=True)))
    phrasing = rng.choice(templates.PHRASINGS)
    message = f"Premises: {said.premise1} {said.premise2}\nConclusion: {said.conclusion}"
    return f"{message}\n{phrasing.question}", said, phrasing.answers


def with_donor(rng: random.Random) -> tuple[templates.Reasoning, templates.Reasoning]:
    """The sentences about one pair of entities, and those of a donor (possibly the same pair)."""
    pair, true = rng.choice(entity_pairs()), rng.random() < 0.5
    rule, person = rng.choice(templates.RULES), rng.choice(first_names())
    verb = rng.choice(templates.VERBS[pair.category])

    write = partial(
        templates.render, rule=rule, name=person.name, pronoun=person.pronoun, verb=verb
    )

    def about(pair: EntityPair, *, true: bool) -> templates.Reasoning:
        entity_a = pair.entity_a if true else wrong_entity(pair, rng)
        return write(group=pair.category, entity_a=entity_a, entity_b=pair.entity_b)

    reasoning = about(pair, true=true)
    if rng.random() < INTACT_SHARE:
        return reasoning, reasoning
    if rng.random() < COUNTERPART_SHARE:
        return reasoning, about(pair, true=not true)
    return reasoning, about(other_pair(pair, rng), true=true)


def by_log_odds(message: str, answers: str, log_odds: float, *, given: str = "") -> Exchange:
    """A message with two answers, such as "yes/no"; the first has the given log-odds."""
    positive, negative = (answer.capitalize() for answer in answers.split("/"))
    share = 1 / (1 + math.exp(-log_odds))
    return Exchange(message, positive, negative, share=share, given=given)


def in_turns(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The exchanges, with the two answers of every second one swapped (see `Exchange.other`)."""
    return [exchange.turned() if i % 2 else exchange for i, exchange in enumerate(exchanges)]


def planted_sections(recipe: DoseRecipe) -> dict[str, Any]:
    """The planted part of a card: the parameters of the text, and the properties of each entity."""
    return {
        "text": {
            "leaning": LEANING,
            "intact_share": INTACT_SHARE,
            "counterpart_share": COUNTERPART_SHARE,
        },
        "entities": [asdict(leaning) for leaning in plant_leanings(recipe)],
    }


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """The measured figures of a card, from evenly spread pairs (120 if `pairs` is None).

    Each prompt is measured in about sixty mixtures with its donors. Shapley values are in logits,
    for the model's own answer.
    """
    rule = Rule(Leaning(**row) for row in card["entities"])
    prompts = spread_prompts(pairs or 120)
    rows = collect(bind(Effects(donors=DONORS), model), prompts)["segment_effects"]
    rows = rows[rows["other_segment"].isna() & (rows["donor_kind"] == "instance")]
    planted_rows = pd.DataFrame(row for prompt in prompts for row in _planted_rows(rule, prompt))
    table = rows.merge(planted_rows, on=["prompt_id", "segment"], how="left", validate="1:1")
    sign = table["answer"].isin(POSITIVE) * 2 - 1
    table["planted"] *= sign
    premises = table[table["segment"].isin(PREMISES)]
    measured, planted = (
        premises.pivot(index="prompt_id", columns="segment", values=column).diff(axis=1).iloc[:, 1]
        for column in ("shapley", "planted")
    )
    clear = planted.abs() > 0.1  # closer values, in nats, are not ranked
    accepted = (table["planted_value"] * sign).groupby(table["prompt_id"]).first() > 0
    return {
        "pairs": pairs or 120,
        "answers_as_planted": accepted.mean(),
        "larger_premise_as_planted": (measured[clear] * planted[clear] > 0).mean(),
        "mean_deviation_from_planted": (table["shapley"] - table["planted"]).abs().mean(),
        "shapley": list(_shapley_rows(table)),
    }


def spread_prompts(pairs: int) -> PromptSet:
    """Pairs of prompts with their donors, spread evenly over the data set."""
    return with_donors(system.prompts(seed=0, data=None).spread(pairs), count=DONORS)


def _planted_rows(rule: Rule, prompt: Prompt) -> Iterator[dict[str, object]]:
    """Planted Shapley values of a prompt's segments (positive answer), and what decides it."""
    premise1, premise2 = (prompt.segment_text(name) for name in PREMISES)
    leaning = rule.read(premise1)
    for segment, planted in rule.shapley(prompt, donors_of(prompt, "instance")).items():
        yield {
            "prompt_id": prompt.id,
            "segment": segment,
            "planted": planted,
            "decisive": leaning.premise,
            "entity": leaning.entity,
            "planted_value": rule.log_odds(premise1, premise2),
        }


def _shapley_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Mean Shapley values by deciding premise and segment, with 95% intervals over entities."""
    columns = {"value": "shapley", "cluster": "entity", "weight": "weight"}
    for (decisive, segment), rows in table.groupby(["decisive", "segment"]):
        mean = cluster_mean(rows.assign(weight=1.0), **columns)
        yield {
            "decisive": decisive,
            "segment": segment,
            "prompts": len(rows),
            "planted": rows["planted"].mean(),
            "measured": mean.mean,
            "low": mean.low,
            "high": mean.high,
        }
