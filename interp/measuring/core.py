"""Measurements: pure functions from a model, prompts and options to the rows of tables.

Prompts are batched under a budget of tokens. If memory runs out, the budget is halved and the
remaining prompts are batched again. If a batch cannot be measured, its prompts are measured one by
one, so a failure affects only one prompt.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import ClassVar, Literal

import pandas as pd
import pyarrow as pa

from interp.console import Progress, begin_step
from interp.errors import ModelError, UserError
from interp.measuring.spec import Attempt, Spec
from interp.models.loading import ChatFormat
from interp.models.model import Model
from interp.plugins import named
from interp.prompts.prompt import Prompt
from interp.reading import tokens
from interp.reading.budget import TokenBudget, is_out_of_memory
from interp.reading.pieces import token_texts
from interp.reading.readers import check_finite
from interp.reading.thoughts import after_thought
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row

_QUICK = {True: 13_000_000, False: 7_000_000_000}
"""Largest number of parameters, on the CPU or on another device, of a model that measures a shard
of `Spec.shard_prompts` prompts in about a minute. On one x86-64 core, SmolLM2 (135 million
parameters) took about 9 seconds per prompt for `effects` and for `patch`, of which a shard has at
most 60 prompts.
"""

PromptRows = dict[str, list[Row]]
"""Rows by table, for one or more prompts."""


def explained(error: str, model: Model, prompts: Sequence[Prompt]) -> str:
    """The error message; for non-finite logits, one that names the weight or module at fault.

    Only the first prompt is examined. If its own logits are finite, the message is unchanged.
    """
    if error == NOT_FINITE and model.has_weights:
        try:
            check_finite(model, tokens.tokenize(model, prompts[:1])[0])
        except UserError as reason:
            return str(reason)
    return error


@dataclass(frozen=True)
class Measurement:
    """A measurement of a model; calling it with prompts returns the rows of each table."""

    model: Model
    spec: Spec
    budget: TokenBudget
    """The limit on the tokens of a batch."""
    measure_batch: Callable[[tokens.Batch], list[PromptRows]]
    """Function that measures a batch and returns the rows of each of its prompts."""
    error_rows: Callable[[Prompt, str], PromptRows] = field(default=lambda prompt, error: {})
    """Function that returns the rows of a prompt that could not be measured, given the reason; by
    default, there are none.
    """
    unit_id: ClassVar[Literal["prompt_id", "pair_id"]] = "prompt_id"
    """What is measured as one: a prompt, or a pair."""
    cost: Callable[[tokens.TokenizedPrompt], float] = field(default=len)
    """Function that returns how long a prompt takes, in any unit: by default, its tokens."""
    begin: Callable[[Sequence[tokens.TokenizedPrompt]], None] | None = None
    """Function that computes once what several prompts need, from all that can be read; it is
    optional, since whatever a batch lacks is computed for it.
    """

    @cached_property
    def tables(self) -> Mapping[str, pa.Schema]:
        """The schemas of the tables that this measurement fills, by table name."""
        return self.spec.filled()

    def __call__(
        self, prompts: Sequence[Prompt], *, done: Callable[[int], None] | None = None
    ) -> PromptRows:
        """Rows of each table, in the order of `prompts`, however these are batched.

        `done` is called after each batch with the number of its prompts.

        Raises:
            UserError: a prompt cannot be read, or does not fit into memory by itself.
        """
        measured = self.attempt(prompts, done=done)
        for failure in measured.failures.values():
            raise UserError(failure)
        return measured.rows

    def prepare(self, prompts: Sequence[Prompt]) -> None:
        """Compute once what several prompts need (`begin`), before any of them is measured.

        Raises:
            UserError: it cannot be computed for any prompt.
        """
        if self.begin is not None:
            self.begin([*self._tokenize(prompts)[0].values()])

    def attempt(
        self, prompts: Sequence[Prompt], *, done: Callable[[int], None] | None = None
    ) -> Attempt:
        """Measure prompts like `__call__`, but collect failures instead of raising the first.

        Raises:
            ModelError: the model lacks something that all prompts need, such as classes.
        """
        tokenized, failures = self._tokenize(prompts)
        rows: dict[int, PromptRows] = {}
        units = list(map(self.unit, prompts))
        costs = {index: self.cost(prompt) for index, prompt in tokenized.items()}
        mean = sum(costs.values()) / max(1, len(costs))
        while waiting := [
            index for index, id_ in enumerate(units) if index not in rows and id_ not in failures
        ]:
            for places, batch in self.batches([tokenized[index] for index in waiting]):
                indices = [waiting[place] for place in places]
                begin_step(len(indices), cost=sum(costs[index] for index in indices) / mean)
                outcomes = self._rows_or_errors(batch)
                in_batch = {units[index] for index in indices}
                if outcomes is None and len(in_batch) > 1:
                    self.budget.shrink(batch.token_ids.numel())
                    # The remaining prompts are batched again, under the smaller budget.
                    break
                for index, outcome in zip(
                    indices, outcomes or [self._too_large(batch)] * len(indices), strict=True
                ):
                    if isinstance(outcome, str):
                        failures[units[index]] = outcome
                    else:
                        rows[index] = outcome
                if done is not None:
                    done(len(places))
        tables = self._tables(prompts, rows, failures)
        return Attempt(tables, len(set(units)), self.unit_id, failures)

    @cached_property
    def shard_prompts(self) -> int:
        """Number of prompts to measure before results are kept: fewer for a model that is slow.

        An even number, so that pairs are not split. Every pair that a server has run is kept.
        """
        if not self.spec.needs_weights:
            return 2
        most = self.spec.shard_prompts
        quick = _QUICK[self.model.device.type == "cpu"]
        slow = self.model.hf.num_parameters() / quick
        return most if slow <= 1 else max(2, 2 * int(most / slow / 2))

    def batches(
        self, prompts: Sequence[tokens.TokenizedPrompt]
    ) -> Iterator[tuple[list[int], tokens.Batch]]:
        """The batches in which prompts are measured, with the indices of their prompts."""
        return tokens.batches(self.model, prompts, batch_tokens=self.budget.tokens)

    def read(self, prompt: Prompt) -> Prompt:
        """The prompt as the model reads it: followed by its own first thought, if the model thinks.

        Raises:
            UserError: the model has no thought on the prompt.
        """
        if not self.model.chat.thinks:
            return prompt
        return after_thought(self.model, prompt, segments=getattr(self.spec, "segments", None))

    def unit(self, prompt: Prompt) -> str:
        """The id under which a failure is recorded."""
        return prompt.id if self.unit_id == "prompt_id" else prompt.pair_id

    def _tokenize(
        self, prompts: Sequence[Prompt]
    ) -> tuple[dict[int, tokens.TokenizedPrompt], dict[str, str]]:
        """The readable prompts, by index, and why the others cannot be read, by unit."""
        try:
            return dict(enumerate(tokens.tokenize(self.model, [*map(self.read, prompts)]))), {}
        except UserError:
            tokenized: dict[int, tokens.TokenizedPrompt] = {}
            failures: dict[str, str] = {}
            for index, prompt in enumerate(prompts):
                try:
                    (tokenized[index],) = tokens.tokenize(self.model, [self.read(prompt)])
                except UserError as error:
                    failures[self.unit(prompt)] = str(error)
            return tokenized, failures

    def _rows_or_errors(self, batch: tokens.Batch) -> list[PromptRows | str] | None:
        """Each prompt's rows, or the reason why it has none; None if memory runs out."""
        try:
            return [*self.measure_batch(batch)]
        except ModelError:
            raise
        except UserError as error:
            if len({self.unit(prompt.prompt) for prompt in batch.prompts}) == 1:
                return [str(error)] * len(batch.prompts)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            return None
        # Do this outside the except clause, since the error keeps the batch's tensors in memory.
        outcomes: list[PromptRows | str] = []
        for prompt in batch.prompts:
            alone = tokens.pad(self.model, [prompt])
            outcomes += self._rows_or_errors(alone) or [self._too_large(alone)]
        return outcomes

    def _too_large(self, batch: tokens.Batch) -> str:
        return (
            f"inputs of shape {tuple(batch.token_ids.shape)} (prompts, tokens) do not fit into the "
            f"memory of {self.model.device}; use a larger device, spread the model with "
            "--device-map auto, or load it in a smaller --dtype"
        )

    def _tables(
        self, prompts: Sequence[Prompt], rows: Mapping[int, PromptRows], failures: Mapping[str, str]
    ) -> PromptRows:
        """The rows in the order of the prompts, with one error row per failed unit."""
        unreported = dict(failures)
        tables: PromptRows = {table: [] for table in self.tables}
        for index, prompt in enumerate(prompts):
            error = unreported.pop(self.unit(prompt), None)
            by_table = rows.get(index, {}) if error is None else self.error_rows(prompt, error)
            for table, table_rows in by_table.items():
                tables[table] += table_rows
        return tables


def check_thinking(spec: Spec, name: str, chat: ChatFormat, *, thoughts: bool) -> None:
    """Check that a model thinks if its thoughts are studied, and has thoughts if they are read.

    `thoughts` says whether they are given.

    Raises:
        UserError: the model does not think, or has no thoughts yet.
    """
    if spec.studies_thoughts and not chat.thinks:
        raise UserError(
            f"thinking is off for {name}, so there are no thoughts to study; turn thinking "
            "on (--thinking on), or choose a model that thinks"
        )
    if chat.thinks and spec.reads_thoughts and not thoughts:
        raise UserError(
            f"{name} thinks before it answers, but has no thoughts yet: generate them with "
            "interp generate --thinking on, and pass the folder of that run to --thoughts (in "
            "Python, thoughts=... or interp.with_thoughts). Or turn thinking off"
        )


def bind(spec: Spec, model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """Bind a spec to a model.

    The largest number of tokens in a batch depends on the device, if it is not given.

    Raises:
        UserError: the model lacks something that the spec needs, such as a layer or thoughts.
    """
    check_thinking(spec, model.name, model.chat, thoughts=bool(model.thoughts))
    measurement: Measurement = named(spec.measures)(model, spec, batch_tokens=batch_tokens)
    return measurement


def collect(measurement: Measurement, prompts: Sequence[Prompt]) -> dict[str, pd.DataFrame]:
    """Measure prompts and return the tables by name, without writing them to files.

    Raises:
        UserError: a prompt has no rows, or the rows of all prompts have an error.
    """
    parts: list[Attempt] = []
    step = measurement.shard_prompts
    measurement.prepare(prompts)
    title = f"{measurement.spec.name} {measurement.model.name}"
    with Progress(title, total=len(prompts)) as progress:
        for start in range(0, len(prompts), step):
            part = measurement.attempt(list(prompts[start : start + step]), done=progress.advance)
            for failure in part.failures.values():
                raise UserError(failure)
            parts.append(part)
    errors = dict(chain.from_iterable(part.errors.items() for part in parts))
    if errors and len(errors) == sum(part.units for part in parts):
        error = explained(next(iter(errors.values())), measurement.model, prompts)
        raise UserError(f"all prompts of {measurement.model.name} failed: {error}")
    tables = {}
    for table, schema in measurement.tables.items():
        rows = list(chain.from_iterable(part.rows[table] for part in parts))
        tables[table] = pa.Table.from_pylist(rows, schema=schema).to_pandas()
    return tables


def token_rows(model: Model, prompt: tokens.TokenizedPrompt) -> list[Row]:
    """One row per token of a prompt: its position, text, segment and role."""
    texts = token_texts(model.tokenizer, prompt.token_ids)
    labels = zip(texts, tokens.token_segments(prompt), tokens.token_roles(prompt), strict=True)
    key: Row = {"model": model.name, "prompt_id": prompt.prompt.id}
    return [
        {**key, "position": position, "token": text, "segment": segment, "role": role}
        for position, (text, segment, role) in enumerate(labels)
    ]
