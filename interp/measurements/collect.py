"""The tables of a measurement, in memory."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from interp.console import Progress
from interp.errors import UserError
from interp.measurements.core import Measurement, PromptRows, explained
from interp.prompts.prompt import Prompt


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
