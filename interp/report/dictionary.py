"""The data dictionary as a page: every table that a run may contain, described by its metadata."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill

import pyarrow as pa

from interp.measuring.spec import Spec, spec_named
from interp.plugins import MEASUREMENTS, STUDIES, load_plugin, named, plugins
from interp.runs.records import column_types
from interp.tables import ACTIVATIONS, PROMPTS, note

WIDTH = 100
"""Width of a line of text in characters."""

_INTRODUCTION = (
    "A run's folder holds some of these tables, depending on what was measured, each as a Parquet "
    "file with the table's name.",
    "The files contain these descriptions too: `pyarrow.parquet.read_schema(FILE)` has the "
    "description of the table, and `description`, `unit` and `sign` for each column. "
    "`python -m interp tables` prints this page, and `python -m interp tables NAME` prints one of "
    "its tables.",
    "Join tables on `model` and `prompt_id`, or `pair_id`. Undefined values are null, or NaN if "
    "the description of a table says so. Measurements are named as in `run.json`.",
    "Small tables that say so are derived from these and written as CSV files, in which undefined "
    "values are empty; `note` says why.",
)


def known_tables() -> dict[str, pa.Schema]:
    """The prompts table, then all that registered measurements fill or derive, by name."""
    every = (*_by_measurement().values(), *_by_study().values())
    measured = {name: schema for tables in every for name, schema in tables}
    return {"prompts": PROMPTS, **dict(sorted({**measured, "activations": ACTIVATIONS}.items()))}


def page(tables: Mapping[str, pa.Schema]) -> str:
    """Tables in Markdown that is readable as plain text, preceded by a list of the tables."""
    listed = [f"- [{name}](#{name}): {_row(schema)}" for name, schema in tables.items()]
    parts = ["# Data dictionary", *map(_wrapped, _INTRODUCTION), "\n".join(listed)]
    return "\n\n".join([*parts, sections(tables)])


def sections(tables: Mapping[str, pa.Schema]) -> str:
    """Tables in Markdown, each with the meaning of its rows, its measurements and its columns."""
    filled_by: defaultdict[str, list[str]] = defaultdict(list)
    for measurement, filled in (*_by_measurement().items(), *_by_study().items()):
        for name, _ in filled:
            filled_by[name].append(f"`{measurement}`")
    return "\n".join(
        "\n\n".join(_section(name, schema, filled_by[name])) + "\n"
        for name, schema in tables.items()
    )


def _by_measurement() -> Mapping[str, Sequence[tuple[str, pa.Schema]]]:
    """The tables of each measurement; of several with one name, all but the first add its own."""
    tables: dict[str, list[tuple[str, pa.Schema]]] = {}
    schemas: dict[str, pa.Schema] = {}
    for measurement in plugins(MEASUREMENTS):
        tables[measurement] = []
        for name, schema in _of(spec_named(measurement)):
            same = schemas.setdefault(name, schema).equals(schema, check_metadata=True)
            tables[measurement].append((name if same else f"{name}-{measurement}", schema))
    return tables


def _of(spec: type[Spec]) -> Iterator[tuple[str, pa.Schema]]:
    """The tables that a measurement fills, and the small ones that it declares."""
    filled = spec.tables()
    yield from filled.items()
    for declared in map(named, spec.derives):
        yield declared.name, declared.schema(filled[declared.measured])


def _by_study() -> dict[str, Sequence[tuple[str, pa.Schema]]]:
    schemas = {name: schema for tables in _by_measurement().values() for name, schema in tables}
    studies = {name: load_plugin(STUDIES, "study", name) for name in plugins(STUDIES)}
    return {
        name: [
            (table.name, table.schema(schemas[table.measured]))
            for table in map(named, study.derives)
        ]
        for name, study in studies.items()
    }


def _section(name: str, schema: pa.Schema, filled_by: Sequence[str]) -> Iterator[str]:
    yield f"## {name}"
    yield _wrapped(note(schema, "description"))
    if filled_by:
        derived = note(schema, "derived")
        how = f"A small table (CSV), derived from `{derived}` by" if derived else "Filled by"
        yield _wrapped(f"{how} {', '.join(filled_by)}.")
    yield "\n".join(_columns(schema))
    signs: defaultdict[str, list[str]] = defaultdict(list)
    for field in schema:
        signs[note(field, "sign")].append(f"`{field.name}`")
    signs.pop("", None)
    if signs:
        lines = (f"- Sign of {', '.join(columns)}: {sign}." for sign, columns in signs.items())
        yield "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lines)


def _columns(schema: pa.Schema) -> Iterator[str]:
    """A Markdown table whose columns are aligned."""
    types = column_types(schema)
    rows = [("column", "type", "unit", "what it holds")]
    for field in schema:
        unit, text = note(field, "unit"), note(field, "description")
        rows.append((f"`{field.name}`", types[field.name], unit, text.replace("|", "\\|")))
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    heading, *others = (_line(row, widths) for row in rows)
    yield heading
    yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
    yield from others


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"


def _row(schema: pa.Schema) -> str:
    """The meaning of a row, from the first sentence of the table's description."""
    first = note(schema, "description").partition(".")[0]
    return first[:1].lower() + first[1:]


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
