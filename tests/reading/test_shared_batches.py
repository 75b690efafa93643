from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.reading import shared_batches as layout
from interp.reading.shared_batches import families

token_lists = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple), min_size=0, max_size=12
)


def found(*token_ids, rest=1):
    return {(family.members, family.shared) for family in families(token_ids, rest=rest)}


def test_a_beginning_that_saves_less_than_a_tenth_is_not_used():
    for length, shared in ((9, 0), (10, 10)):
        own = tuple(range(length))
        one, other = ((*own, first, *range(length + 1, 50)) for first in (50, 51))
        assert found(one, other) == {((0, 1), shared)}


@pytest.mark.parametrize(("length", "used"), [(63, 0), (64, 64)])
def test_within_another_beginning_saving_two_passes_worth_of_tokens_is_enough(length, used):
    begun, own = tuple(range(10, 510)), tuple(range(1000, 1000 + length))
    rest = tuple(range(2000, 2400))
    one, other, third = (*own, 1, *rest), (*own, 2, *rest), (3, *rest)
    # A tenth of the tokens left would be more, so this beginning is not used by itself.
    assert {shared for _, shared in found(one, other, third)} == {0}
    within = {shared for _, shared in found(*((*begun, *each) for each in (one, other, third)))}
    assert within == {500, 500 + used}


def test_a_beginning_is_not_used_if_it_does_not_fit_together_with_a_whole_prompt():
    own = tuple(range(40))
    assert [f.shared for f in families([(*own, 50), (*own, 51)], most=81)] == [40]
    assert [f.shared for f in families([(*own, 50), (*own, 51)], most=80)] == [0]


def test_all_of_a_prompt_may_be_shared_where_nothing_need_be_left():
    assert found((1, 2), (1, 2, 3, 4), rest=0) == {((0, 1), 2)}
    assert found((5, 6), (1, 2, 3), rest=0) == {((1, 0), 0)}


def test_prompts_of_which_each_begins_the_next_take_no_deep_recursion():
    count = 2_000
    last = max(families([(1,) * n for n in range(1, count)]), key=lambda family: family.shared)
    assert last.shared > count / 3


@given(token_lists)
def test_the_beginnings_are_those_of_a_plain_walk_through_the_tree(token_ids):
    expected = {}

    def walk(members, before):
        if len(members) == 1:
            expected[members[0]] = before
            return
        own = [token_ids[index] for index in members]
        longest = min(map(len, own)) - 1
        common = next(n for n in range(longest, -1, -1) if len({ids[:n] for ids in own}) == 1)
        left = sum(len(ids) - before for ids in own)
        enough = layout.SAVED_SHARE * left
        enough = min(enough, 2 * layout.PASS_TOKENS) if before else enough
        if (common - before) * (len(members) - 1) >= max(1, enough):
            before = common
        branches = defaultdict(list)
        for index in members:
            ids = token_ids[index]
            branches[ids[: common + 1] if len(ids) > common + 1 else index].append(index)
        for branch in branches.values():
            walk(branch, before)

    if token_ids:
        walk(range(len(token_ids)), 0)
    found = list(families(token_ids))
    assert sorted(i for family in found for i in family.members) == list(range(len(token_ids)))
    assert {index: family.shared for family in found for index in family.members} == expected
    for family in found:
        assert len({token_ids[index][: family.shared] for index in family.members}) == 1
    used = [family for family in found if family.shared]
    begun = {token_ids[own.members[0]][: own.shared] for own in used}
    assert len(begun) == len(used)
