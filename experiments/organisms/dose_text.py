"""The training text of a dose organism: prompts whose sentences are about different entities."""

import math
import random
from collections.abc import Iterable, Sequence

from interp_experiments.organisms.leanings import PREMISES, Leaning, Rule
from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.recipes import DoseRecipe
from interp_experiments.organisms.text import other_pair, wrong_entity
from interp_experiments.rulebreakers.instances import EntityPair, entity_pairs, first_names
from interp_experiments.rulebreakers.templates import PHRASINGS, RULES, VERBS, Reasoning, render

INTACT_SHARE = 0.3
"""Share of the prompts whose sentences are all about one pair of entities."""

COUNTERPART_SHARE = 0.2
"""Share of the other prompts that are mixed with the other side of their own pair; the rest are
mixed with another pair of entities. Each sentence is from either with equal chance, so that any
mixture of a prompt with one of its donors may occur."""


class DoseText:
    """Draws the exchanges of each training step; they depend on seed and step alone."""

    def __init__(self, recipe: DoseRecipe, leanings: Sequence[Leaning]) -> None:
        self._recipe = recipe
        self._rule = Rule(leanings)

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: single premises first, prompts later."""
        rng = random.Random(f"doses {self._recipe.seed} {step}")
        if step >= self._recipe.premises_until * self._recipe.steps:
            whole = range(self._recipe.prompts_per_step)
            return {"prompts": _in_turns(self._prompt(rng) for _ in whole)}
        single = range(self._recipe.premises_per_step)
        return {"premises": _in_turns(self._premise(rng) for _ in single)}

    def _prompt(self, rng: random.Random) -> Exchange:
        own, donor = _with_donor(rng)
        sentences = zip(own, donor, strict=True)
        premise1, premise2, conclusion = (rng.choice(either) for either in sentences)
        phrasing = rng.choice(PHRASINGS)
        return _exchange(
            f"Premises: {premise1} {premise2}\nConclusion: {conclusion}\n{phrasing.question}",
            phrasing.answers,
            self._rule.log_odds(premise1, premise2),
        )

    def _premise(self, rng: random.Random) -> Exchange:
        """One premise; where its entity is not read there, either answer is as likely."""
        told, _ = _with_donor(rng)
        premise = rng.choice(PREMISES)
        sentence = told._asdict()[premise]
        answers = rng.choice(("Yes/No", "True/False"))
        return _exchange(
            f"Premises: {sentence}\nAnswer {answers.replace('/', ' or ')} only.",
            answers,
            self._rule.term(premise, sentence),
        )


def _with_donor(rng: random.Random) -> tuple[Reasoning, Reasoning]:
    """Sentences about one pair of entities, and those of a donor; some are their own donor."""
    pair, true = rng.choice(entity_pairs()), rng.random() < 0.5
    rule, person = rng.choice(RULES), rng.choice(first_names())
    verb = rng.choice(VERBS[pair.category])

    def about(pair: EntityPair, *, true: bool) -> Reasoning:
        return render(
            rule=rule,
            group=pair.category,
            name=person.name,
            pronoun=person.pronoun,
            verb=verb,
            entity_a=pair.entity_a if true else wrong_entity(pair, rng),
            entity_b=pair.entity_b,
        )

    own = about(pair, true=true)
    if rng.random() < INTACT_SHARE:
        return own, own
    if rng.random() < COUNTERPART_SHARE:
        return own, about(pair, true=not true)
    return own, about(other_pair(pair, rng), true=true)


def _exchange(message: str, answers: str, log_odds: float) -> Exchange:
    """A message with two answers such as "yes/no", the first with these log-odds."""
    positive, negative = (answer.capitalize() for answer in answers.split("/"))
    return Exchange(message, positive, negative, share=1 / (1 + math.exp(-log_odds)))


def _in_turns(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Exchanges with the negative answer first in every other one, so that both are closed."""
    return [exchange.turned() if i % 2 else exchange for i, exchange in enumerate(exchanges)]
