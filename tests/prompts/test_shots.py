"""Demonstrations: which are drawn for a pair, and in which order."""

import itertools
import re
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interp
from interp.errors import UserError
from interp.prompts.prompt_set import PromptSet
from interp.prompts.shots import Draw, balanced
from interp.prompts.source import PromptSource
from interp.prompts.systems import find_system
from tests.support.prompts import some_prompts


def rows(pairs, *, gold=("Yes", "No"), **more):
    return pd.DataFrame(
        [
            {"pair": f"p{n}", "side": side, "gold": own, "fact": f"Fact {n} {side}."} | more
            for n in range(pairs)
            for side, own in zip("ab", gold, strict=True)
        ]
    )


def drawn(prompts):
    """The ids of the demonstrations of each prompt, in order."""
    return {p.id: [one.source for one in p.messages.demonstrations] for p in prompts}


def spread(counts, values):
    found = [counts[value] for value in values]
    return max(found) - min(found)


@given(
    st.lists(st.permutations(["a", "b", "c"]), min_size=1, max_size=12),
    st.integers(2, 3),
    st.data(),
)
def test_sides_that_decide_the_answer_occur_equally_often(orders, sides, data):
    """Every bag has each side; a side has always the same answer."""
    gold = {"a": "Yes", "b": "No", "c": "Maybe"}
    bags = [[(side, gold[side]) for side in order if side in "abc"[:sides]] for order in orders]
    number = data.draw(st.integers(1, len(bags)))
    found = balanced(bags, number)
    assert len({bag for bag, _ in found}) == number
    shown = Counter(bags[bag][place] for bag, place in found)
    assert spread(shown, [(side, gold[side]) for side in "abc"[:sides]]) <= 1


@given(st.integers(1, 8), st.data())
def test_sides_and_answers_are_balanced_together_where_they_are_crossed(number, data):
    """Enough bags hold each combination; the order of bags and of cells is any."""
    cells = [(side, gold) for side in "ab" for gold in ("Yes", "No")]
    bags = data.draw(st.permutations([[cell] for cell in cells * number]))
    shown = [bags[bag][place] for bag, place in balanced(bags, number)]
    assert spread(Counter(side for side, _ in shown), "ab") <= 1
    assert spread(Counter(gold for _, gold in shown), ["Yes", "No"]) <= 1
    assert spread(Counter(shown), cells) <= 1


@given(st.data())
def test_an_exchange_of_one_place_improves_nothing(data):
    cell = st.tuples(st.sampled_from("abc"), st.sampled_from(["Yes", "No"]))
    bags = data.draw(st.lists(st.lists(cell, min_size=1, max_size=3), min_size=1, max_size=6))
    found = balanced(bags, data.draw(st.integers(1, len(bags))))

    def uneven(places):
        shown = [bags[bag][place] for bag, place in places]
        sides, golds = (Counter(one[n] for one in shown) for n in (0, 1))
        counts = [*sides.values(), *golds.values()]
        return sum(n * n for n in counts), sum(n * n for n in Counter(shown).values())

    for out, bag in itertools.product(range(len(found)), range(len(bags))):
        others = found[:out] + found[out + 1 :]
        if bag not in {own for own, _ in others}:
            for place in range(len(bags[bag])):
                assert uneven(found) <= uneven([*others, (bag, place)])


@given(st.integers(1, 7), st.integers(0, 3))
def test_both_sides_read_the_same_of_other_pairs(shots, seed):
    prompts = interp.with_messages(interp.read_pairs(rows(8)), shots=shots, shots_seed=seed)
    by_pair = {}
    for prompt in prompts:
        shown = prompt.messages.demonstrations
        assert by_pair.setdefault(prompt.pair_id, shown) == shown
        pairs = [one.source.split("/")[0] for one in shown]
        assert len(set(pairs)) == len(pairs) == shots
        assert prompt.pair_id not in pairs
        assert spread(Counter(one.answer for one in shown), ["Yes", "No"]) <= 1
    assert drawn(prompts) == drawn(
        interp.with_messages(interp.read_pairs(rows(8)), shots=shots, shots_seed=seed)
    )


def test_another_seed_draws_others():
    prompts = interp.read_pairs(rows(20))
    one, two = (interp.with_messages(prompts, shots=4, shots_seed=seed) for seed in (0, 1))
    assert drawn(one) != drawn(two)
    orders = Counter(
        tuple(one.answer for one in p.messages.demonstrations)
        for p in interp.with_messages(prompts, shots=2)
    )
    assert set(orders) == {("Yes", "No"), ("No", "Yes")}  # the order is drawn too


def test_a_limit_changes_no_prompts_demonstrations(tmp_path):
    file = str(tmp_path / "pairs.csv")
    rows(12).to_csv(file, index=False)
    few, more = (drawn(PromptSource(data=file, limit=n, shots=3).load()) for n in (3, 6))
    assert {id_: more[id_] for id_ in few} == few
    assert {source for shown in few.values() for source in shown} - more.keys()


ENTITIES = ("entity_a", "entity_b")


@pytest.mark.slow
def test_no_entity_of_the_pair_is_shown():
    """A city's pairs share its name; the wrong country of a pair may be that of another city."""
    whole = find_system("rulebreakers").prompts(seed=0, data=None)
    prompts = interp.with_messages(some_prompts(12), shots=8)
    sources = drawn(prompts)
    pairs = {re.sub("_(non)?rb/", "/", id_) for own in sources.values() for id_ in own}
    outlines = zip(whole.numbers, whole.outlines(), strict=True)
    built = [whole.build(number) for number, own in outlines if own.pair_id in pairs]
    shown = {prompt.id: prompt for prompt in built}
    for one, other in zip(prompts[::2], prompts[1::2], strict=True):
        named = {p.text[a:b].casefold() for p in (one, other) for a, b in p.roles.values()}
        others = [shown[source].factors for source in sources[one.id]]
        assert len({own["entity_b"] for own in others}) == 8
        assert not named & {own[name].casefold() for own in others for name in ENTITIES}
        assert {own["phrasing"] for own in others} == {one.factors["phrasing"]}
        assert sources[other.id] == sources[one.id]


def test_pairs_with_the_same_texts_are_one_cluster():
    table = pd.concat([rows(3), rows(3).assign(pair=lambda t: t["pair"] + "-copy")])
    prompts = interp.read_pairs(table)
    for id_, shown in drawn(interp.with_messages(prompts, shots=2)).items():
        own = id_.split("/")[0].removesuffix("-copy")
        assert own not in {one.split("/")[0].removesuffix("-copy") for one in shown}
    with pytest.raises(UserError, match=r"'p0'.*\b3 shots.*\b3 clusters.*\b2\b.*--shots"):
        interp.with_messages(prompts, shots=3)


def test_a_phrasing_is_demonstrated_by_itself():
    templates = ("{fact} Really?", "Is it so? {fact}")
    prompts = interp.with_messages(interp.read_pairs(rows(5), templates=templates), shots=4)
    for prompt in prompts:
        for one in prompt.messages.demonstrations:
            assert one.question.endswith("Really?") == prompt.text.endswith("Really?")


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("shots", "problem"),
    [
        *((n, rf"'p0' .*\b{n} shots: .*\b5 clusters.*\b4\b") for n in (5, 64)),
        *((n, rf"^shots .*{re.escape(repr(n))}.*\b64$") for n in (-1, 65, 2.0, "2", 10**9)),
    ],
)
def test_demonstrations_of_too_few_clusters_or_of_no_number_are_refused(shots, problem):
    with pytest.raises(UserError, match=problem):
        interp.with_messages(interp.read_pairs(rows(5)), shots=shots)


def test_prompts_of_ones_own_are_apart_by_pair():
    prompts = [replace(p, factors={}) for p in interp.read_pairs(rows(3))]
    for id_, shown in drawn(interp.with_messages(prompts, shots=2)).items():
        assert {one[:2] for one in shown} == {"p0", "p1", "p2"} - {id_[:2]}


def test_a_pool_may_be_another_set():
    asked, pool = interp.read_pairs(rows(1)), interp.read_pairs(rows(4).iloc[2:])
    shown = drawn(interp.with_messages(asked, shots=3, pool=pool))
    assert {one[:2] for one in shown["p0/a"]} == {"p1", "p2", "p3"}


def test_the_draw_reads_only_a_part_of_a_large_set():
    built = []
    whole = find_system("robustlr").prompts(seed=0, data=None)

    def build(number):
        built.append(number)
        return whole.build(number)

    pool = replace(whole, build=build)
    draw = Draw(4, 0, PromptSet.of([whole[0]]), pool, None)
    assert len(draw.of(whole[0])) == 4
    assert len(built) < 10_000 < len(whole)
