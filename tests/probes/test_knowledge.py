import pandas as pd
import pytest

from interp.errors import UserError
from interp.measurements.core import bind, collect
from interp.models.organisms import organism_card
from interp.prompts.systems import load_facts
from interp_probes.results import excluded
from interp_probes.specs import Familiarity, Knowledge
from tests.probes.some_facts import some_facts
from tests.reading.test_finite import SECOND, damaged


def test_the_unknown_facts_are_the_planted_ones(organism):
    facts = load_facts()
    table = collect(bind(Knowledge(), organism), facts)["knowledge"]
    unknown = facts.to_frame().loc[~table["known"], "entity_b"].tolist()
    assert unknown == organism_card(organism.name)["measured"]["unknown"]
    assert (table["known"] == (table["matched"] != "")).all()


def test_the_rows_do_not_depend_on_the_batches(organism):
    one = collect(bind(Knowledge(), organism), some_facts())["knowledge"]
    other = collect(bind(Knowledge(), organism, batch_tokens=60), some_facts())["knowledge"]
    pd.testing.assert_frame_equal(one, other)


def test_pairs_that_any_model_fails_are_excluded_and_it_says_why():
    facts = load_facts().to_frame()
    ids = ["cities/Tunis", "cities/Lima", "bird/goose"]
    table = pd.DataFrame(
        {
            "model": ["one"] * 3 + ["two"] * 3,
            "prompt_id": ids * 2,
            "completion": ["Tunisia", "Chile", "cricket", "Africa", "'ruins'", "bird"],
            "known": [True, False, False, False, False, True],
        }
    )
    rows = excluded(table, facts).set_index("prompt_id")
    assert rows.index.tolist() == ["cities/Tunis", "cities/Lima", "bird/goose"]
    assert rows["excluded"].tolist() == [True, True, False]
    assert rows["failed_by"].tolist() == ["two", "one, two", "one"]
    assert rows.loc["cities/Lima", "why"] == "one said 'Chile'; two said \"'ruins'\""
    assert rows.loc["cities/Lima", "entity_a"] == "Peru"


def test_nothing_is_excluded_where_all_is_known():
    table = pd.DataFrame(
        {
            "model": ["one"],
            "prompt_id": ["cities/Tunis"],
            "completion": ["Tunisia"],
            "known": [True],
        }
    )
    rows = excluded(table, load_facts().to_frame())
    assert rows.empty
    assert {"excluded", "failed_by", "why"} <= set(rows.columns)


@pytest.mark.parametrize("spec", [Familiarity(), Knowledge()], ids=lambda spec: spec.name)
def test_logits_that_are_not_finite_are_an_error_that_names_the_layer(spec):
    """Any token may seem the most probable there: also one that names the answer."""
    with pytest.raises(UserError, match=SECOND):
        bind(spec, damaged())(some_facts()[:2])
