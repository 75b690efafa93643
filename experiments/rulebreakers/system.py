"""RULEBREAKERS as a system: its prompts, and the facts behind them (Sections 4.1 and 6)."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from interp import Completion, Prompt, PromptSet, System, organism_card, organism_names
from interp.extend.prompts import FACT_SIDE, Contrast, Filter, longer_names, mentions
from interp_experiments.rulebreakers import instances
from interp_experiments.rulebreakers.prompts import prompt_set

if TYPE_CHECKING:
    import pandas as pd

NAMED = (
    Contrast("rule", ("mt", "ds")),
    Contrast("entity_group", ("geographical", "categorical")),
    Contrast("phrasing"),
    Contrast("model"),
)
"""Those about which the paper makes claims (of phrasings: "by over 0.4"), named before any data
were seen.
"""


class Rulebreakers(System):
    """The rulebreakers and their counterparts (paper, Section 3)."""

    cluster = "entity_b"

    contrasts = NAMED
    known = Filter("entity_group", ("geographical",))

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: instances generated from `seed`, or read from `data`, in ten phrasings."""
        if data is None:
            return _generated(seed)
        from interp_experiments.rulebreakers.published import load_published

        read = [instance for _, instance in load_published(data)]
        return prompt_set(read, seed=seed, description={"data": data})

    def facts(self, *, data: str | None) -> PromptSet:
        """A completion prompt for each entity pair: the 274 packaged ones, or those in `data`."""
        if data is None:
            return _packaged_facts()
        from interp_experiments.rulebreakers.published import load_published, published_pairs

        return fact_set(published_pairs(load_published(data)), description={"data": data})

    def planted_probability(self, model: str, prompts: "pd.DataFrame") -> "pd.Series | None":
        """For each prompt, 1 if the organism was made to read premise 2, and 0 if premise 1.

        Some cards list which premise an entity makes it read. The entity that counts is the
        one that the premises name last: B under modus tollens, A under disjunctive
        syllogism; NaN if not listed.
        """
        card = organism_card(model) if model in organism_names() else {}
        entities = [entity for entity in card.get("entities", ()) if "premise" in entity]
        if not entities:
            return None
        second = {entity["entity"]: float(entity["premise"] == "premise2") for entity in entities}
        read = prompts["entity_b"].where(prompts["rule"] == "mt", prompts["entity_a"])
        return read.map(second).astype(float).set_axis(prompts["prompt_id"]).rename(None)

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The planted cause of the answers, and the measured figures."""
        recipe, measured = card["recipe"], card["measured"]
        planted = {
            "fine_tuned_from": recipe.get("base") or "-",
            "answers_as_planted": measured.get("answers_as_planted"),
        }
        deviation = {"deviation_from_planted": measured.get("mean_deviation_from_planted")}
        if card["system"] == "rulebreakers-mixed":
            larger = {"larger_premise_as_planted": measured["larger_premise_as_planted"]}
            return {"premise_1_decides": f"{recipe['share']:.0%}", **planted, **larger, **deviation}
        if card["system"] == "rulebreakers-thoughts":
            share = measured["mediated_share"]
            shares = {"mediated_share": share["share"], "mediated_share_planted": share["planted"]}
            return {"follows_thought": f"{recipe['share']:.0%}", **planted, **shares, **deviation}
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

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """The 25,600 generated instances in the published columns."""
        import pandas as pd

        return pd.DataFrame([instance.to_row() for instance in instances.generate(seed)])


@lru_cache(maxsize=2)
def _generated(seed: int) -> PromptSet:
    # Cached because notebooks and studies request the prompts of a seed repeatedly; of two seeds
    # where a circuit is found on some prompts and tried on others.
    return prompt_set(instances.generate(seed), seed=seed, description={"data": "generated"})


@cache
def _packaged_facts() -> PromptSet:
    return fact_set(instances.entity_pairs(), description={"data": "packaged"})


def fact_set(pairs: Collection[instances.EntityPair], *, description: dict[str, str]) -> PromptSet:
    """One completion prompt for each entity pair, in order."""
    aliases = instances.further_names("aliases")
    names = {pair.entity_a: (pair.entity_a, *aliases.get(pair.entity_a, ())) for pair in pairs}
    longer = longer_names(name for synonyms in names.values() for name in synonyms)
    prompts = [_fact_prompt(pair, names[pair.entity_a], longer) for pair in pairs]
    return PromptSet(
        system="rulebreakers",
        sides=(FACT_SIDE,),
        strata=("entity_group", "category"),
        build=prompts.__getitem__,
        numbers=range(len(prompts)),
        description=description,
    )


def _fact_prompt(
    pair: instances.EntityPair, names: Sequence[str], longer: Mapping[str, Sequence[str]]
) -> Prompt:
    # The published cities are capitals.
    plain, question = "is the capital of", f"In which country is {pair.entity_b}?"
    if pair.entity_group == "categorical":
        plain, question = "is a kind of", f"What type of thing is {pair.entity_b}?"
    # Names of other answers: "South Sudan" is not "Sudan".
    holding = {other for name in names for other in longer[name]}.difference(names)
    lookalikes = instances.further_names("lookalikes").get(pair.entity_a, ())
    others = [*(name for name in longer if name in holding), *lookalikes]
    # A model that repeats "Mexico City" has not named "Mexico".
    echo = (pair.entity_b,) if mentions(pair.entity_b, names) else ()
    return Prompt(
        id=pair.fact_id,
        text=pair.message,
        segments={"message": (0, len(pair.message))},
        answer=Completion(tuple(names), excluded=(*others, *echo)),
        pair_id=pair.fact_id,
        side=FACT_SIDE,
        factors={
            "category": pair.category,
            "entity_group": pair.entity_group,
            "entity_a": pair.entity_a,
            "entity_b": pair.entity_b,
            "text_plain": f"{pair.entity_b} {plain}",
            "text_question": question,
        },
    )


system = Rulebreakers()
