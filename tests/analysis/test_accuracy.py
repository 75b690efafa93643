import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.analysis.accuracy import accuracies, accuracy_table

SIDES = ("rulebreaker", "non_rulebreaker")


def tables(correct):
    """Prompts and answers for pairs of (rulebreaker correct, counterpart correct)."""
    prompts = pd.DataFrame(
        [
            {"prompt_id": f"{pair}/{side}", "pair_id": str(pair), "side": side}
            for pair in range(len(correct))
            for side in SIDES
        ]
    )
    flags = [flag for pair in correct for flag in pair]
    answers = pd.DataFrame({"model": "m", "prompt_id": prompts["prompt_id"], "correct": flags})
    return answers, prompts


def test_accuracies_by_hand():
    answers, prompts = tables([(True, True), (False, True), (True, False), (False, True)])
    values = accuracies(answers, prompts, SIDES)
    assert values["paired_accuracy"] == 0.25
    assert values["rulebreaker_accuracy"] == 0.5
    assert values["non_rulebreaker_accuracy"] == 0.75
    assert values["prompts"] == 8


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_paired_accuracy_lies_between_its_bounds(correct):
    values = accuracies(*tables(correct), SIDES)
    one, other = values["rulebreaker_accuracy"], values["non_rulebreaker_accuracy"]
    assert max(0.0, one + other - 1) - 1e-9 <= values["paired_accuracy"] <= min(one, other) + 1e-9


def test_the_order_of_answers_does_not_matter():
    answers, prompts = tables([(True, True), (False, True), (True, False)])
    shuffled = answers.sample(frac=1.0, random_state=3)
    pd.testing.assert_series_equal(
        accuracies(answers, prompts, SIDES), accuracies(shuffled, prompts, SIDES)
    )


def test_one_row_a_model_in_the_order_of_the_answers():
    answers, prompts = tables([(True, True), (False, True)])
    both = pd.concat([answers.assign(model="z"), answers.assign(model="a", correct=False)])
    table = accuracy_table(both, prompts, SIDES)
    assert table["model"].tolist() == ["z", "a"]
    assert table["paired_accuracy"].tolist() == [0.5, 0.0]
    assert table["prompts"].tolist() == [4, 4]


def test_a_prompt_that_was_answered_twice_is_refused():
    answers, prompts = tables([(True, True)])
    with pytest.raises(pd.errors.MergeError):
        accuracies(pd.concat([answers, answers]), prompts, SIDES)
