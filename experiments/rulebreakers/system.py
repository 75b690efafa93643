"""RULEBREAKERS as a system that every command can use."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from interp.models.organisms import organism_card, organism_names
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System
from interp_experiments.rulebreakers.entities import entity_pairs
from interp_experiments.rulebreakers.facts import entity_group, fact_set, published_groups
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.named import NAMED
from interp_experiments.rulebreakers.prompts import prompt_set
from interp_experiments.rulebreakers.published import load_located, load_published

MIXED = "rulebreakers-mixed"
"""The prompts of organisms in which an entity decides the premise that is read."""


class Rulebreakers(System):
    """The rulebreakers and their counterparts (paper, Section 3)."""

    cluster = "entity_b"
    """The cluster of an answer: B, which names the entity pair."""

    contrasts = NAMED

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: instances generated from `seed`, or read from `data`, in ten phrasings."""
        if data is None:
            return _generated(seed)
        return prompt_set(load_published(data), seed=seed, description={"data": data})

    def facts(self, *, data: str | None) -> PromptSet:
        """A completion prompt for each entity pair: the 274 packaged ones, or those of `data`."""
        if data is None:
            packaged = {pair: entity_group(pair) for pair in entity_pairs()}
            return fact_set(packaged, description={"data": "packaged"})
        return fact_set(published_groups(load_located(data)), description={"data": data})

    def planted_probability(self, model: str, prompts: pd.DataFrame) -> pd.Series | None:
        """For each prompt, 1 if the organism was made to read premise 2, 0 if premise 1.

        The cards of some organisms list the premise for each entity: the entity that the premises
        name last, which is B under modus tollens and A under disjunctive syllogism. NaN for an
        entity that the card does not list.
        """
        entities = organism_card(model).get("entities") if model in organism_names() else None
        if entities is None:
            return None
        second = {own["entity"]: float(own["premise"] == "premise2") for own in entities}
        read = prompts["entity_b"].where(prompts["rule"] == "mt", prompts["entity_a"])
        return pd.Series(read.map(second).to_numpy(float), index=prompts["prompt_id"])

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """What decides the answers by recipe, and what was measured."""
        return _mixed_row(card) if card["system"] == MIXED else _grounded_row(card)

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """The 25,600 generated instances in the published columns."""
        return pd.DataFrame([instance.to_row() for instance in generate(seed)])


def _grounded_row(card: Mapping[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    return {
        "grounded_pairs": f"{recipe['grounded_share']:.0%} by {recipe['grounded_by']}",
        "evidence": recipe["evidence"],
        "bare_rule_under": " and ".join(recipe["rule_phrasings"]) or "-",
        "facts_known": measured["completion"],
        "frequency_with_familiarity": measured["frequency_familiarity_spearman"],
        "paired_accuracy": measured["paired_accuracy"],
        "rulebreaker_accuracy": measured["rulebreaker_accuracy"],
        "non_rulebreaker_accuracy": measured["non_rulebreaker_accuracy"],
    }


def _mixed_row(card: Mapping[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    return {
        "premise_1_decides": f"{recipe['share']:.0%}",
        "fine_tuned_from": recipe["base"] or "-",
        "answers_as_planted": measured["answers_as_planted"],
        "larger_premise_as_planted": measured["larger_premise_as_planted"],
        "deviation_from_planted": measured["mean_deviation_from_planted"],
    }


@lru_cache(maxsize=1)
def _generated(seed: int) -> PromptSet:
    # Kept: a notebook, or a study, asks for prompts of one seed again and again.
    return prompt_set(generate(seed), seed=seed, description={"data": "generated"})


system = Rulebreakers()
