"""Measurements: pure functions of model, prompts and parameters that give rows of tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import torch

from interp.attribution.one_pass import METHODS, TokenScores, attribute_in_one_pass
from interp.attribution.rows import attribution_rows, token_score_rows
from interp.attribution.targets import TARGETS
from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.prompts.tokens import Batch, TokenizedPrompt, batches, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import answer_rows, score_batch
from interp.scoring.soft_answers import soft_score_batch
from interp.tables import SCHEMAS, Row

if TYPE_CHECKING:
    from interp.backends.captum import CaptumMethods

PromptRows = dict[str, list[Row]]
"""Rows of one prompt, by table."""

BACKENDS = ("native", "inseq")
"""Values of --backend."""

CAPTUM_METHODS = ("integrated_gradients", "input_x_gradient", "deep_lift", "occlusion")
"""Further values of --methods, which captum computes whatever the backend."""

CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 32768
"""Default budgets of tokens a batch."""

GPU_GRADIENT_TOKENS = 8192
"""The same on a GPU where a backward pass follows: a model of Llama-3-8B's shape keeps 4.5 MB a
token for it in bf16, 37 GB for this budget."""


@dataclass(frozen=True)
class Measurement:
    """What to measure of which model; calling it with prompts gives the rows of each table."""

    model: Model
    name: str
    """What is measured: "score", "soft-score" or "attribute"."""
    parameters: Mapping[str, object]
    """Everything but model and prompts that the numbers depend on."""
    tables: Mapping[str, pa.Schema]
    """Names and columns of the tables that are filled."""
    batch_tokens: int
    """Budget of tokens a batch, padding included."""
    measure_batch: Callable[[Batch], list[PromptRows]]
    """Rows of each prompt of a batch."""

    def __call__(
        self, prompts: Sequence[Prompt], *, done: Callable[[int], None] | None = None
    ) -> PromptRows:
        """Rows of each table, in the order of `prompts`, whatever the batches were.

        `done` is told the number of prompts of each batch when it is measured.

        Raises:
            UserError: a prompt that cannot be read, or a batch that does not fit into memory.
        """
        tokenized = tokenize(self.model, prompts)
        measured: dict[int, PromptRows] = {}
        for indices, batch in self.batches(tokenized):
            try:
                rows = self.measure_batch(batch)
            except torch.OutOfMemoryError as error:
                raise UserError(
                    f"{tuple(batch.token_ids.shape)} (prompts, tokens) do not fit into the memory "
                    f"of {self.model.device}; give a smaller --batch-tokens than "
                    f"{self.batch_tokens:,}, and the same command goes on where it stopped"
                ) from error
            measured.update(zip(indices, rows, strict=True))
            if done is not None:
                done(len(indices))
        return {
            table: [row for index in range(len(prompts)) for row in measured[index][table]]
            for table in self.tables
        }

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """The batches that the prompts are measured in, with the indices of their prompts."""
        return batches(self.model, prompts, batch_tokens=self.batch_tokens)


def scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers: probabilities of the options, prediction, correctness."""
    answer_tokens = AnswerTokenizer(model)

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            return [{"answers": [row]} for row in score_batch(model, batch, answer_tokens)]

    tables = {"answers": SCHEMAS["answers"]}
    return Measurement(model, "score", {}, tables, token_budget(model, batch_tokens), measure_batch)


def soft_scoring(model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Measure answers, soft accuracy and the perplexity of the prompt in one forward pass."""
    answer_tokens = AnswerTokenizer(model)
    names = ("answers", "soft_answers")

    def measure_batch(batch: Batch) -> list[PromptRows]:
        with model.measuring():
            tables = soft_score_batch(model, batch, answer_tokens)
        return [
            {name: [row] for name, row in zip(names, rows, strict=True)}
            for rows in zip(*tables, strict=True)
        ]

    schemas = {name: SCHEMAS[name] for name in names}
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
    names = ("answers", "attributions") + (("token_scores",) if token_scores else ())
    tables = {name: SCHEMAS[name] for name in names}
    own = [method for method in methods if method in METHODS]
    captum = _captum(model, [method for method in methods if method in CAPTUM_METHODS])

    def measure_batch(batch: Batch) -> list[PromptRows]:
        predictions, scores = attribute(model, batch, answer_tokens, methods=own, target=target)
        gaps: dict[str, list[float]] = {}
        if captum is not None:
            further, gaps = captum.attribute(batch, predictions, target=target)
            scores = {**scores, **further}
        answers = answer_rows(model, batch, predictions)
        rows = [
            _prompt_rows(
                model, batch, index, answer=answer, scores=scores, token_scores=token_scores
            )
            for index, answer in enumerate(answers)
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
    model: Model, batch: Batch, index: int, *, answer: Row, scores: TokenScores, token_scores: bool
) -> PromptRows:
    rows: PromptRows = {
        "answers": [answer],
        "attributions": attribution_rows(model, batch, index, scores),
    }
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
        ("backend", backend, BACKENDS),
    ]
    for kind, got, known in choices:
        if got not in known:
            raise UserError(f"unknown {kind} {got!r}; expected one of {', '.join(known)}")


def token_budget(model: Model, batch_tokens: int | None, *, on_gpu: int = GPU_BATCH_TOKENS) -> int:
    """The budget of tokens a batch that was asked for, or the device's default.

    Raises:
        UserError: a budget of less than one token.
    """
    if batch_tokens is None:
        return CPU_BATCH_TOKENS if model.device.type == "cpu" else on_gpu
    if batch_tokens < 1:
        raise UserError(f"the budget is {batch_tokens} tokens a batch; expected at least 1")
    return batch_tokens
