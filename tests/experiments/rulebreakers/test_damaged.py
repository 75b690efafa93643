"""A published file that is damaged at random loads or is refused, and nothing else."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interp.errors import UserError
from interp_experiments.rulebreakers.instances import COLUMNS, generate
from interp_experiments.rulebreakers.published import load_published
from interp_experiments.rulebreakers.system import system

INSTANCES = [*generate(3)[:4], *generate(3)[-4:]]
ROWS = [instance.to_row() for instance in INSTANCES]

anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["nan", "", " ", "true", "If ", "mt", "ds", "\0", "\ud800", "is in ", "birds"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
columns = st.sampled_from(list(COLUMNS))
places = st.integers(0, len(ROWS) - 1)
row_damages = st.lists(
    st.one_of(
        st.tuples(st.just("alter"), places, columns, anything),
        st.tuples(st.just("swap"), places, columns, places),
        st.tuples(st.just("drop cell"), places, columns, st.none()),
        st.tuples(st.just("drop row"), places, columns, st.none()),
        st.tuples(st.just("repeat row"), places, columns, places),
        st.tuples(st.just("replace row"), places, columns, anything),
    ),
    min_size=1,
    max_size=4,
)
byte_damages = st.lists(
    st.tuples(st.sampled_from(["alter", "drop", "insert"]), st.integers(0, 10**6), st.binary()),
    min_size=1,
    max_size=4,
)
many = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def damaged_rows(damages):
    rows = [dict(row) for row in ROWS]
    for kind, place, column, value in damages:
        row = rows[place % len(rows)] if rows else None
        if kind == "replace row" and rows:
            rows[place % len(rows)] = value
        elif kind == "drop row":
            rows = [other for number, other in enumerate(rows) if number != place]
        elif not isinstance(row, dict):
            continue
        elif kind == "alter":
            row[column] = value
        elif kind == "swap":
            row[column] = ROWS[value][column]
        elif kind == "drop cell":
            row.pop(column, None)
        elif kind == "repeat row":
            rows.insert(value, dict(row))
    return rows


def damaged_bytes(content, damages):
    content = bytearray(content)
    for kind, anywhere, value in damages:
        place = anywhere % (len(content) + 1)
        if kind == "alter":
            content[place : place + len(value)] = value
        elif kind == "drop":
            del content[place : place + 1 + len(value)]
        else:
            content[place:place] = value
    return bytes(content)


def loads_or_is_refused(file):
    """The instances of a file; None where it is refused in a short message."""
    try:
        instances = load_published(str(file))
        prompts = system.prompts(seed=0, data=str(file))
        prompts.check()
        prompts.content_hash()
        system.facts(data=str(file)).content_hash()
    except UserError as error:
        assert 0 < len(str(error)) < 4000
        return None
    return instances


@many
@given(row_damages)
def test_altered_records(tmp_path, damages):
    rows = damaged_rows(damages)
    (tmp_path / "data.json").write_text(json.dumps(rows))
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    one, other = (loads_or_is_refused(tmp_path / name) for name in ("data.json", "data.jsonl"))
    assert one == other


@many
@given(row_damages)
def test_altered_columns_of_parquet(tmp_path, damages):
    rows = [row for row in damaged_rows(damages) if isinstance(row, dict)]
    arrays = {}
    for column in COLUMNS:
        values = [row.get(column) for row in rows]
        try:
            arrays[column] = pa.array(values)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            arrays[column] = pa.array([None if v is None else ascii(v) for v in values])
    pq.write_table(pa.table(arrays), tmp_path / "data.parquet")
    loads_or_is_refused(tmp_path / "data.parquet")


@many
@given(suffix=st.sampled_from([".csv", ".json", ".jsonl", ".parquet"]), damages=byte_damages)
def test_altered_bytes(tmp_path, suffix, damages):
    frame = pd.DataFrame(ROWS)
    file = tmp_path / f"data{suffix}"
    if suffix == ".csv":
        frame.to_csv(file, index=False)
    elif suffix == ".parquet":
        frame.to_parquet(file)
    else:
        frame.to_json(file, orient="records", lines=suffix == ".jsonl")
    file.write_bytes(damaged_bytes(file.read_bytes(), damages))
    loads_or_is_refused(file)
