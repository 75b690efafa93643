"""Measure the figures on a dose organism's card: its Shapley values beside the planted ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from interp.analysis.clusters import cluster_mean
from interp.measurements.core import bind, collect
from interp.measurements.specs import Effects
from interp.models.model import Model
from interp.prompts.donors import DONORS, DonorKind
from interp.prompts.mixing import donors_of, with_donors
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp_experiments.organisms.card import read_card
from interp_experiments.organisms.leanings import PREMISES, Leaning, Rule
from interp_experiments.rulebreakers.prompts import POSITIVE
from interp_experiments.rulebreakers.system import system

PAIRS = 120
"""Pairs of prompts that are measured if it is not said how many: each prompt is read in some sixty
mixtures with its donors."""

LEAST_DIFFERENCE = 0.1
"""Planted Shapley values of two premises that are closer than this, in nats, are not ranked."""


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: how many prompt pairs are measured, spread evenly; `PAIRS` if None.
    """
    pairs = pairs or PAIRS
    table = beside_planted(model, planted_rule(folder), spread_prompts(pairs))
    table = table[table["donor_kind"] == "instance"]
    premises = table[table["segment"].isin(PREMISES)]
    measured, planted = (
        premises.pivot(index="prompt_id", columns="segment", values=column).diff(axis=1).iloc[:, 1]
        for column in ("shapley", "planted")
    )
    clear = planted.abs() > LEAST_DIFFERENCE
    accepted = table.groupby("prompt_id")["planted_value"].first() > 0
    apart = (table["shapley"] - table["planted"]).abs()
    return {
        "pairs": pairs,
        "answers_as_planted": round(float(accepted.mean()), 4),
        "larger_premise_as_planted": round(float((measured[clear] * planted[clear] > 0).mean()), 4),
        "mean_deviation_from_planted": round(float(apart.mean()), 4),
        "shapley": list(shapley_rows(table)),
    }


def planted_rule(folder: Path) -> Rule:
    """The rule that a card describes."""
    return Rule(Leaning(**row) for row in read_card(folder)["entities"])


def spread_prompts(pairs: int) -> PromptSet:
    """Pairs of prompts with their donors, spread evenly over the data set."""
    return with_donors(system.prompts(seed=0, data=None).spread(pairs), count=DONORS)


def beside_planted(model: Model, rule: Rule, prompts: PromptSet) -> pd.DataFrame:
    """Measured and planted Shapley values, one row per prompt, kind of donor and segment.

    Columns are prompt_id, donor_kind, segment, shapley; planted: what the rule says of the same
    prompt, donors and answer; decisive, the premise that decides the prompt; entity, which both
    premises name last; planted_value, the planted log-odds of the model's own answer.
    """
    rows = collect(bind(Effects(donors=DONORS), model), prompts)["segment_effects"]
    rows = rows[rows["other_segment"].isna()]
    planted = pd.DataFrame(row for prompt in prompts for row in _planted_rows(rule, prompt))
    table = rows.merge(
        planted, on=["prompt_id", "donor_kind", "segment"], how="left", validate="one_to_one"
    )
    sign = table["answer"].isin(POSITIVE) * 2 - 1
    turned = {name: table[name] * sign for name in ("planted", "planted_value")}
    columns = ["prompt_id", "donor_kind", "segment", "shapley"]
    return table[[*columns, *planted.columns.difference(columns)]].assign(**turned)


def _planted_rows(rule: Rule, prompt: Prompt) -> Iterator[dict[str, object]]:
    """What the rule says of a prompt, for the positive answer."""
    premise1, premise2 = (prompt.segment_text(name) for name in PREMISES)
    leaning = rule.read(premise1)
    kinds: tuple[DonorKind, ...] = ("instance", "counterpart")
    for kind in kinds:
        for segment, planted in rule.shapley(prompt, donors_of(prompt, kind)).items():
            yield {
                "prompt_id": prompt.id,
                "donor_kind": kind,
                "segment": segment,
                "planted": planted,
                "decisive": leaning.premise,
                "entity": leaning.entity,
                "planted_value": rule.log_odds(premise1, premise2),
            }


def shapley_rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Mean Shapley values of each segment, of the prompts that either premise decides.

    Each row has the planted mean and the measured one with its 95% interval over entities, in
    logits of the model's own answer.

    Args:
        table: `beside_planted`, for one kind of donor.
    """
    for (decisive, segment), rows in table.groupby(["decisive", "segment"]):
        found = cluster_mean(
            rows.assign(weight=1.0), value="shapley", cluster="entity", weight="weight"
        )
        yield {
            "decisive": decisive,
            "segment": segment,
            "prompts": len(rows),
            "planted": round(float(rows["planted"].mean()), 4),
            "measured": round(found.mean, 4),
            "low": round(found.low, 4),
            "high": round(found.high, 4),
        }
