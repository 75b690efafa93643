"""The tables of a measurement, in memory."""

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from interp.console import Progress
from interp.measurements.core import Measurement, PromptRows
from interp.prompts.prompt import Prompt


def collect(measurement: Measurement, prompts: Sequence[Prompt]) -> dict[str, pd.DataFrame]:
    """The tables of a measurement of prompts, in memory, by name."""
    rows: PromptRows = {table: [] for table in measurement.tables}
    step = measurement.spec.shard_prompts
    title = f"{measurement.spec.name} {measurement.model.name}"
    with Progress(title, total=len(prompts)) as progress:
        for start in range(0, len(prompts), step):
            # A multiple of two: pairs stay whole.
            part = measurement(list(prompts[start : start + step]), done=progress.advance)
            for table, table_rows in part.items():
                rows[table] += table_rows
    return {
        table: pa.Table.from_pylist(rows[table], schema=schema).to_pandas()
        for table, schema in measurement.tables.items()
    }
