from benchmarks.generation import compare


def test_the_benchmark_of_generation_measures_and_finds_the_same_tokens():
    found = compare(32, 1, prompts=4, new_tokens=5, repeats=1)
    assert found["prompts"] == 4 and found["new tokens"] > 4
    assert found["different texts"] == 0
    assert found["ratio"] > 0
