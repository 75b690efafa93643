"""Measurements: pure functions of model, prompts and parameters that give rows of tables.

1. Tokenize the prompts; one that cannot be read fails alone.
2. Batch them under a budget of tokens. When memory ends, the budget is halved and what waits is
   batched again; a prompt that does not fit on its own fails alone.
3. Where a prompt of a batch cannot be measured, measure them one by one, so that it fails alone.
4. Put the rows in the order of the prompts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
import pyarrow as pa

from interp.console import Progress
from interp.errors import UserError
from interp.measurements.spec import Spec
from interp.models.model import Model
from interp.plugins import named
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, is_out_of_memory
from interp.reading.finite import check_finite
from interp.reading.tokens import Batch, TokenizedPrompt, batches, pad, tokenize
from interp.scoring.answers import NOT_FINITE
from interp.tables import Row

PromptRows = dict[str, list[Row]]
"""Rows by table: of one prompt, or of several."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Rows of each table, in the order of the prompts, and what went wrong."""

    rows: PromptRows
    units: int
    """How many prompts, or pairs where those are measured, were tried."""
    failures: Mapping[str, str]
    """Why one of these gave no rows, by its id. Tables with one row each hold it too."""

    @property
    def errors(self) -> dict[str, str]:
        """Every error, by prompt or pair: the failures, and rows with an error."""
        found = dict(self.failures)
        for rows in self.rows.values():
            found |= {
                row.get("prompt_id") or row["pair_id"]: row["error"]
                for row in rows
                if row.get("error")
            }
        return found


def explained(error: str, model: Model, prompts: Sequence[Prompt]) -> str:
    """The error of some prompts; where logits are not finite, with where that comes from.

    The first prompt is asked; where its logits are finite nothing more is known.
    """
    if error == NOT_FINITE:
        try:
            check_finite(model, tokenize(model, prompts[:1])[0])
        except UserError as reason:
            return str(reason)
    return error


@dataclass(frozen=True)
class Measurement:
    """What to measure of which model; calling it with prompts gives the rows of each table."""

    model: Model
    spec: Spec
    """What is measured, and how."""
    budget: TokenBudget
    """Of a batch."""
    measure_batch: Callable[[Batch], list[PromptRows]]
    """Rows of each prompt of a batch."""
    error_rows: Callable[[Prompt, str], PromptRows] = field(default=lambda prompt, error: {})
    """What the tables say of a prompt that could not be measured, and why; nothing if not given."""

    @cached_property
    def tables(self) -> Mapping[str, pa.Schema]:
        """Names and columns of the tables that are filled."""
        return self.spec.filled()

    def __call__(
        self, prompts: Sequence[Prompt], *, done: Callable[[int], None] | None = None
    ) -> PromptRows:
        """Rows of each table, in the order of `prompts`, whatever the batches were.

        `done` is called with the number of prompts of each batch when it is measured.

        Raises:
            UserError: a prompt that cannot be read, or that does not fit into memory alone.
        """
        measured = self.attempt(prompts, done=done)
        for failure in measured.failures.values():
            raise UserError(failure)
        return measured.rows

    def attempt(
        self, prompts: Sequence[Prompt], *, done: Callable[[int], None] | None = None
    ) -> Measured:
        """The same, but what cannot be measured fails alone, and the rest is measured."""
        tokenized, failures = self._tokenize(prompts)
        rows: dict[int, PromptRows] = {}
        waiting = self._without(failures, prompts, range(len(prompts)))
        while waiting:
            for places, batch in self.batches([tokenized[index] for index in waiting]):
                found = self._rows_or_errors(batch)
                if found is not None:
                    for place, prompt_rows in zip(places, found, strict=True):
                        if isinstance(prompt_rows, str):
                            failures[self.unit(prompts[waiting[place]])] = prompt_rows
                        else:
                            rows[waiting[place]] = prompt_rows
                elif len(units := {self.unit(prompt.prompt) for prompt in batch.prompts}) > 1:
                    self.budget.shrink(batch.token_ids.numel())
                    # What waits is batched again, under the smaller budget.
                    break
                else:
                    failures.update(dict.fromkeys(units, self._too_large(batch)))
                if done is not None:
                    done(len(places))
            waiting = self._without(failures, prompts, [i for i in waiting if i not in rows])
        units = {self.unit(prompt) for prompt in prompts}
        return Measured(self._tables(prompts, rows, failures), len(units), failures)

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """The batches that the prompts are measured in, with the indices of their prompts."""
        return batches(self.model, prompts, batch_tokens=self.budget.tokens)

    def unit(self, prompt: Prompt) -> str:
        """The id of what is measured as one: the prompt."""
        return prompt.id

    def _tokenize(
        self, prompts: Sequence[Prompt]
    ) -> tuple[dict[int, TokenizedPrompt], dict[str, str]]:
        """The prompts that can be read, by index, and why a unit cannot be measured."""
        try:
            return dict(enumerate(tokenize(self.model, prompts))), {}
        except UserError:
            tokenized: dict[int, TokenizedPrompt] = {}
            failures: dict[str, str] = {}
            for index, prompt in enumerate(prompts):
                try:
                    (tokenized[index],) = tokenize(self.model, [prompt])
                except UserError as error:
                    failures[self.unit(prompt)] = str(error)
            return tokenized, failures

    def _without(
        self, failures: Mapping[str, str], prompts: Sequence[Prompt], indices: Sequence[int]
    ) -> list[int]:
        return [index for index in indices if self.unit(prompts[index]) not in failures]

    def _rows_or_errors(self, batch: Batch) -> list[PromptRows | str] | None:
        """Rows of each prompt, or why it has none; None where the batch does not fit."""
        try:
            rows = self._measure_if_it_fits(batch)
            return None if rows is None else list(rows)
        except UserError as error:
            if len({self.unit(prompt.prompt) for prompt in batch.prompts}) == 1:
                return [str(error)] * len(batch.prompts)
        found: list[PromptRows | str] = []
        for prompt in batch.prompts:
            alone = pad(self.model, [prompt])
            found += self._rows_or_errors(alone) or [self._too_large(alone)]
        return found

    def _measure_if_it_fits(self, batch: Batch) -> list[PromptRows] | None:
        try:
            return self.measure_batch(batch)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            # Left before another try, since the error holds on to the tensors of the first.
            return None

    def _too_large(self, batch: Batch) -> str:
        return (
            f"{tuple(batch.token_ids.shape)} (prompts, tokens) do not fit into the memory of "
            f"{self.model.device}; take a larger device, spread the model by --device-map auto, "
            "or load it in a smaller --dtype"
        )

    def _tables(
        self,
        prompts: Sequence[Prompt],
        rows: Mapping[int, PromptRows],
        failures: Mapping[str, str],
    ) -> PromptRows:
        """The rows in the order of the prompts; a unit that failed is reported once."""
        untold = dict(failures)
        tables: PromptRows = {table: [] for table in self.tables}
        for index, prompt in enumerate(prompts):
            error = untold.pop(self.unit(prompt), None)
            found = rows.get(index, {}) if error is None else self.error_rows(prompt, error)
            for table, table_rows in found.items():
                tables[table] += table_rows
        return tables


def bind(spec: Spec, model: Model, *, batch_tokens: int | None = None) -> Measurement:
    """The measurement of a model, under a budget of tokens in a batch.

    Raises:
        UserError: something that this model lacks, such as a layer.
    """
    measurement: Measurement = named(spec.measures)(model, spec, batch_tokens=batch_tokens)
    return measurement


def collect(measurement: Measurement, prompts: Sequence[Prompt]) -> dict[str, pd.DataFrame]:
    """The tables of a measurement of prompts, in memory, by name.

    Raises:
        UserError: a prompt that gives no rows, or an error in the rows of all prompts.
    """
    rows: PromptRows = {table: [] for table in measurement.tables}
    errors: dict[str, str] = {}
    units = 0
    step = measurement.spec.shard_prompts
    title = f"{measurement.spec.name} {measurement.model.name}"
    with Progress(title, total=len(prompts)) as progress:
        for start in range(0, len(prompts), step):
            # A multiple of two: pairs stay whole.
            part = measurement.attempt(list(prompts[start : start + step]), done=progress.advance)
            for failure in part.failures.values():
                raise UserError(failure)
            errors |= part.errors
            units += part.units
            for table, table_rows in part.rows.items():
                rows[table] += table_rows
    if units and len(errors) == units:
        error = explained(next(iter(errors.values())), measurement.model, prompts)
        raise UserError(f"all prompts of {measurement.model.name} failed: {error}")
    return {
        table: pa.Table.from_pylist(rows[table], schema=schema).to_pandas()
        for table, schema in measurement.tables.items()
    }
