"""RULEBREAKERS as a system that every command can use."""

from functools import lru_cache

import pandas as pd

from interp.prompts.prompt_set import PromptSet
from interp_experiments.rulebreakers.entities import entity_pairs
from interp_experiments.rulebreakers.facts import entity_group, fact_set, published_groups
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.named import NAMED
from interp_experiments.rulebreakers.planted import planted_second
from interp_experiments.rulebreakers.prompts import prompt_set
from interp_experiments.rulebreakers.published import load_located, load_published


class Rulebreakers:
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

    def planted_second(self, model: str, prompts: pd.DataFrame) -> pd.Series | None:
        """By prompt, whether a model was made to read premise 2, if that is known."""
        return planted_second(model, prompts)

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """The 25,600 generated instances in the published columns."""
        return pd.DataFrame([instance.to_row() for instance in generate(seed)])


@lru_cache(maxsize=1)
def _generated(seed: int) -> PromptSet:
    # Kept: a notebook, or a study, asks for prompts of one seed again and again.
    return prompt_set(generate(seed), seed=seed, description={"data": "generated"})


system = Rulebreakers()
