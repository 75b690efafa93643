"""All cautions on what was measured, and those about the prompts and tests of so few of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd

from interp.analysis.cautions.answers import FORCED, answer_cautions
from interp.analysis.cautions.caution import REACH, SHARED, UNTESTED, WEIGHTS, Caution, ordered
from interp.analysis.cautions.models import (
    gap_cautions,
    model_cautions,
    path_cautions,
    side_differences,
)
from interp.console import counted
from interp.measuring.spec import ModelFacts
from interp.prompts.systems import FACT_SIDE
from interp.statistics.clusters import FEWEST
from interp.statistics.decisions import HOLM_LEAST, LEAST, most_tests, out_of_reach
from interp.statistics.summaries import effective_number

HALF = 0.5
"""If equal weights would need less than half of the clusters for equally precise means, a caution
gives the number."""


def reach_cautions(
    families: Iterable[pd.DataFrame], clusters_for: Callable[[int], int | None]
) -> Iterator[Caution]:
    """A caution about each model with corrected tests that no effect could make significant.

    A family's tests, of one model, are corrected together (`holm`); of several, the largest is
    named. `clusters_for` tells with how many clusters one of so many tests could be significant;
    None if more would not help.
    """
    largest: dict[str, pd.DataFrame] = {}
    for rows in families:
        tested, model = rows[rows[HOLM_LEAST].notna()], str(rows["model"].iloc[0])
        if out_of_reach(tested).any() and len(tested) > len(largest.get(model, ())):
            largest[model] = tested
    for model, rows in largest.items():
        tests, clusters = len(rows), int(rows["clusters"].max())
        least, fewer = float(rows[HOLM_LEAST].max()), most_tests(float(rows[LEAST].min()))
        more = clusters_for(tests)
        text = (
            f"no test can be significant after the correction over {tests:,} cells, whatever the "
            f"effects: with {counted(clusters, 'cluster')}, p_holm is at least {least:.2g}. That "
            "nothing is significant says nothing about effects. Choose in advance at most "
            f"{fewer:,} cells, such as those of fewer layers"
        )
        text += f", or measure {more:,} clusters." if more else "."
        numbers = {"tests": tests, "clusters": clusters, "p_holm_least": least, "most_tests": fewer}
        yield Caution(REACH, model, text, numbers=numbers)


def sample_cautions(prompts: pd.DataFrame, cluster: str | None = None) -> Iterator[Caution]:
    """Cautions about shared texts of prompts, unequal weights, and samples too small to test."""
    column = cluster if cluster is not None and cluster in prompts else "pair_id"
    name = "fact" if prompts["side"].eq(FACT_SIDE).any() else column.removesuffix("_id")
    weights = prompts.groupby(column)["weight"].sum().sort_values(ascending=False)
    units, effective = len(weights), effective_number(weights.to_numpy(dtype=float))
    if "text" in prompts:
        each = prompts[[column, "text"]].drop_duplicates()
        shared = int(each.loc[each["text"].duplicated(keep=False), column].nunique())
        if shared:
            text = (
                f"{_units(shared, name)} of {units:,} have a prompt with the same text as a prompt "
                "of another; intervals and tests count them as independent. In a table of your "
                "own pairs, a column cluster joins them."
            )
            yield Caution(SHARED, "", text, numbers={"units": units, "shared": shared})
    if effective < HALF * units:
        half = int(np.searchsorted(weights.cumsum(), weights.sum() / 2) + 1)
        text = (
            f"Weights differ: {_units(half, name)} of {units:,} hold half of the weight, so means "
            f"are about as precise as those of {effective:.1f} equally weighted ones. "
            "--limit all needs no weights."
        )
        numbers = {"units": units, "half": half, "effective": effective}
        yield Caution(WEIGHTS, "", text, numbers=numbers)
    if units < FEWEST:
        text = (
            f"Most tests and intervals need at least {_units(FEWEST, name)} and are left out: "
            f"there {'is' if units == 1 else 'are'} {units}. Measure more (--limit, or more "
            f"{'facts' if name == 'fact' else 'pairs'})."
        )
        yield Caution(UNTESTED, "", text, numbers={"units": units, "least": FEWEST})


def _units(count: int, name: str) -> str:
    if name in ("pair", "fact"):
        return counted(count, name)
    return f"{count:,} {'value' if count == 1 else 'values'} of {name}"


def cautions_on(
    prompts: pd.DataFrame,
    *,
    answers: pd.DataFrame | None = None,
    options: pd.DataFrame | None = None,
    facts: Mapping[str, ModelFacts] = MappingProxyType({}),
    methods: Sequence[str] = (),
    gaps: pd.DataFrame | None = None,
    differences: Mapping[str, float] | None = None,
    cluster: str | None = None,
) -> tuple[Caution, ...]:
    """Everything that a careful reader would object to, by severity.

    The answers are given if they are the models' own; gaps say how far scores are from adding up
    (`completeness_table`), if they should. Differences between the sides of a pair, in logits, are
    by default computed from the options (`side_differences`).
    """
    if differences is None:
        differences = {} if options is None else side_differences(options, prompts)
    replies = {name: traits.replies for name, traits in facts.items() if traits.replies is not None}
    return ordered(
        [
            *(() if answers is None else answer_cautions(answers, prompts, options, replies)),
            *model_cautions(facts, differences, compared=answers is None or FORCED in answers),
            *path_cautions(facts, methods),
            *(() if gaps is None else gap_cautions(gaps)),
            *sample_cautions(prompts, cluster),
        ]
    )
