from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from interp.reading.shared_batches import families

token_lists = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple), min_size=0, max_size=12
)


def found(*token_ids, rest=1):
    return {(family.members, family.shared) for family in families(token_ids, rest=rest)}


def test_prompts_that_begin_alike_are_a_family_whatever_their_order():
    assert found((1, 2, 3, 4), (7, 8, 9), (1, 2, 3, 5, 6), (7, 8, 1)) == {((0, 2), 3), ((3, 1), 2)}


def test_a_prompt_that_shares_little_does_not_shorten_what_others_share():
    long = (1, *range(2, 20))
    # Joined, the three would save 2 tokens; apart, the first two save 18.
    assert found((*long, 20), (*long, 21), (1, 30)) == {((0, 1), 19), ((2,), 1)}


def test_a_prompt_alone_that_comes_first_does_not_shorten_what_others_share():
    long = tuple(range(1, 20))
    assert found((1, 0), (*long, 20), (*long, 21), (*long, 22)) == {((0,), 1), ((1, 2, 3), 19)}


def test_many_that_share_little_are_a_family_rather_than_few_that_share_more():
    assert found((1, 2, 3, 4), (1, 2, 3, 5), (1, 2, 6), (1, 2, 7)) == {((0, 1, 2, 3), 2)}


def test_identical_prompts_keep_their_last_token():
    assert found((1, 2, 3), (1, 2, 3)) == {((0, 1), 2)}


def test_a_prompt_that_another_begins_with_keeps_its_last_token():
    assert found((1, 2), (1, 2, 3, 4)) == {((0, 1), 1)}


def test_all_of_a_prompt_may_be_shared_where_nothing_need_be_left():
    assert found((1, 2), (1, 2, 3, 4), rest=0) == {((0, 1), 2)}
    assert found((5, 6), (1, 2, 3), rest=0) == {((0,), 2), ((1,), 3)}


def test_prompts_of_which_each_begins_the_next_take_no_deep_recursion():
    count = 2_000
    (*_, last) = families([(1,) * length for length in range(1, count)])
    assert last.shared > count / 3


def test_no_prompts_are_no_families():
    assert found() == set()


@given(token_lists)
def test_each_prompt_is_in_one_family_that_it_begins_like(token_ids):
    found = families(token_ids)
    members = [index for family in found for index in family.members]
    assert sorted(members) == list(range(len(token_ids)))
    for family in found:
        prefixes = {token_ids[index][: family.shared] for index in family.members}
        assert len(prefixes) == 1
        assert all(len(token_ids[index]) > family.shared for index in family.members)


@given(token_lists)
def test_no_stretch_of_prompts_would_save_more_as_one_family(token_ids):
    """Brute force over all stretches in the order of tokens."""
    saved = sum(family.saved for family in families(token_ids))
    ordered = sorted(token_ids)
    for start, end in combinations(range(len(ordered) + 1), 2):
        stretch = ordered[start:end]
        longest = min(map(len, stretch)) - 1
        shared = next(n for n in range(longest, -1, -1) if len({ids[:n] for ids in stretch}) == 1)
        assert saved >= shared * (len(stretch) - 1)
