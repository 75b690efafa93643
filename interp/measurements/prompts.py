"""What is measured of prompts: answers, soft answers, attributions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interp.attribution.one_pass import TokenScores, attribute_in_one_pass
from interp.attribution.tables import attribution_rows, token_score_rows
from interp.choices import ATTRIBUTION_BACKENDS, CAPTUM_METHODS, METHODS, TARGETS
from interp.errors import UserError, unknown
from interp.measurements.core import Measurement, PromptRows
from interp.models.model import Model
from interp.reading.budget import GPU_GRADIENT_TOKENS, token_budget
from interp.reading.shared_batches import SharedBatch, shared_batches
from interp.reading.tokens import Batch, TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import AnswerRows, answer_tables, score_batch
from interp.scoring.shared_prefix import readable_in_parts, score_shared_batch
from interp.scoring.soft_answers import soft_score_batch
from interp.tables import SCHEMAS

if TYPE_CHECKING:
    from interp.backends.captum import CaptumMethods

ANSWER_TABLES = ("answers", "option_probabilities")


@dataclass(frozen=True)
class AnswerMeasurement(Measurement):
    """A measurement of answers alone, for which tokens that prompts share are read once.

    Soft scores need the final state of every token, attributions a gradient: these read each prompt
    whole.
    """

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Batches of prompts that begin alike where that saves enough, and of others by length."""
        longest = max((len(prompt) for prompt in prompts), default=0)
        if not readable_in_parts(self.model, longest):
            return super().batches(prompts)
        return shared_batches(self.model, prompts, batch_tokens=self.budget.tokens)


def scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers: probabilities of the options, prediction, correctness."""
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            if isinstance(batch, SharedBatch):
                return score_shared_batch(model, batch, answer_tokens)
            return score_batch(model, batch, answer_tokens)

    tables = {name: SCHEMAS[name] for name in ANSWER_TABLES}
    budget = token_budget(model, batch_tokens)
    return AnswerMeasurement(model, "score", {}, tables, budget, measure_batch)


def soft_scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, soft accuracy and the perplexity of the prompt in one forward pass."""
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            return soft_score_batch(model, batch, answer_tokens)

    schemas = {name: SCHEMAS[name] for name in (*ANSWER_TABLES, "soft_answers")}
    return Measurement(
        model, "soft-score", {}, schemas, token_budget(model, batch_tokens), measure_batch
    )


def attribution(
    model: Model,
    *,
    methods: Sequence[str] = METHODS,
    target: str = "predicted",
    backend: str = "native",
    token_scores: bool = False,
    batch_tokens: int | None = None,
) -> Measurement:
    """Measure answers and, by each method, the scores of the premises and their ratio.

    Raises:
        UserError: an unknown method, target or backend.
    """
    _check_choices(methods, target, backend)
    answer_tokens = AnswerTokenizer(model)
    if backend == "inseq":
        from interp.backends.inseq import InseqBackend

        attribute = InseqBackend(model).attribute
    else:
        attribute = attribute_in_one_pass
    names = (*ANSWER_TABLES, "attributions", *(("token_scores",) if token_scores else ()))
    tables = {name: SCHEMAS[name] for name in names}
    own = [method for method in methods if method in METHODS]
    captum = _captum(model, [method for method in methods if method in CAPTUM_METHODS])

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, scores = attribute(model, batch, answer_tokens, methods=own, target=target)
        gaps: dict[str, list[float]] = {}
        if captum is not None:
            further, gaps = captum.attribute(batch, predictions, target=target)
            scores = {**scores, **further}
        answers = answer_tables(model, batch, predictions)
        rows = [
            _prompt_rows(
                model, batch, index, answers=rows, scores=scores, token_scores=token_scores
            )
            for index, rows in enumerate(answers)
        ]
        _note_gaps(rows, gaps)
        return rows

    parameters = {"methods": list(methods), "target": target, "backend": backend}
    budget = token_budget(model, batch_tokens, on_gpu=GPU_GRADIENT_TOKENS)
    return Measurement(model, "attribute", parameters, tables, budget, measure_batch)


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
    model: Model,
    batch: Batch,
    index: int,
    *,
    answers: AnswerRows,
    scores: TokenScores,
    token_scores: bool,
) -> PromptRows:
    rows: PromptRows = {**answers, "attributions": attribution_rows(model, batch, index, scores)}
    if token_scores:
        rows["token_scores"] = token_score_rows(model, batch, index, scores)
    return rows


def _check_choices(methods: Sequence[str], target: str, backend: str) -> None:
    known_methods = (*METHODS, *CAPTUM_METHODS)
    if not methods:
        raise UserError(f"no method given; expected some of {', '.join(known_methods)}")
    choices: list[tuple[str, str, Iterable[str]]] = [
        *(("method", method, known_methods) for method in methods),
        ("target", target, TARGETS),
        ("backend", backend, ATTRIBUTION_BACKENDS),
    ]
    for kind, got, known in choices:
        if got not in known:
            raise UserError(unknown(kind, got, known))
