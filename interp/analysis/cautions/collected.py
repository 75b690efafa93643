"""All cautions on what was measured."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from interp.analysis.cautions.answers import FORCED, answer_cautions
from interp.analysis.cautions.caution import Caution, ordered
from interp.analysis.cautions.models import (
    gap_cautions,
    model_cautions,
    path_cautions,
    side_differences,
)
from interp.analysis.cautions.sample import sample_cautions
from interp.measuring.spec import ModelFacts


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
    replies = {model: own.replies for model, own in facts.items() if own.replies is not None}
    return ordered(
        [
            *(() if answers is None else answer_cautions(answers, prompts, options, replies)),
            *model_cautions(facts, differences, compared=answers is None or FORCED in answers),
            *path_cautions(facts, methods),
            *(() if gaps is None else gap_cautions(gaps)),
            *sample_cautions(prompts, cluster),
        ]
    )
