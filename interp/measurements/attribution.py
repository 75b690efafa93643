"""Attributions of a model: what is measured for `Attribute`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from interp.attribution.one_pass import TokenScores, attribute_in_one_pass
from interp.attribution.tables import attribution_rows, token_score_rows
from interp.choices import CAPTUM_METHODS, METHODS
from interp.measurements.attribute import Attribute
from interp.measurements.core import Measurement, PromptRows
from interp.models.model import Model
from interp.reading.budget import GPU_GRADIENT_TOKENS, token_budget
from interp.reading.tokens import Batch
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_rows
from interp.tables import SCHEMAS, Row

if TYPE_CHECKING:
    from interp.backends.captum import CaptumMethods


from interp.measurements.scoring import answer_error


def attribution(model: Model, spec: Attribute, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers and, by each method, the scores of the premises and their ratio."""
    answer_tokens = AnswerTokenizer(model)
    if spec.backend == "inseq":
        from interp.backends.inseq import InseqBackend

        attribute = InseqBackend(model).attribute
    else:
        attribute = attribute_in_one_pass
    names = ("answers", "attributions") + (("token_scores",) if spec.keep_tokens else ())
    tables = {name: SCHEMAS[name] for name in names}
    own = [method for method in spec.methods if method in METHODS]
    captum = _captum(model, [method for method in spec.methods if method in CAPTUM_METHODS])

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, scores = attribute(
            model, batch, answer_tokens, methods=own, target=spec.target
        )
        gaps: dict[str, list[float]] = {}
        if captum is not None:
            further, gaps = captum.attribute(batch, predictions, target=spec.target)
            scores = {**scores, **further}
        answers = answer_rows(model, batch, predictions)
        rows = [
            _prompt_rows(
                model, batch, index, answer=answer, scores=scores, token_scores=spec.keep_tokens
            )
            for index, answer in enumerate(answers)
        ]
        _note_gaps(rows, gaps)
        return rows

    budget = token_budget(model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS)
    return Measurement(model, spec, tables, budget, measure_batch, partial(answer_error, model))


def _note_gaps(rows: Sequence[PromptRows], gaps: Mapping[str, Sequence[float]]) -> None:
    """Write the completeness gaps, by method and prompt, into the prompts' rows."""
    for index, prompt_rows in enumerate(rows):
        for row in prompt_rows["attributions"]:
            if row["method"] in gaps:
                row["completeness_gap"] = gaps[row["method"]][index]


def _captum(model: Model, methods: Sequence[str]) -> "CaptumMethods | None":
    if not methods:
        return None
    from interp.backends.captum import CaptumMethods

    return CaptumMethods(model, methods=methods)


def _prompt_rows(
    model: Model, batch: Batch, index: int, *, answer: Row, scores: TokenScores, token_scores: bool
) -> PromptRows:
    rows: PromptRows = {
        "answers": [answer],
        "attributions": attribution_rows(model, batch, index, scores),
    }
    if token_scores:
        rows["token_scores"] = token_score_rows(model, batch, index, scores)
    return rows
