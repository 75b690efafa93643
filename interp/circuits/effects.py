"""Reading edge effects from a finished run of `edges`."""

import io
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from interp.errors import UserError, shortened, unknown
from interp.files import checksum, inside, read_bytes
from interp.tables import SCHEMAS

FILE = "edges.parquet"

_COLUMNS = ["pair_id", "method", "writer", "reader", "effect"]

_HINT = "set --edges to the folder of a finished run of interp edges"


def edges_checksum(folder: Path) -> str:
    """The checksum of the edges in a run folder.

    Raises:
        UserError: the folder holds no finished run of `edges`.
    """
    try:
        return checksum(inside(folder, FILE))
    except FileNotFoundError:
        raise UserError(f"{folder} has no {FILE}; {_HINT}") from None


def read_effects(folder: Path, model: str, *, factor: str | None = None) -> pd.DataFrame:
    """One model's edge effects on clean prompts.

    Columns are pair_id, method, writer, reader, effect and, if given, the factor.

    Args:
        folder: the folder of a finished run of `edges`.
        model: name of the model.
        factor: a factor of the prompts to add as a column.

    Raises:
        UserError: the folder holds no finished run of `edges`, the run lacks this model, or the
            prompts lack the factor.
    """
    filters = [("model", "==", model), ("direction", "==", "noising")]
    schema = SCHEMAS["edges"]
    kept = [schema.field(name) for name in ("model", "direction", *_COLUMNS)]
    table = _table(inside(folder, FILE), kept, filters)
    effects: pd.DataFrame = table.to_pandas()[_COLUMNS]
    if effects.empty:
        raise UserError(
            f"{folder} has no noising effects of edges for {shortened(model)}; "
            f"{_HINT} on this model"
        )
    if factor is None:
        return effects
    file = inside(folder, "prompts.parquet")
    columns = [pa.field("pair_id", pa.string()), pa.field(factor, pa.string())]
    prompts: pd.DataFrame = _table(file, columns, None).to_pandas().drop_duplicates("pair_id")
    return effects.merge(prompts, on="pair_id", how="left")


def _table(
    file: Path, fields: Sequence[pa.Field], filters: list[tuple[str, str, str]] | None
) -> pa.Table:
    """Read selected columns of a Parquet file and check their types."""
    try:
        content = read_bytes(file)
        there = pq.read_schema(io.BytesIO(content))
        for field in fields:
            if field.name not in there.names:
                raise UserError(f"{file}: {unknown('column', field.name, there.names)}")
            if there.field(field.name).type != field.type:
                raise UserError(
                    f"{file}: the column {field.name} holds {there.field(field.name).type}; "
                    f"expected {field.type}"
                )
        names = [field.name for field in fields]
        return pq.read_table(io.BytesIO(content), columns=names, filters=filters)
    except FileNotFoundError:
        raise UserError(f"{file} is missing; {_HINT}") from None
    except pa.ArrowException as error:
        raise UserError(f"{file} is damaged: {shortened(str(error))}; {_HINT}") from None
