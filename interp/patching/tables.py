"""Rows of the tables pairs, patches and node_sets, from the metrics of a pair."""

import math
from collections.abc import Iterator, Sequence

from interp.choices import COUNTERPART
from interp.models.model import Model
from interp.patching.cells import Cell, PatchedMetrics, PatchingPair
from interp.patching.pairs import contrast_of
from interp.patching.sets import NestedSet
from interp.reading.pieces import token_texts
from interp.scoring.answers import NOT_FINITE
from interp.tables import NO_GAP, Row


def pair_row(
    model: Model, pair: PatchingPair, metrics: PatchedMetrics, *, direction: str, cells: int
) -> Row:
    """A pair's row in the pairs table."""
    base, source = pair.base, pair.source
    finite = math.isfinite(metrics.base) and math.isfinite(metrics.source)
    clean, corrupt = (base, source) if direction == "noising" else (source, base)
    positive, negative = contrast_of(clean.prompt, corrupt.prompt)
    row: Row = {
        "model": model.name,
        "pair_id": base.prompt.pair_id,
        "direction": direction,
        "positive_option": positive,
        "negative_option": negative,
        "clean_prompt_id": clean.prompt.id,
        "corrupt_prompt_id": corrupt.prompt.id,
        "base_tokens": len(base),
        "source_tokens": len(source),
        "first_difference": pair.alignment.shared,
        "unaligned_tokens": sum(not tokens for tokens in pair.alignment.sources),
        "cells": cells,
        "whole": pair.answers.whole,
        "error": "" if finite else NOT_FINITE,
    }
    if not finite:
        return row
    return {
        **row,
        "base_metric": metrics.base,
        "source_metric": metrics.source,
        "recognized": all(
            metric > 0 if prompt.prompt.answer.gold == positive else metric < 0
            for metric, prompt in ((metrics.base, base), (metrics.source, source))
        ),
    }


def patch_rows(
    model: Model,
    pair: PatchingPair,
    cells: Sequence[Cell],
    metrics: PatchedMetrics,
    *,
    direction: str,
    method: str,
    source: str,
) -> Iterator[Row]:
    """One row in the patches table per cell; no rows for a pair whose metrics are not finite.

    `source` names the prompt that supplies the activations: the counterpart, or a control.
    """
    if not (math.isfinite(metrics.base) and math.isfinite(metrics.source)):
        return
    tokens = token_texts(model.tokenizer, pair.base.token_ids)
    for cell, metric in zip(cells, metrics.cells, strict=True):
        row: Row = {
            "model": model.name,
            "pair_id": pair.base.prompt.pair_id,
            "direction": direction,
            "method": method,
            "source": source,
            "site": cell.site,
            "layer": cell.layer,
            "head": cell.head,
            "role": cell.group.role,
            "tokens": len(cell.group.positions),
        }
        if cell.group.alone:
            (position,) = cell.group.positions
            row |= {"position": position, "token": tokens[position]}
        if math.isfinite(metric):
            effect = metric - metrics.base
            share = normalized(effect, base=metrics.base, source=metrics.source)
            # A control and the base prompt have the same answer, so there is no difference to
            # recover.
            shared = source == COUNTERPART and not math.isnan(share)
            row |= {
                "effect": effect,
                "normalized": share if shared else None,
                "flipped": flips(metric, metrics.base),
            }
        yield row


def set_row(nested: NestedSet, metrics: PatchedMetrics) -> Row:
    """What the node_sets table says of a set, given the pair's metrics."""
    ranking, cells, every, metric = nested
    share = normalized(metric - metrics.base, base=metrics.base, source=metrics.source)
    return {
        "ranking": ranking,
        "cells": cells,
        "of_cells": every,
        "metric": metric if math.isfinite(metric) else None,
        "normalized": share if math.isfinite(share) else None,
    }


def normalized(effect: float, *, base: float, source: float) -> float:
    """The effect as a share of the source's metric minus the base's.

    0 means no effect, and 1 means that the source's metric is reached; NaN if the two metrics are
    equal.
    """
    gap = source - base
    # Adding zero turns minus zero (no effect divided by a negative gap) into zero.
    return effect / gap + 0.0 if abs(gap) >= NO_GAP else math.nan


def flips(metric: float, base: float) -> bool:
    """Whether two metrics prefer different answers; a metric of zero, a tie, prefers neither."""
    return metric > 0 > base or metric < 0 < base
