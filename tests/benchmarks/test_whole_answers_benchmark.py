"""The benchmark of whole answers reads the same prompts in both ways."""

from benchmarks.side_by_side import random_llama
from benchmarks.whole_answers import MOST, compare


def test_both_readings_are_timed():
    found = compare(random_llama(64, 2), pairs=2, repeats=1)
    assert found["prompts"] == 4
    assert 1 < found["tokens of the longest option"] <= MOST
    for name in ("evaluate", "attribute"):
        ratio = found[f"{name}, first: prompts/s"] / found[f"{name}, whole: prompts/s"]
        assert found[f"{name}: time of whole / first"] > 0
        assert abs(ratio / found[f"{name}: time of whole / first"] - 1) < 1e-9
