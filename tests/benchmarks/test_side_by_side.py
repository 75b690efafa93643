from hypothesis import given
from hypothesis import strategies as st

from benchmarks.side_by_side import lines, machine, timed, tokens_once


def test_ways_take_turns():
    order = []
    ways = {"one": lambda: order.append(1), "other": lambda: order.append(2)}
    assert timed(ways, 3, len) == {"one": 3, "other": 3}
    assert order == [1, 2] * 3


def test_the_line_about_the_machine_names_the_versions_of_peers():
    assert ", torch " in machine()
    assert machine("pandas").rpartition(", ")[2].startswith("pandas ")


def test_numbers_are_printed_one_to_a_line():
    assert lines("x", {"a": 2.0, "b": 1234.5}).split() == ["x", "a", "2", "b", "1,234"]


@given(st.lists(st.lists(st.integers(0, 2), max_size=7).map(tuple), max_size=12))
def test_tokens_counted_once_are_the_distinct_beginnings(prompts):
    beginnings = {ids[:length] for ids in prompts for length in range(1, len(ids) + 1)}
    assert tokens_once(prompts) == len(beginnings)
