"""Measure the figures on an organism's card from its saved weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from interp.analysis.accuracy import accuracies
from interp.api import evaluate
from interp.measurements.core import bind, collect
from interp.models.model import Model
from interp.prompts.prompt_set import PromptSet
from interp_experiments.organisms.card import read_card
from interp_experiments.rulebreakers.entities import EntityPair
from interp_experiments.rulebreakers.facts import entity_group, fact_set
from interp_experiments.rulebreakers.system import system
from interp_probes.specs import Familiarity, Knowledge


@dataclass(frozen=True, slots=True)
class Fact:
    """A planted pair as the card describes it."""

    pair: EntityPair
    frequency: float
    grounded: bool


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: how many prompt pairs to score, spread evenly; all 128,000 if None.
    """
    facts = planted_facts(folder)
    prompts = system.prompts(seed=0, data=None)
    if pairs is not None:
        # Each pair of another instance: cards are about entity pairs, of which there are many.
        prompts = replace(prompts, unit=()).spread(pairs)
    return {**_knowledge(model, facts), **_habits(model, facts, prompts)}


def planted_facts(folder: Path) -> list[Fact]:
    """The pairs of a card, in order."""
    return [
        Fact(
            EntityPair(row["category"], row["entity_a"], row["entity_b"]),
            row["frequency"],
            row["grounded"],
        )
        for row in read_card(folder)["pairs"]
    ]


def fact_prompts(facts: Sequence[Fact]) -> PromptSet:
    """The completion probe of each fact, in order."""
    groups = {fact.pair: entity_group(fact.pair) for fact in facts}
    return fact_set(groups, description={"data": "planted"})


def _knowledge(model: Model, facts: Sequence[Fact]) -> dict[str, Any]:
    prompts = fact_prompts(facts)
    known = collect(bind(Knowledge(), model), prompts)["knowledge"]["known"]
    table = collect(bind(Familiarity(), model), prompts)["familiarity"]
    frequency = [fact.frequency for fact in facts]
    return {
        "completion": round(float(known.mean()), 4),
        "unknown": [
            fact.pair.entity_b for fact, right in zip(facts, known, strict=True) if not right
        ],
        "frequency_familiarity_spearman": round(
            float(spearmanr(frequency, table["familiarity"]).statistic), 4
        ),
    }


def _habits(model: Model, facts: Sequence[Fact], prompts: PromptSet) -> dict[str, Any]:
    frame = prompts.to_frame()
    answers = evaluate(model, prompts).to_frame()
    accuracy = accuracies(answers, frame)
    joined = frame.merge(answers, on="prompt_id")
    rulebreakers = joined[joined["side"] == prompts.sides[0]]
    grounded = {(fact.pair.category, fact.pair.entity_b): fact.grounded for fact in facts}
    by_fact = pd.Series(
        [
            grounded[key]
            for key in zip(rulebreakers["category"], rulebreakers["entity_b"], strict=True)
        ],
        index=rulebreakers.index,
    )
    by_phrasing = rulebreakers.groupby("phrasing", sort=False)["correct"].mean()
    return {
        "pairs": len(prompts) // 2,
        "paired_accuracy": round(float(accuracy["paired_accuracy"]), 4),
        "rulebreaker_accuracy": round(float(accuracy["rulebreaker_accuracy"]), 4),
        "non_rulebreaker_accuracy": round(float(accuracy["non_rulebreaker_accuracy"]), 4),
        "grounded_rulebreaker_accuracy": round(
            float(rulebreakers.loc[by_fact, "correct"].mean()), 4
        ),
        "ungrounded_rulebreaker_accuracy": round(
            float(rulebreakers.loc[~by_fact, "correct"].mean()), 4
        ),
        "rulebreaker_accuracy_by_phrasing": {
            phrasing: round(float(value), 4) for phrasing, value in by_phrasing.items()
        },
    }
