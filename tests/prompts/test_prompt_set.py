import dataclasses
import random
import time
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.errors import UserError
from interp.prompts.design import evenly
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import find_system
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.prompts import CROSSED as ASKED
from interp_experiments.rulebreakers.study import DEFAULT_LIMIT
from tests.support.answers import yes_no
from tests.support.prompts import some_prompts
from tests.support.systems import three_options


@pytest.fixture(scope="module")
def full():
    return find_system("rulebreakers").prompts(seed=0, data=None)


@pytest.fixture(scope="module")
def many(full):
    """Twenty items of each verb in all forms: enough to spread over, and quick to read."""
    return full.spread(4800)


def made_of(prompts, template):
    return PromptSet(
        template.system, template.sides, template.strata, prompts.__getitem__, range(len(prompts))
    )


@pytest.mark.quick(2)
@pytest.mark.parametrize("pairs", [1, 2, 12, 24, 48])
def test_a_small_limit_is_spread_over_the_strata_too(full, pairs):
    """Fewer pairs than one item of each kind has: none is asked in all phrasings."""
    frame = full.spread(pairs).to_frame().drop_duplicates("pair_id")
    assert len(frame) == pairs
    for factor, values in (("rule", 2), ("entity_group", 2), ("verb", 12), ("phrasing", 10)):
        counts = frame[factor].value_counts()
        assert len(counts) == min(pairs, values)
        assert counts.max() - counts.min() <= 2


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(instances=st.integers(24, 90), seed=st.integers(0, 3))
def test_what_is_asked_is_asked_by_both_rules_in_every_phrasing(full, instances, seed):
    frame = full.spread(20 * instances + 3, seed).to_frame().drop_duplicates("pair_id")
    asked = frame.groupby(list(ASKED))[["rule", "phrasing"]].value_counts()
    assert (asked == 1).all()
    assert sorted(asked.groupby(list(ASKED)).size()) == [3, *[20] * instances]


def test_rules_are_compared_within_the_same_entity_pairs(full):
    """Those of the default study."""
    frame = full.spread(DEFAULT_LIMIT).to_frame().drop_duplicates("pair_id")
    by_rule = frame.groupby("rule")["entity_b"].unique()
    assert set(by_rule["mt"]) == set(by_rule["ds"])
    assert frame.groupby("entity_group")["entity_b"].nunique().to_dict() == {
        "categorical": 36,
        "geographical": 36,
    }
    # Each rule has the same trials in each entity pair, and the same share of the data set.
    trials = frame.groupby(["entity_b", "rule"])["weight"].agg(["size", "sum"]).unstack()
    assert trials["size"].nunique(axis=1).eq(1).all()
    assert trials["sum", "mt"].to_numpy() == pytest.approx(trials["sum", "ds"].to_numpy())
    assert frame["weight"].sum() == pytest.approx(len(full) / 2)


@pytest.mark.parametrize("pairs", [24, 60, 240, 480])
def test_a_small_limit_has_as_many_entity_pairs_as_rules_and_verbs(full, pairs):
    frame = full.spread(pairs).to_frame()
    assert frame["entity_b"].nunique() == 24
    # Two pairs of each are not yet one of each rule; five are.
    both = frame.groupby("entity_b")["rule"].nunique() == 2
    assert both.sum() >= (0 if pairs < 60 else 18 if pairs < 240 else 24)


def test_entities_come_back_only_when_others_had_their_turn(full):
    instances = full.spread(2400).to_frame().drop_duplicates(list(ASKED))
    taken = instances.groupby("category")["entity_b"].value_counts()
    held = Counter(entity.category for entity in entity_pairs())
    for category, entities in held.items():
        times = [*taken[category], *[0] * (entities - len(taken[category]))]
        assert max(times) - min(times) <= 1, (category, times)


def crossed(kinds, variants):
    """Items of some kinds, each asked in some variants by both sides of a pair."""
    prompts = [
        Prompt(
            f"{item}-{variant}-{side}",
            "text",
            {},
            yes_no(),
            f"{item}-{variant}",
            side,
            {"kind": kind, "item": str(item), "variant": str(variant)},
        )
        for item, kind in enumerate(kinds)
        for variant in range(variants)
        for side in ("one", "other")
    ]
    return PromptSet(
        "crossed",
        ("one", "other"),
        ("kind", "variant"),
        prompts.__getitem__,
        range(len(prompts)),
        unit=("item",),
    )


CROSSED = st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=9), st.integers(1, 4))


def strata_of(frame):
    return frame.groupby(["kind", "variant"])


@settings(max_examples=40, deadline=None)
@given(made=CROSSED, pairs=st.integers(1, 40), fewer=st.integers(1, 40), seed=st.integers(0, 9))
def test_weights_of_each_stratum_add_up_to_its_size_in_samples_and_theirs(made, pairs, fewer, seed):
    prompts = crossed(*made)
    whole = strata_of(prompts.to_frame()).size()
    sample = prompts.spread(pairs, seed)
    for drawn in (sample, sample.spread(fewer, seed)):
        weights = strata_of(drawn.to_frame())["weight"]
        assert (weights.nunique() == 1).all()
        assert weights.sum().to_numpy() == pytest.approx(whole[weights.sum().index].to_numpy())
    if 2 * pairs >= len(prompts):
        assert set(sample.to_frame()["weight"]) == {1.0}
    assert set(prompts.to_frame()["weight"]) == {1.0}


@settings(max_examples=40, deadline=None)
@given(made=CROSSED, pairs=st.integers(1, 40), more=st.integers(0, 20), seed=st.integers(0, 9))
def test_a_sample_grows_and_its_items_are_whole(made, pairs, more, seed):
    prompts = crossed(*made)
    smaller, larger = (list(prompts.spread(n, seed).numbers) for n in (pairs, pairs + more))
    assert larger[: len(smaller)] == smaller
    assert len(set(larger)) == len(larger)
    frame = prompts.spread(pairs, seed).to_frame()
    kinds, variants = (prompts.to_frame()[name].nunique() for name in ("kind", "variant"))
    if pairs >= kinds * variants:
        incomplete = frame.groupby("item")["variant"].nunique() < variants
        assert incomplete.sum() <= 1


def test_weights_are_in_no_hash(full):
    sample = full.spread(30)
    unweighted = dataclasses.replace(sample, weights={})
    assert sample.content_hash() == unweighted.content_hash()
    weights = sample.to_frame()["weight"]
    assert weights.dtype == "float64"
    assert weights.nunique() > 1
    assert set(unweighted.to_frame()["weight"]) == {1.0}
    assert list(sample[3:5].to_frame()["weight"]) == list(weights[3:5])


def test_members_of_a_group_may_differ_in_a_stratum():
    prompts = three_options.prompts(seed=0, data=None)
    assert sorted(prompts.spread(9).numbers) == list(range(12))
    assert set(prompts.spread(2).to_frame()["weight"]) == {2.0}


def one_by_one(cells, rng):
    """What `evenly` does, told plainly and slowly: all cells are compared for each pair."""
    for ids in cells.values():
        keys = {pair_id: rng.random() for pair_id in ids}
        ids.sort(key=keys.__getitem__, reverse=True)
    taken = Counter()
    while cells:
        waiting = {cell: rng.random() for cell in cells}
        while waiting:
            load = {cell: sum(taken[value] ** 2 for value in enumerate(cell)) for cell in waiting}
            cell = min(waiting, key=lambda c, load=load: (load[c], waiting[c]))
            del waiting[cell]
            taken.update(enumerate(cell))
            yield cells[cell].pop()
        cells = {cell: ids for cell, ids in cells.items() if ids}


@given(
    strata=st.integers(0, 3).flatmap(
        lambda n: st.lists(st.tuples(*[st.sampled_from("abcd")] * n), max_size=40)
    ),
    seed=st.integers(0, 9),
)
def test_pairs_are_taken_in_the_order_of_the_plain_method(strata, seed):
    def cells():
        found = {}
        for number, cell in enumerate(strata):
            found.setdefault(cell, []).append(f"pair {number}")
        return found

    fast = list(evenly(cells(), random.Random(seed)))
    assert fast == list(one_by_one(cells(), random.Random(seed)))
    assert sorted(fast) == sorted(f"pair {number}" for number in range(len(strata)))


def test_many_strata_are_spread_over_in_little_time():
    # The plain method compares 20,000 cells 2,000 times: minutes.
    cells = {(f"verb {n % 10_000}", f"phrasing {n // 10_000}"): [str(n)] for n in range(20_000)}
    started = time.process_time()
    taken = [int(pair) for pair in islice(evenly(cells, random.Random(0)), 2_000)]
    assert time.process_time() - started < 10
    assert len({number % 10_000 for number in taken}) == 2_000
    assert Counter(number // 10_000 for number in taken) == {0: 1_000, 1: 1_000}


def test_a_limit_is_drawn_from_the_whole_set_by_the_seed(full):
    one, same, other = full.spread(48, 0), full.spread(48, 0), full.spread(48, 1)
    assert list(one.numbers) == list(same.numbers)
    assert set(one.numbers) != set(other.numbers)
    assert max(one.numbers) > len(full) * 0.9
    assert min(full.spread(480, 0).numbers) < len(full) * 0.25


@pytest.mark.slow
def test_an_outline_is_what_the_prompt_says_and_spares_building_it(full):
    for number in range(0, len(full), 997):
        prompt = full.build(number)
        assert full.outline(number) == (prompt.pair_id, prompt.factors)
    built = []

    def build(number):
        built.append(number)
        return full.build(number)

    chosen = dataclasses.replace(full, build=build).spread(5, seed=1)
    assert not built
    assert list(chosen.numbers) == list(
        dataclasses.replace(full, outline=None).spread(5, seed=1).numbers
    )


def test_a_limit_that_is_no_number_of_pairs_is_refused(full, unchecked_types):
    for limit in (0, "60", 1.5, None):
        with pytest.raises(UserError, match=r"limit.*\S; .*pair"):
            full.spread(limit)


def replace_gold(choice):
    (other,) = {option.name for option in choice.options} - {choice.gold}
    return dataclasses.replace(choice, gold=other)


def test_the_hash_depends_on_everything_and_on_nothing_else():
    prompts = list(some_prompts(3))
    template = some_prompts(3)
    original = made_of(prompts, template).content_hash()
    assert template.content_hash() == original
    for change in (
        {"text": prompts[0].text + "!"},
        {"answer": replace_gold(prompts[0].answer)},
        {"answer": dataclasses.replace(prompts[0].answer, contrast=None)},
        {"segments": {**prompts[0].segments, "premise1": (1, 2)}},
        {"factors": {"rule": "other"}},
    ):
        changed = [dataclasses.replace(prompts[0], **change), *prompts[1:]]
        assert made_of(changed, template).content_hash() != original
    assert made_of(prompts[::-1], template).content_hash() != original


def with_factor(name):
    return lambda one, *others: [
        dataclasses.replace(one, factors={**one.factors, name: "v"}),
        *others,
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (lambda one, *others: [one, *others, one], "prompt id 'RULEBREAKER_0012630_rb/infer-tf'"),
        (lambda *own: own[:-1], r"'RULEBREAKER_0003881/.*rulebreaker; .*one non_rulebreaker"),
        (with_factor("weight"), r"'RULEBREAKER_0012630_rb/infer-tf'.*factor 'weight'.*rename"),
        *((with_factor(name), f"{name}.*rename") for name in ("question_start", "question_end")),
        *(
            (lambda one, *_, side=side: [dataclasses.replace(one, side=side)], f"{side}.*rename")
            for side in ("paired", "model", "weight")
        ),
    ],
)
def test_sets_that_tables_cannot_hold_are_refused(changed, problem):
    PromptSet.of(list(some_prompts(2))).check()
    with pytest.raises(UserError, match=problem):
        PromptSet.of(changed(*some_prompts(2))).check()


def test_the_frame_has_factors_and_spans():
    frame = some_prompts(3).to_frame()
    assert len(frame) == 6
    row = frame.iloc[0]
    assert row["text"][row["premise1_start"] : row["premise1_end"]].endswith(".")
    assert {"rule", "verb", "phrasing", "gold", "side"} <= set(frame.columns)


def test_a_slice_is_a_set_of_its_prompts():
    prompts = some_prompts(12)
    assert list(prompts[3:9:2]) == [prompts[3], prompts[5], prompts[7]]
    assert prompts[-1] == list(prompts)[-1]
    assert prompts[:4].strata == prompts.strata


def test_the_columns_are_those_of_all_prompts():
    """Some have segments and factors that the first one lacks."""
    first, other, *_ = some_prompts(2)
    other = dataclasses.replace(
        other, segments={**other.segments, "rule": (0, 1)}, factors={**other.factors, "hops": "2"}
    )
    prompts = PromptSet.of([first, other])
    columns = prompts.columns()
    assert (columns["rule_end"], columns["hops"]) == (1, "2")
    assert list(columns) == list(prompts.to_frame().columns)


def test_a_filter_keeps_prompts_with_what_the_set_knows(full):
    drawn = full.spread(24)
    rule = drawn[0].factors["rule"]
    found = drawn.filter(lambda prompt: prompt.factors["rule"] == rule)
    assert list(found) == [prompt for prompt in drawn if prompt.factors["rule"] == rule]
    assert 0 < len(found) < len(drawn) and found.sides == drawn.sides
    assert [found.weight(prompt) for prompt in found] == [drawn.weight(prompt) for prompt in found]
    assert list(islice(found.donors(found.numbers[0]), 3)) == list(
        islice(drawn.donors(found.numbers[0]), 3)
    )
    assert found.description["filtered"] == f"{len(found)} of 48 prompts"
    assert "spread_seed" not in found.description and len(found.drawn_from) == len(full)
    one = found.filter(lambda prompt: prompt.side == drawn.sides[1])
    assert one.sides == drawn.sides[1:] and len(one) == len(found) // 2
    one.check()
    shown = interp.with_messages(one, shots=2)
    assert len(shown[0].messages.demonstrations) == 2
    assert len(found.filter(lambda prompt: False)) == 0


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(pairs=st.integers(1, 900), seed=st.integers(0, 3))
def test_a_limit_is_spread_evenly(many, pairs, seed):
    subset = list(many.spread(pairs, seed))
    assert len(subset) == 2 * pairs
    assert Counter(prompt.side for prompt in subset) == {
        "rulebreaker": pairs,
        "non_rulebreaker": pairs,
    }
    assert len({prompt.pair_id for prompt in subset}) == pairs
    # Instances are whole, so that rules and verbs may differ by ten phrasings.
    slack = {"rule": 20, "entity_group": 20, "verb": 20, "phrasing": 2}
    for factor, values in (("rule", 2), ("entity_group", 2), ("verb", 12), ("phrasing", 10)):
        counts = Counter(prompt.factors[factor] for prompt in subset).values()
        least = min(counts) if len(counts) == values else 0
        assert (max(counts) - least) // 2 <= slack[factor], (factor, counts)
