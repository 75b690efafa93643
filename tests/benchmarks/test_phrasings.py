from benchmarks.phrasings import DESIGNS, rates


def test_the_benchmark_of_phrasings_simulates_every_design():
    for design in DESIGNS.values():
        found = rates(1, design)
        assert set(found) == {"any finding", "power", "covered"}
        assert 0.9 < found["covered"] <= 1
