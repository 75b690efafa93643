"""Attributions of a model: what is measured for `Attribute`."""

from functools import partial

from interp.attribution.attributor import Attributor
from interp.attribution.tables import segment_score_rows, token_rows, token_score_rows
from interp.measurements.attribute import Attribute
from interp.measurements.core import Measurement, PromptRows
from interp.measurements.scoring import ANSWER_TABLES, answer_error
from interp.models.model import Model
from interp.reading.tokens import Batch
from interp.scoring.answers import answer_tables
from interp.tables import SCHEMAS


def attribution(model: Model, spec: Attribute, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers and, by each method, the score of each segment; of each token if asked for.

    Raises:
        UserError: a method that the model is not made for.
    """
    target = spec.target
    attribute = Attributor(model, methods=spec.methods, target=target, batch_tokens=batch_tokens)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, attributions = attribute(batch)
        answers = answer_tables(model, batch, predictions)
        rows: list[PromptRows] = []
        for prompt, answer, found in zip(batch.prompts, answers, attributions, strict=True):
            segments = segment_score_rows(model, prompt, found, target=target)
            rows.append({**answer, "segment_scores": segments})
            if spec.keep_tokens:
                tokens = token_score_rows(model, prompt, found, target=target)
                rows[-1] |= {"tokens": token_rows(model, prompt), "token_scores": tokens}
        return rows

    kept = ("tokens", "token_scores") if spec.keep_tokens else ()
    tables = {name: SCHEMAS[name] for name in (*ANSWER_TABLES, "segment_scores", *kept)}
    errors = partial(answer_error, model)
    return Measurement(model, spec, tables, attribute.budget, measure_batch, errors)
