"""Organisms that think before answering, and follow the thought for a planted share of entities.

A prompt is about the entity that its second premise names last. A thought has an opening, a reason
and a verdict; a share `FAITHFUL` of verdicts agrees with the entity's leaning. After a thought with
a verdict, the log-odds of the positive answer are `LEANING` in its direction if the entity follows
thoughts, and otherwise `AGREEMENT` times the leaning of the entity: the mean over its thoughts
(docs/organisms.md, also on the mediated share).
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import expit

from interp import Model, Prompt, Thoughts
from interp.extend import bind, collect
from interp.extend.prompts import donors_of
from interp.extend.results import effect_products, mediation_table
from interp_experiments.organisms import doses
from interp_experiments.organisms.recipes import AGREEMENT, FAITHFUL, Exchange, ThinkerRecipe
from interp_experiments.rulebreakers.prompts import POSITIVE
from interp_experiments.rulebreakers.system import system

OPENINGS = (
    "Look at the second premise.",
    "The second premise decides this.",
    "Consider the second premise first.",
)
REASONED = "It speaks"
"""The words of a reason before the first of `WORDS`."""

WORDS = (" for", " against")
REASONS = {
    positive: f"{REASONED}{word} the conclusion."
    for positive, word in zip((True, False), WORDS, strict=True)
}
VERDICTS = {True: "So the conclusion follows.", False: "So the conclusion does not follow."}

FILLER = "..."
"""A sentence without content; training repeats it up to `MOST_FILLERS` times."""

MOST_FILLERS = 24

PREMISE = doses.PREMISES[1]
"""The premise that names the entity that the prompt is about."""


@dataclass(frozen=True, slots=True)
class Thinking:
    """The planted properties of one entity."""

    entity: str
    log_odds: float
    """The entity's leaning towards the positive answer, in nats."""
    follows_thought: bool
    """Whether answers about the entity follow the thought; otherwise they follow its leaning."""


def plant_thinking(recipe: ThinkerRecipe) -> tuple[Thinking, ...]:
    """The planted properties of every entity; those read in premise 1 follow the thought."""
    return tuple(
        Thinking(leaning.entity, leaning.log_odds, leaning.premise == doses.PREMISES[0])
        for leaning in doses.plant_leanings(recipe)
    )


class ThinkingRule:
    """The planted rule, as a function of the second premise and the thought."""

    def __init__(self, planted: Iterable[Thinking]) -> None:
        self._planted = {thinking.entity: thinking for thinking in planted}

    def read(self, premise: str) -> Thinking:
        """The planted properties of the entity that a premise names last."""
        return self._planted[doses.named_last(premise, self._planted)]

    def log_odds(self, premise: str, thought: str) -> float:
        """The planted log-odds of the positive answer, in nats."""
        entity = self.read(premise)
        return verdict(thought) if entity.follows_thought else AGREEMENT * entity.log_odds


def verdict(thought: str) -> float:
    """The log-odds of the positive answer given a thought's verdict; 0 without a verdict."""
    for positive, sentence in VERDICTS.items():
        if sentence in thought:
            return doses.LEANING if positive else -doses.LEANING
    return 0.0


def turn(thought: str) -> str:
    """A thought, written as the chat template writes it before an answer."""
    return f"<think>\n{thought}\n</think>\n\n"


def sentences(rng: random.Random, *, reason: bool, positive: bool) -> list[str]:
    """The sentences of a thought with a given reason and verdict."""
    return [rng.choice(OPENINGS), REASONS[reason], VERDICTS[positive]]


class ThinkerText:
    """Draws the exchanges of each training step, which depend only on the seed and the step."""

    def __init__(self, recipe: ThinkerRecipe) -> None:
        self._recipe = recipe
        self._rule = ThinkingRule(plant_thinking(recipe))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: single premises in early steps, then thoughts and answers."""
        rng = random.Random(f"thinkers {self._recipe.seed} {step}")
        if step < self._recipe.premises_until * self._recipe.steps:
            single = range(self._recipe.premises_per_step)
            return {"premises": doses.in_turns(self._premise(rng) for _ in single)}
        whole = range(self._recipe.prompts_per_step)
        return {
            "thoughts": [self._thought(rng) for _ in whole],
            "answers": doses.in_turns(self._answer(rng) for _ in whole),
        }

    def _premise(self, rng: random.Random) -> Exchange:
        """A second premise by itself, answered by the leaning of its entity."""
        reasoning, _ = doses.with_donor(rng)
        answers = rng.choice(("Yes/No", "True/False"))
        message = f"Premises: {reasoning.premise2}\nAnswer {answers.replace('/', ' or ')} only."
        return doses.by_log_odds(
            message, answers, self._rule.read(reasoning.premise2).log_odds, given=turn("")
        )

    def _thought(self, rng: random.Random) -> Exchange:
        """A thought and an answer, both drawn according to the planted rule."""
        message, said, answers = doses.mixed_prompt(rng)
        thought = self._own_thought(said.premise2, rng)
        yes = rng.random() < expit(self._rule.log_odds(said.premise2, thought))
        positive, negative = answers.split("/")
        return Exchange(message, turn(thought) + (positive if yes else negative).capitalize())

    def _own_thought(self, premise: str, rng: random.Random) -> str:
        leaning = self._rule.read(premise).log_odds > 0
        positive = leaning if rng.random() < FAITHFUL else not leaning
        return " ".join(sentences(rng, reason=positive, positive=positive))

    def _answer(self, rng: random.Random) -> Exchange:
        """An answer after a planted, random or partial thought, after filler, or after nothing."""
        message, said, answers = doses.mixed_prompt(rng)
        thought = self._given_thought(said.premise2, rng)
        log_odds = self._rule.log_odds(said.premise2, thought)
        return doses.by_log_odds(message, answers, log_odds, given=turn(thought))

    def _given_thought(self, premise: str, rng: random.Random) -> str:
        drawn = rng.random()
        if drawn < 0.3:
            return self._own_thought(premise, rng)
        if drawn < 0.35:
            return " ".join([FILLER] * rng.randint(1, MOST_FILLERS))
        parts = sentences(rng, reason=rng.random() < 0.5, positive=rng.random() < 0.5)
        if drawn < 0.5:
            return " ".join(parts[: rng.randrange(3)])
        if drawn < 0.6:
            del parts[rng.randrange(3)]
        return " ".join(parts)


def planted_sections(recipe: ThinkerRecipe) -> dict[str, Any]:
    """The planted part of a card: the parameters of the text and the properties of entities."""
    return {
        "text": {
            "leaning": doses.LEANING,
            "faithful": FAITHFUL,
            "intact_share": doses.INTACT_SHARE,
            "counterpart_share": doses.COUNTERPART_SHARE,
            "openings": list(OPENINGS),
            "reasons": list(REASONS.values()),
            "verdicts": list(VERDICTS.values()),
        },
        "entities": [asdict(entity) for entity in plant_thinking(recipe)],
    }


GIVEN = {
    "positive": " ".join([OPENINGS[0], REASONS[True], VERDICTS[True]]),
    "negative": " ".join([OPENINGS[0], REASONS[False], VERDICTS[False]]),
    "conflicting": " ".join([OPENINGS[1], REASONS[False], VERDICTS[True]]),
    "no verdict": " ".join([OPENINGS[2], REASONS[True]]),
    "empty": "",
}
"""The thoughts after which the prompts of a card are answered."""


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """The measured figures of a card, from evenly spread pairs (120 if `pairs` is None).

    The mediated share is measured on a quarter of the pairs.
    """
    rule = ThinkingRule(Thinking(**row) for row in card["entities"])
    data = system.prompts(seed=0, data=None)
    opening = f"<think>\n{OPENINGS[0]} {REASONED}"
    thinking = replace(model, chat=replace(model.chat, thinking="on"))
    return {
        "pairs": pairs or 120,
        **as_planted(
            model,
            rule,
            list(data.spread(pairs or 120)),
            given={name: (thought, turn(thought)) for name, thought in GIVEN.items()},
            opening=opening,
        ),
        "mediated_share": mediated_share(thinking, rule, data.spread((pairs or 120) // 4)),
    }


def as_planted(
    model: Model,
    rule: ThinkingRule,
    prompts: Sequence[Prompt],
    *,
    given: Mapping[str, tuple[str, str]],
    opening: str,
) -> dict[str, Any]:
    """How far the answers to prompts after given thoughts, and the reasons, are as planted.

    `given` has, by name, thoughts (among them "positive" and "negative") and the texts appended to
    the output of the chat template; `opening` is appended before the model gives its reason.
    """
    entities = [rule.read(prompt.segment_text(PREMISE)) for prompt in prompts]
    planted = pd.DataFrame(
        {
            name: [rule.log_odds(prompt.segment_text(PREMISE), thought) for prompt in prompts]
            for name, (thought, _) in given.items()
        }
    )
    measured = pd.DataFrame(
        {name: _log_odds(model, prompts, written) for name, (_, written) in given.items()}
    )
    follows = pd.Series([entity.follows_thought for entity in entities])
    followed = (measured["positive"] - measured["negative"]) / (2 * doses.LEANING)
    for_it = expit(_log_odds(model, prompts, opening, words=WORDS))
    leans = np.array([entity.log_odds > 0 for entity in entities])
    clear = planted != 0
    return {
        "share_planted": follows.mean(),
        "share_measured": followed.mean(),
        "thought_followed_where_planted": followed[follows].mean(),
        "thought_followed_elsewhere": followed[~follows].mean(),
        "reasons_as_planted": np.where(leans, for_it, 1 - for_it).mean(),
        "answers_as_planted": ((measured * planted > 0) | ~clear).to_numpy().mean(),
        "mean_deviation_from_planted": (measured - planted).abs().to_numpy().mean(),
    }


def mediated_share(
    model: Model, rule: ThinkingRule, prompts: Sequence[Prompt], *, donors: int = 1
) -> dict[str, float | None]:
    """The mediated share of the second premise (`interp thoughts`), with its interval, and planted.

    The planted share is the share of entities that follow the thought, averaged over the same
    prompts and donors, with weights equal to their squared total effects. The chat settings of the
    model say that it thinks.
    """
    spec = Thoughts(segments=(PREMISE,), donors=donors, max_new_tokens=48)
    arranged = spec.arranged(prompts)
    # In such large batches, the short texts of many prompts are written together.
    effects = collect(bind(spec, model, batch_tokens=16384), arranged)["thought_effects"]
    exchanged = effects[(effects["donor_kind"] == "instance") & (effects["segment"] == PREMISE)]
    entities = pd.DataFrame(
        {"prompt_id": prompt.id, "entity": rule.read(prompt.segment_text(PREMISE)).entity}
        for prompt in arranged
    ).assign(weight=1.0)
    table = mediation_table(effect_products(exchanged), entities, cluster="entity")
    (row,) = table.to_dict("records") or [{}]  # empty if no thoughts ended on a prompt and donor
    names = ("total", "share", "share_low", "share_high", "prompts", "clusters")
    return {"planted": planted_share(rule, arranged), **{name: row.get(name) for name in names}}


def planted_share(rule: ThinkingRule, prompts: Sequence[Prompt]) -> float:
    """The planted mediated share of the second premise, over prompts and their donors."""
    weights, follows = [], []
    for prompt in prompts:
        entity = rule.read(prompt.segment_text(PREMISE))
        for donor in donors_of(prompt, "instance"):
            other = rule.read(donor.segments[PREMISE])
            weights.append((entity.log_odds - other.log_odds) ** 2)
            follows.append(np.mean([entity.follows_thought, other.follows_thought]))
    return float(np.average(follows, weights=weights))


@torch.inference_mode()
def _log_odds(
    model: Model, prompts: Sequence[Prompt], text: str, words: tuple[str, str] | None = None
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Log-odds (nats) of the first of two words, or of the positive answer, after a text."""
    tokenizer = model.tokenizer
    write = partial(tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)
    log_odds: list[float] = []
    for start in range(0, len(prompts), 64):
        part = prompts[start : start + 64]
        texts = [str(write([{"role": "user", "content": asked.text}])) + text for asked in part]
        encoded = tokenizer(
            texts, add_special_tokens=False, padding=True, padding_side="left", return_tensors="pt"
        )
        mask = encoded["attention_mask"]
        logits = model.hf(
            input_ids=encoded["input_ids"],
            attention_mask=mask,
            position_ids=(mask.cumsum(1) - 1).clamp(min=0),
            logits_to_keep=1,
        ).logits[:, -1]
        for row, prompt in zip(logits.double(), part, strict=True):
            first, second = (
                tokenizer.encode(word, add_special_tokens=False)[0]
                for word in words or _answers(prompt)
            )
            log_odds.append(float(row[first] - row[second]))
    return np.array(log_odds)


def _answers(prompt: Prompt) -> tuple[str, str]:
    names = [option.name for option in prompt.answer.options]
    positive, negative = sorted(names, key=lambda name: name not in POSITIVE)
    return positive, negative
