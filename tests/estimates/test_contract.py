"""What holds of every declared table: its numbers, intervals, tests, displays and comparisons."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

import interp
from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Plain, Table
from interp.estimates.shown import ALL, Estimated, text
from interp.measuring.spec import spec_named
from interp.plugins import MEASUREMENTS, STUDIES, named, plugins
from interp.report.dictionary import known_tables
from interp.statistics import means
from interp.studies.study import find_study
from interp.tables import PROMPTS
from interp.tables import SCHEMAS as OF_INTERP
from interp_probes.tables import SCHEMAS as OF_PROBES
from tests.support.declared import (
    KINDS,
    columns_of,
    declared_tables,
    in_a_loop,
    quick,
    rows_of,
    trials_of,
)
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

TABLES = declared_tables()
NAMES = sorted(TABLES)
SCHEMAS = {**OF_INTERP, **OF_PROBES}

NEVER_NEGATIVE = {"cmd", "distance"}
"""Numbers without a sign that are no shares of trials."""


@pytest.fixture(scope="module", autouse=True)
def few_resamples():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(means, "FINE", 1999)
        yield


def holds(table: Table, trials: pd.DataFrame, frame: pd.DataFrame) -> None:
    """Check each number, interval, p and note of a frame against its trials."""
    by = [*table.by]
    measured = [n.name for n in table.numbers if frame[n.name].notna().any() and not n.some]
    for _, row in frame.iterrows():
        own = rows_of(trials, row, by)
        for number in table.numbers:
            expected = in_a_loop(number, own)
            assert row[number.name] == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
            if number.interval:
                low, high = row[list(number.interval)]
                assert np.isnan(low) == np.isnan(high)
                if np.isnan(low):
                    assert row["note"] or number.name not in measured
                else:
                    assert low <= row[number.name] <= high
        assert row["note"] or not row[measured].isna().any()
        assert row[table.count] == own["cluster"].notna().sum()
        known = own["cluster"].notna() & own[table.main.column].notna()
        if over := getattr(table.main, "over", ""):
            known &= own[over].notna()
        assert row[table.clusters] == own.loc[known, "cluster"].nunique()
    if table.tested is not None:
        agree(table, frame)


def agree(table: Table, frame: pd.DataFrame) -> None:
    ends = frame[list(table.tested.interval)]
    known = ends.notna().all(axis=1)
    outside = (ends.iloc[:, 0] > table.tested_value) | (ends.iloc[:, 1] < table.tested_value)
    assert ((frame["p"] <= 0.05) == outside)[known].all()
    assert frame.loc[known, "p"].notna().all()
    assert (frame["p"] >= frame["p_least"])[frame["p"].notna()].all()
    for _, family in frame.groupby([*table.family], dropna=False):
        tested = family[family["p"].notna()]
        if len(tested):
            expected = multipletests(tested["p"], method="holm")[1]
            np.testing.assert_allclose(tested["p_holm"], expected)
            least = min(1.0, len(tested) * tested["p_least"].min())
            np.testing.assert_allclose(tested["p_holm_least"], least)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_a_plain_loop_and_intervals_tests_and_notes_agree(name, kind):
    table = quick(TABLES[name])
    trials = trials_of(table, kind)
    frame = estimate(table, trials)
    assert len(frame) == 6
    holds(table, trials, frame)
    whole = [n for n in table.numbers if isinstance(n, Mean) and not n.over]
    if kind in ("one cluster", "few clusters", "zeros", "constant"):
        assert frame[[number.interval[0] for number in whole]].isna().all(axis=None)
    if kind == "plain":
        assert frame[table.main.interval[0]].notna().all()


def test_tables_of_probes_and_papers_are_among_them():
    assert {"knowledge_table", "accuracy_by_group", "scores", "differences"} <= {*NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_trials_does_not_matter(name):
    table = quick(TABLES[name])
    trials = trials_of(table, "weights")
    by = [*table.by]
    first = estimate(table, trials).sort_values(by).to_csv(index=False)
    again = estimate(table, trials.sample(frac=1.0, random_state=1))
    assert again.sort_values(by).to_csv(index=False) == first


@pytest.mark.parametrize("name", NAMES)
def test_files_pages_and_terminals_show_the_same_numbers(name):
    table = quick(TABLES[name])
    if table.headline is not None:
        table = replace(table, headline=replace(table.headline, terminal=False))
    made = Estimated(table, trials_of(table, "weights"))
    frame = made.frame
    csv = io.StringIO(frame.to_csv(index=False))
    read = pd.read_csv(csv, keep_default_na=False, na_values=[""])
    assert read.columns.tolist() == frame.columns.tolist()
    for column in frame.select_dtypes("number"):
        np.testing.assert_array_equal(read[column], frame[column])
    on_page = made.item.on_page
    pd.testing.assert_frame_equal(on_page, frame.loc[on_page.index])
    shown = pd.concat([rows.assign(place=rows.index) for _, rows in made.item.shown])
    by = frame.groupby([*table.split], dropna=False) if table.split else None
    parts = pd.Series([len(frame)]) if by is None else by.size()
    assert len(shown) == parts.clip(upper=table.most).sum()
    assert len(on_page) == (len(shown) if table.ranked else len(frame))
    for _, row in shown.iterrows():
        same = frame.loc[row["place"]]
        for number in table.numbers:
            assert (number.name in row) == (not number.aside)
            assert number.aside or row[number.name] == same[number.name]
        low, high = same[list(table.main.interval)]
        if "95% interval" in row and not np.isnan(low):
            ends = [float(end) for end in row["95% interval"].replace("−", "-")[1:-1].split(",")]
            assert ends == pytest.approx([low, high], abs=5.1e-4)
        if table.tested is not None:
            assert row["p_holm"] == same["p_holm"]
        assert row[table.count] == same[table.count]


def links_hold(made: Estimated) -> int:
    """Check each link: its pairs, read alone, give its values. Returns the number of links."""
    table, by = made.table, [*made.table.by]
    numbers = {number.name: number for number in table.numbers}
    links = [*made.links()]
    for link in links:
        number = numbers[link.name]
        (row,) = (
            row
            for _, row in made.frame.iterrows()
            if {n: text(row[n]) for n in by if text(row[n]) != ALL} == dict(link.of)
        )
        own = rows_of(made.trials, row, by)
        assert set(link.values) <= set(own["pair_id"])
        for pair, value in link.values.items():
            alone = own[own["pair_id"] == pair]
            assert value == pytest.approx(in_a_loop(number, alone))
        behind = own[own["pair_id"].isin(link.values)]
        assert row[link.name] == pytest.approx(in_a_loop(number, behind))
    return len(links)


@pytest.mark.parametrize("kind", ["weights", "missing"])
@pytest.mark.parametrize("name", NAMES)
def test_each_number_leads_to_pairs_that_give_it_when_read_alone(name, kind):
    table = quick(TABLES[name])
    made = Estimated(table, trials_of(table, kind))
    assert links_hold(made) == 6 * sum(number.interval is not None for number in table.numbers)


@pytest.mark.parametrize("kind", ["plain", "missing"])
@pytest.mark.parametrize("name", NAMES)
def test_two_models_are_compared_trial_by_trial_or_the_declaration_says_why_not(name, kind):
    table = quick(TABLES[name])
    trials = trials_of(table, kind)
    made = Estimated(table, trials)
    compared = made.compared()
    if table.alone:
        assert compared is None
        return
    assert table.main.additive, "a ratio has no differences of trials, so `alone` says why"
    others = [name for name in table.by if name != "model"]
    frame = compared.frame
    assert len(frame) == 3
    assert set(frame["model"]) == {"first minus second"}
    for _, row in frame.iterrows():
        one, other = (
            rows_of(trials[trials["model"] == model], row, others).set_index(table.key)
            for model in ("first", "second")
        )
        for number in compared.table.numbers:
            apart = []
            for key in one.index:
                apart.append(one.loc[key, number.column] - other.loc[key, number.column])
            assert row[number.name] == pytest.approx(np.nanmean(apart), nan_ok=True)
            assert "first" in number.sign
    assert {n.name for n in compared.table.numbers} == {
        n.name for n in table.numbers if n.interval and n.additive
    }
    holds(compared.table, compared.trials, frame)
    assert Estimated(table, trials[trials["model"] == "first"]).compared() is None
    apart = trials["pair_id"].where(trials["model"] == "first", "x" + trials["pair_id"])
    assert Estimated(table, trials.assign(**{table.key: apart})).compared() is None


@pytest.mark.parametrize("name", NAMES)
def test_units_signs_and_texts_are_there(name):
    table = TABLES[name]
    known = {own.name for own in (*PROMPTS, *SCHEMAS.get(table.measured, ()), *table.more)}
    assert set(table.by) <= known
    assert table.text.strip() and table.title and table.trials
    with_interval = {number.name for number in table.numbers if number.interval}
    note = Estimated(quick(table), trials_of(table, "plain")).note
    for number in table.numbers:
        assert number.text and number.unit
        if isinstance(number, Plain):
            assert number.why in with_interval
        elif isinstance(number, Mean) and number.name not in NEVER_NEGATIVE:
            assert number.sign
        assert f"{number.name}: {number.text} ({number.unit}" in note
    assert set(table.family) <= set(table.by) and set(table.split) <= set(table.by)
    assert bool(table.family) == (table.tested is not None)
    assert table.main.additive or table.alone


@pytest.mark.parametrize("name", [name for name in NAMES if TABLES[name].measured in SCHEMAS])
def test_the_data_dictionary_has_its_columns_in_their_order(name):
    table = TABLES[name]
    schema = table.schema(SCHEMAS[table.measured])
    added = [field.name for field in table.more if field.name not in table.by]
    frame = estimate(quick(table), trials_of(table, "plain"))
    assert [n for n in schema.names if n not in added or n == "rank"] == frame.columns.tolist()
    for number in table.numbers:
        assert schema.field(number.name).metadata[b"unit"].decode() == number.unit


def test_every_table_that_is_written_is_in_the_data_dictionary():
    makers = [*map(spec_named, plugins(MEASUREMENTS)), *map(find_study, plugins(STUDIES))]
    located = [named(place) for made in makers for place in made.derives]
    alone = {"differences"}  # which `interp compare` alone makes
    assert {table.name for table in located} == {t.name for t in TABLES.values()} - alone
    assert {table.name for table in located} <= known_tables().keys()


LATTICE = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.5, 1.0, 1.0, 3.0, float("nan")])


@pytest.mark.parametrize("name", [name for name in NAMES if TABLES[name].tested is not None])
@settings(max_examples=10)
@given(data=st.data())
def test_random_trials_give_numbers_intervals_and_tests_that_agree(name, data):
    table = replace(TABLES[name], resamples=199)
    trials = trials_of(table, "plain", rows=2)
    size = len(trials)
    for column, kind in columns_of(table).items():
        if kind == "value":
            trials[column] = data.draw(st.lists(LATTICE, min_size=size, max_size=size))
    chosen = st.lists(st.sampled_from(range(12)), min_size=size, max_size=size)
    trials["cluster"] = data.draw(chosen)
    weights = st.lists(st.sampled_from([1.0, 1.0, 2.0, 7.0]), min_size=size, max_size=size)
    trials["weight"] = data.draw(weights)
    holds(table, trials, estimate(table, trials))


@pytest.fixture(
    scope="module",
    params=[
        lambda: interp.steer(
            tiny_model("llama"),
            some_prompts(12),
            directions=("logit",),
            changes=("swap",),
            roles=("last",),
            draws=2,
        ),
        lambda: interp.edges(tiny_model("llama"), some_prompts(12), methods=["gradient"]),
        lambda: interp.patch(tiny_model("llama"), some_prompts(12), sites=["resid_post"]),
        lambda: interp.find_circuits(tiny_model("llama"), some_prompts(12), methods=["gradient"]),
    ],
    ids=["steer", "edges", "patch", "circuits"],
)
def result(request):
    return request.param()


def test_the_tables_of_real_runs_keep_the_contract(result):
    (made,) = result.estimated
    few = Estimated(quick(made.table), made.trials)
    holds(few.table, few.trials, few.frame)
    other = few.trials.assign(model="other")
    values = [c for c, kind in columns_of(few.table).items() if kind == "value"]
    other[values] = -other[values].astype(float)
    both = pd.concat([few.trials.assign(model="one"), other], ignore_index=True)
    compared = Estimated(few.table, both).compared()
    assert (compared is None) == bool(few.table.alone)
    if compared is not None:
        main = few.table.main.name
        by = [name for name in few.table.by if name != "model"]
        joined = few.frame[[*by, main]].merge(compared.frame[[*by, main]], on=by)
        expected = 2 * joined[f"{main}_x"].to_numpy()
        np.testing.assert_allclose(joined[f"{main}_y"], expected, atol=1e-9)
        assert len(joined) == few.frame[main].notna().sum()


def test_links_of_real_runs_lead_to_their_pairs(result):
    (made,) = result.estimated
    kept = made.frame[[*made.table.by]].drop_duplicates().head(20)
    few = Estimated(quick(made.table), made.trials.merge(kept, on=[*made.table.by]))
    assert links_hold(few) > 0
