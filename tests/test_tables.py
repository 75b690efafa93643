import pandas as pd
import pyarrow as pa
import pytest

from interp.measuring.core import bind
from interp.measuring.spec import spec_named
from interp.plugins import MEASUREMENTS, plugins
from interp.report.dictionary import known_tables
from interp.runs.shards import column_types
from interp.tables import column, factors_of, note, prompts_table, table
from tests.support.thinking import QWEN3, thinking_model

EVERYTHING = {
    "evaluate": {"without_segments": True},
    "attribute": {"keep_tokens": True},
    "attribute-reinitialized": {"keep_tokens": True},
    "effects": {"context": ("shapley",)},
    "patch": {"sets": True},
}
"""Options under which a measurement fills all of its tables."""


@pytest.mark.parametrize("name", sorted(plugins(MEASUREMENTS).keys() - {"stored"}))
def test_a_measurement_fills_the_tables_that_its_spec_names(name, organism):
    spec = spec_named(name)
    named = spec.tables()
    model = organism if spec.reads_thoughts else thinking_model(QWEN3, thinking="on")
    everything = bind(spec(**EVERYTHING.get(name, {})), model).tables
    assert list(everything) == list(named)
    for filled in (everything, bind(spec(), model).tables):
        for table_name, schema in filled.items():
            assert schema.equals(named[table_name], check_metadata=True)


def holds_numbers(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return holds_numbers(kind.value_type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


@pytest.mark.parametrize("name", known_tables())
def test_every_column_says_what_it_holds_and_every_number_its_unit(name):
    schema = known_tables()[name]
    assert note(schema, "description").startswith("One row per ")
    for field in schema:
        assert note(field, "description"), field.name
        assert bool(note(field, "unit")) == holds_numbers(field.type), field.name
        assert holds_numbers(field.type) or not note(field, "sign"), field.name


def test_what_is_not_said_is_empty():
    bare = table("One row per day.", column("rain", pa.float64(), "how much rain fell", "mm"))
    assert [note(bare.field("rain"), key) for key in ("description", "unit", "sign")] == [
        "how much rain fell",
        "mm",
        "",
    ]
    assert note(pa.schema([pa.field("rain", pa.float64())]), "description") == ""


def test_the_columns_that_data_name_are_described_by_what_they_are():
    found = pa.schema(
        [
            ("prompt_id", pa.string()),
            ("weight", pa.float64()),
            ("cold_start", pa.string()),
            ("premise1_start", pa.int64()),
            ("premise1_end", pa.int64()),
        ]
    )
    described = prompts_table(found)
    assert described == found
    assert note(described, "description").startswith("One row per prompt.")
    assert [note(field, "description") for field in described] == [
        "id of the prompt; unique",
        "number of prompts that this prompt represents in the whole data set",
        "level of a factor that was varied",
        "where a segment begins in `text`",
        "where the segment ends: the first character after it",
    ]


def test_factors_are_texts_that_not_every_prompt_has():
    prompts = pd.DataFrame({"prompt_id": ["a", "b"], "weight": 1.0, "verb": ["is", None]})
    prompts = prompts.assign(premise1_start=[3, 4], premise2_end=[None, 5.0], text="It rains.")
    assert factors_of(prompts) == ["verb"]


def test_descriptions_change_no_value_and_no_type():
    schema = known_tables()["answers"]
    bare = pa.schema([field.remove_metadata() for field in schema])
    rows = [{"model": "a", "predicted_probability": 1 / 3, "correct": True}, {"error": "x, y"}]
    one, other = (pa.Table.from_pylist(rows, schema=kind).to_pandas() for kind in (schema, bare))
    assert one.to_csv() == other.to_csv()
    assert one.attrs == other.attrs
    assert column_types(schema) == column_types(bare)
