from hypothesis import given
from hypothesis import strategies as st

from benchmarks.side_by_side import timed, tokens_once


def test_ways_take_turns():
    order = []
    ways = {"one": lambda: order.append(1), "other": lambda: order.append(2)}
    assert timed(ways, 3, len) == {"one": 3, "other": 3}
    assert order == [1, 2] * 3


@given(st.lists(st.lists(st.integers(0, 2), max_size=7).map(tuple), max_size=12))
def test_tokens_counted_once_are_the_distinct_beginnings(prompts):
    beginnings = {ids[:length] for ids in prompts for length in range(1, len(ids) + 1)}
    assert tokens_once(prompts) == len(beginnings)
