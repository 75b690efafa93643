"""Attributions of a model, and what is left by them: what is measured for `SoftKeeping`.

1. Attribution as for `Attribute`, so that what is judged is what its tables hold.
2. Prompt by prompt, tokens are kept by the scores of each method and of each control.
"""

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

from interp.attribution.attributor import Attributor
from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import Attribution
from interp.attribution.soft_keeping import Scores, TokenGame, controls, player_scores
from interp.measurements.attribution import attribution_rows, tables_of
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.scoring import answer_error
from interp.measurements.soft_keeping import SoftKeeping
from interp.models.model import Model
from interp.reading.tokens import Batch
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row, named

UNCHANGED = "the donor changes no token"
"""Error of a prompt in which nothing can be replaced."""


def soft_attribution(
    model: Model, spec: SoftKeeping, *, batch_tokens: int | None = None
) -> Measurement:
    """Measure attributions, and the target when tokens are kept by them.

    Raises:
        UserError: a method that the model is not made for.
    """
    attribute = Attributor(
        model, methods=spec.methods, target=spec.target, batch_tokens=batch_tokens
    )

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, attributions = attribute(batch)
        rows = attribution_rows(model, spec, batch, predictions, attributions)
        explained = attribute.explained(batch, predictions)
        with model.measuring():
            for own, prompt, found in zip(rows, explained, attributions, strict=True):
                key: Row = {"model": model.name, "prompt_id": prompt.prompt.prompt.id}
                key |= {"target": spec.target}
                own["soft_keeping"] = [{**key, **row} for row in _rows(prompt, found)]
        return rows

    tables = {**tables_of(spec), **named("soft_keeping")}
    errors = partial(answer_error, model)
    return Measurement(model, spec, tables, attribute.budget, measure_batch, errors)


def _rows(explained: ExplainedPrompt, found: Mapping[str, Attribution]) -> Iterator[Row]:
    """One row a method, then one a control; one with an error where nothing can be judged."""
    game = TokenGame(explained)
    if not game.places:
        yield {"error": UNCHANGED}
        return
    ends = np.stack([np.zeros(len(game.places), bool), np.ones(len(game.places), bool)])
    nothing, everything = game.values(ends).tolist()
    if not np.isfinite([nothing, everything]).all():
        yield {"error": NOT_FINITE}
        return
    shared = {"value": everything, "value_without": nothing, "tokens": len(game.places)}
    prompt = explained.prompt
    scores = {name: player_scores(prompt, own, game.places) for name, own in found.items()}
    for name, own in {**scores, **controls(prompt, game)}.items():
        yield {"method": name, **shared, **_left(game, own)}


def _left(game: TokenGame, scores: Scores) -> Row:
    """The mean target for each share; none where a score or a value is not finite."""
    left = game.left(scores) if np.isfinite(scores).all() else np.full(1, np.nan)
    if not np.isfinite(left).all():
        return {"error": NOT_FINITE}
    return {"values": left.tolist(), "error": ""}
