"""A published file that is damaged at random loads or is refused, and nothing else."""

import json

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


def loads_or_is_refused(file):
    """The instances of a file; None where it is refused in a short message."""
    try:
        instances = [instance for _, instance in load_published(str(file))]
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
