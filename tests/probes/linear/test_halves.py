import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.prompts.systems import load_prompts
from interp_experiments.rulebreakers.instances import generate
from interp_probes.linear.halves import DROPPED, entity_halves, with_entities


def pairs_table(triples):
    """Prompts of pairs (A, wrong A, B), both sides of each."""
    rows = []
    for number, (right, wrong, b) in enumerate(triples):
        for side, a in (("rulebreaker", right), ("non_rulebreaker", wrong)):
            rows.append((f"{number}/{side}", f"{number}", side, a, b))
    return pd.DataFrame(rows, columns=["prompt_id", "pair_id", "side", "entity_a", "entity_b"])


def entities(prompts, halves, half):
    chosen = prompts[(halves == half).to_numpy()]
    return set(chosen["entity_a"]) | set(chosen["entity_b"])


def check(prompts, halves):
    """No entity in both halves, as A or as B; pairs whole."""
    assert halves.index.tolist() == prompts["prompt_id"].tolist()
    assert not entities(prompts, halves, 0) & entities(prompts, halves, 1)
    of_pair = pd.Series(halves.to_numpy()).groupby(prompts["pair_id"].to_numpy())
    assert (of_pair.nunique() == 1).all()


def test_a_cycle_is_cut_into_two_arcs():
    n = 20
    prompts = pairs_table([(f"A{i}", f"A{(i + 7) % n}", f"B{i}") for i in range(n)])
    halves = entity_halves(prompts)
    check(prompts, halves)
    assert (halves == DROPPED).sum() == 2 * 2  # the pairs at the two cuts
    assert abs((halves == 0).sum() - (halves == 1).sum()) <= 4
    # So is a short one, where nothing else is there.
    prompts = pairs_table(cycle("A", 8))
    halves = entity_halves(prompts)
    check(prompts, halves)
    assert {0, 1} <= set(halves)


def test_components_stay_whole_where_that_is_even():
    prompts = pairs_table([pair for letter in "xyzw" for pair in cycle(letter, 3)])
    halves = entity_halves(prompts)
    check(prompts, halves)
    assert (halves != DROPPED).all()
    assert (halves == 0).sum() == (halves == 1).sum()
    letter = prompts["entity_a"].str[0]
    assert (pd.Series(halves.to_numpy()).groupby(letter).nunique() == 1).all()


def test_the_generated_data_is_halved_with_few_pairs_dropped():
    instances = generate(0)
    names = ("id", "pair_id", "entity_a", "entity_b", "category")
    columns = {name: [getattr(instance, name) for instance in instances] for name in names}
    prompts = pd.DataFrame(columns).rename(columns={"id": "prompt_id"})
    halves = entity_halves(prompts)
    check(prompts, halves)
    # Four cities, at the cuts of two cycles, have 60 pairs each.
    assert (halves == DROPPED).sum() == 2 * 60 * 4
    assert 0.45 < (halves == 0).mean() < 0.55
    by_category = pd.Series(halves.to_numpy()).groupby(prompts["category"]).nunique()
    assert by_category.drop("cities").eq(1).all()


def test_cities_are_in_both_halves_however_many_others_there_are():
    """As many pairs as the default study probes, equally many of each stratum."""
    prompts = load_prompts("rulebreakers", limit=960, seed=0).to_frame()
    halves = pd.Series(entity_halves(prompts).to_numpy())
    cities = halves[(prompts["category"] == "cities").to_numpy() & (halves != DROPPED).to_numpy()]
    assert 0.45 < cities.mean() < 0.55
    assert 0.4 < halves[halves != DROPPED].mean() < 0.6


@pytest.mark.parametrize("sides_share", [True, False])
def test_pairs_with_entities_of_their_own_are_halved(sides_share):
    wrong = "A" if sides_share else "W"
    prompts = pairs_table([(f"A{i}", f"{wrong}{i}", f"B{i}") for i in range(24)])
    halves = entity_halves(prompts)
    check(prompts, halves)
    assert (halves == 0).sum() == (halves == 1).sum() == 24


def cycle(name, n):
    return [(f"{name}{i}", f"{name}{(i + 1) % n}", f"{name}B{i}") for i in range(n)]


def test_a_group_that_lies_unevenly_is_cut_where_fewest_pairs_are_lost():
    cities = [pair for n in range(2) for pair in cycle(f"city{n}", 40)]
    kinds = [*cycle("bird", 9), *cycle("fish", 9), *cycle("insect", 8)]
    prompts = pairs_table([*cities, *kinds])
    prompts["entity_group"] = prompts["entity_b"].str.startswith("city").map(str)
    halves = entity_halves(prompts)
    check(prompts, halves)
    of_kinds = halves[(prompts["entity_group"] == "False").to_numpy()]
    assert (of_kinds == 0).sum() == (of_kinds == 1).sum()
    assert (of_kinds == DROPPED).sum() == 2 * 2  # the cut of the shortest cycle


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40))
def test_prompts_without_entities_are_split_by_their_unit(units):
    """Each unit is whole in one half, and the halves differ by no more than one unit."""
    own = ["prompt_id", "pair_id", "side"]
    prompts = pairs_table([("", "", "")] * len(units))[own].assign(
        unit=np.repeat(list(map(str, units)), 2)
    )
    halves = entity_halves(with_entities(prompts, "unit"))
    assert (halves != DROPPED).all()
    sides = pd.DataFrame({"unit": prompts["unit"], "half": halves.to_numpy()})
    assert (sides.groupby("unit")["half"].nunique() == 1).all()
    sizes = sides["half"].value_counts()
    largest = sides["unit"].value_counts().max()
    assert abs(sizes.get(0, 0) - sizes.get(1, 0)) <= largest
    by_pair = entity_halves(with_entities(prompts, None))
    assert abs((by_pair == 0).sum() - (by_pair == 1).sum()) <= 2


_NAMES = st.integers(0, 12).map("e{}".format)


@given(st.lists(st.tuples(_NAMES, _NAMES, _NAMES), min_size=1, max_size=40))
def test_no_entity_is_in_both_halves_of_any_data(triples):
    prompts = pairs_table(triples)
    check(prompts, entity_halves(prompts))
