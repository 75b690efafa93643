from benchmarks.side_by_side import machine, timed


def test_ways_take_turns():
    order = []
    ways = {"one": lambda: order.append(1), "other": lambda: order.append(2)}
    assert timed(ways, 3, len) == {"one": 3, "other": 3}
    assert order == [1, 2] * 3


def test_the_line_about_the_machine_names_the_versions_of_peers():
    assert ", torch " in machine()
    assert machine("pandas").rpartition(", ")[2].startswith("pandas ")
