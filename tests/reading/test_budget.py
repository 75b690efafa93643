import pytest
import torch

from interp.reading.budget import TokenBudget, in_chunks


def doubled(largest, seen):
    """A pass that doubles its rows and has memory for so many."""

    def run(rows):
        seen.append(len(rows))
        if len(rows) > largest:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [2 * row for row in rows]

    return run


def results(rows, run, budget, tokens=lambda row: 10):
    return [
        value for _, part in in_chunks(rows, run, tokens=tokens, budget=budget) for value in part
    ]


@pytest.mark.parametrize("budget", [1, 10, 35, 1000])
def test_a_pass_holds_what_the_budget_says(budget):
    seen: list[int] = []
    assert results(range(7), doubled(100, seen), TokenBudget(budget)) == [0, 2, 4, 6, 8, 10, 12]
    assert seen[0] == min(7, max(1, budget // 10))
    assert sum(seen) == 7


@pytest.mark.slow
def test_it_shrinks_when_memory_ends_and_gives_the_same():
    seen: list[int] = []
    budget = TokenBudget(1000)
    assert results(range(20), doubled(3, seen), budget) == [2 * row for row in range(20)]
    assert seen[:4] == [20, 10, 5, 2]
    assert max(seen[3:]) <= 3
    assert budget.shrunk
    assert budget.tokens == 25


@pytest.mark.slow
def test_a_row_that_does_not_fit_alone_is_the_callers():
    budget = TokenBudget(1000)
    with pytest.raises(torch.OutOfMemoryError):
        results(range(4), doubled(0, []), budget)
    assert budget.tokens == 10


def test_another_error_is_not_tried_again():
    seen: list[int] = []

    def run(rows):
        seen.append(len(rows))
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        results(range(4), run, TokenBudget(1000))
    assert seen == [4]


def test_the_first_row_of_a_pass_says_how_wide_it_is():
    seen: list[int] = []
    results(range(10, 0, -1), doubled(100, seen), TokenBudget(20), tokens=lambda row: row)
    assert seen == [2, 2, 3, 3]


def test_nothing_is_run_of_no_rows():
    assert results([], doubled(0, []), TokenBudget(10)) == []
