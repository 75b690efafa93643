"""Cautions, headlines and notes of declared tables."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from interp.analysis.cautions.caution import NOTHING, REACH
from interp.estimates.declared import Largest, Mean
from interp.estimates.shown import Estimated, text
from tests.estimates.test_compute import table_of, trials_of

TESTED = table_of(
    Mean("x", "the effect", "logits", "positive: up", tested=0.0),
    headline=Largest("x", "largest effect {place}", at=lambda row: f"row {row['row']}", places=2),
)


def made(means_of, clusters=12, table=TESTED, model="m"):
    noise = np.random.default_rng(0).normal(size=clusters)
    parts = [
        trials_of(noise - noise.mean() + mean).assign(row=row, model=model)
        for row, mean in means_of.items()
    ]
    return Estimated(table, pd.concat(parts).assign(pair_id="p"))


@pytest.mark.parametrize(
    ("means_of", "clusters", "kinds"),
    [
        ({0: 0.0, 1: 0.1}, 12, [NOTHING]),
        ({0: 0.0, 1: 5.0}, 12, []),
        ({0: 5.0, 1: -5.0}, 12, []),
        ({0: 0.0}, 9, []),  # too few clusters for any test
        (dict.fromkeys(range(60), 0.1), 10, [REACH]),
    ],
)
def test_a_caution_says_that_nothing_is_significant_only_where_something_could_be(
    means_of, clusters, kinds
):
    found = [*made(means_of, clusters).cautions()]
    assert [caution.kind for caution in found] == kinds
    if kinds == [NOTHING]:
        (caution,) = found
        assert caution.model == "m"
        assert caution.numbers["row"] == 1
        assert caution.numbers["p_holm"] > 0.05


@pytest.mark.parametrize(
    ("family", "named"), [(("model",), r"\(row 1\)"), (("model", "row"), r"\(1\)")]
)
def test_a_caution_has_no_empty_brackets(family, named):
    *_, caution = made({0: 0.0, 1: 0.1}, table=replace(TESTED, family=family)).cautions()
    assert re.search(named, caution.text) and "()" not in caution.text


def test_each_family_is_judged_alone():
    nothing, something = made({0: 0.1, 1: 0.0}), made({0: 9.0, 1: 0.0}, model="n")
    both = Estimated(TESTED, pd.concat([nothing.trials, something.trials]))
    assert [(c.kind, c.model) for c in both.cautions()] == [(NOTHING, "m")]
    only_first = both.frame[both.frame["model"] == "n"]
    assert [*both.cautions(only_first)] == []
    untested = table_of(Mean("x", "the effect", "logits"), family=())
    assert [*made({0: 0.0}, table=untested).cautions()] == []


def test_headlines_are_the_largest_rows_and_nothing_where_nothing_was_measured():
    found = made({0: 0.5, 1: -3.0, 2: 2.0})
    numbers = found.headline()
    assert numbers["number"].tolist() == ["largest effect 1", "largest effect 2"]
    assert numbers["value"].tolist() == pytest.approx([-3.0, 2.0])
    assert made({0: 1.0}).headline()["number"].tolist() == ["largest effect 1"]
    assert {link.of["row"]: link.headline for link in found.links()} == {
        "0": "",
        "1": "largest effect 1",
        "2": "largest effect 2",
    }
    assert made({0: np.nan}).headline().empty
    assert Estimated(TESTED, found.trials[:0]).headline() is None


def test_a_headline_of_some_rows_names_none_of_several_equal_ones():
    declared = Largest("x", "largest", at=lambda row: f"row {row['row']}", where={"part": "a"})
    table = replace(TESTED, headline=declared, by=["model", "part", "row"])
    parts = [made({0: -1.0, 1: -1.0}).trials, made({0: 1.0}, model="n").trials]
    rows = [*(own.assign(part="a") for own in parts), made({0: 7.0}).trials.assign(part="b")]
    numbers = Estimated(table, pd.concat(rows)).headline().set_index("model")
    assert numbers["value"].abs().tolist() == pytest.approx([1.0, 1.0])
    assert numbers["label"].to_dict() == {"m": "2 equal rows:", "n": "row 0:"}


def test_headlines_of_each_row_are_named_after_it_sorted_by_size_and_led_from_its_pairs():
    declared = Largest("x", "{segment} of {row}", within=["row", "segment"], by_size="x")
    table = replace(table_of(*TESTED.numbers, headline=declared), by=["model", "row", "segment"])
    trials = made({0: 1.0, 1: 3.0}).trials.assign(segment="premise1")
    found = Estimated(table, trials)
    names = ["premise 1 of 1", "premise 1 of 0"]
    assert found.headline()["number"].tolist() == names
    assert found.headline()["label"].tolist() == ["", ""]
    assert [link.headline for link in found.links()] == names[::-1]


def test_a_terminal_shows_the_largest_rows_that_headlines_may_be_about():
    declared = Largest("x", "largest", where={"part": "a"}, terminal=True)
    by = ["model", "part", "row"]
    table = replace(TESTED, headline=declared, by=by, split=["model"], most=2)
    of_part = {"a": made({0: 1.0, 1: -4.0, 2: 3.0}), "b": made({0: 9.0})}
    trials = pd.concat([own.trials.assign(part=part) for part, own in of_part.items()])
    item = Estimated(table, trials).item
    ((_, shown),) = item.shown
    assert shown["row"].tolist() == [1, 2] and "part" not in shown
    assert len(item.on_page) == 4


def test_two_models_headlines_are_compared_where_both_are_about_the_same_row():
    one, other = made({0: 3.0, 1: 1.0, 2: 0.0}), made({0: 2.0, 1: 0.0, 2: 1.0}, model="n")
    key = "pair_id"
    parts = [own.trials.assign(**{key: own.trials["cluster"]}) for own in (one, other)]
    both = Estimated(table_of(*TESTED.numbers, headline=TESTED.headline, key=key), pd.concat(parts))
    differences = dict(both.differences())
    assert [*differences] == ["largest effect 1"]
    assert differences["largest effect 1"] == (
        pytest.approx(1.0),
        *[pytest.approx(np.nan, nan_ok=True)] * 2,
    )


@pytest.mark.parametrize(
    ("value", "shown"), [(3.0, "3"), (0.25, "0.25"), (float("nan"), "all"), ("a", "a"), (2, "2")]
)
def test_values_are_shown(value, shown):
    assert text(value) == shown
