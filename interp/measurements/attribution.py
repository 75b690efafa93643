"""Attributions of a model: what is measured for `Attribute`."""

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from interp.attribution.attributor import Attributor
from interp.attribution.method import Attribution
from interp.attribution.tables import segment_score_rows, token_rows, token_score_rows
from interp.measurements.attribute import Attribute
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.scoring import answer_error
from interp.models.model import Model
from interp.reading.tokens import Batch
from interp.scoring.answers import Predictions, answer_tables
from interp.tables import named


def attribution(model: Model, spec: Attribute, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers and, by each method, the score of each segment; of each token if asked for.

    Raises:
        UserError: a method that the model is not made for.
    """
    attribute = attributor_of(model, spec, batch_tokens)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        return attribution_rows(model, spec, batch, *attribute(batch))

    errors = partial(answer_error, model)
    return Measurement(model, spec, tables_of(spec), attribute.budget, measure_batch, errors)


def attributor_of(model: Model, spec: Attribute, batch_tokens: int | None) -> Attributor:
    """The methods of a spec for a model.

    Raises:
        UserError: a method that the model is not made for.
    """
    return Attributor(model, methods=spec.methods, target=spec.target, batch_tokens=batch_tokens)


def attribution_rows(
    model: Model,
    spec: Attribute,
    batch: Batch,
    predictions: Predictions,
    attributions: Sequence[Mapping[str, Attribution]],
) -> list[PromptRows]:
    """The rows of each prompt of a batch, from its answers and what each method says of it."""
    answers = answer_tables(model, batch, predictions)
    rows: list[PromptRows] = []
    for prompt, answer, found in zip(batch.prompts, answers, attributions, strict=True):
        segments = segment_score_rows(model, prompt, found, target=spec.target)
        rows.append({**answer, "segment_scores": segments})
        if spec.keep_tokens:
            tokens = token_score_rows(model, prompt, found, target=spec.target)
            rows[-1] |= {"tokens": token_rows(model, prompt), "token_scores": tokens}
    return rows


def tables_of(spec: Attribute) -> dict[str, pa.Schema]:
    """The tables that `attribution_rows` fills."""
    kept = ("tokens", "token_scores") if spec.keep_tokens else ()
    return named("answers", "option_probabilities", "segment_scores", *kept)
