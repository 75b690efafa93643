import re

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from interp.analysis.accuracy import (
    accuracies,
    accuracy_by,
    accuracy_table,
    notes_unjudged,
    notes_without_answer,
    without_answer,
)
from interp.errors import UserError
from interp.tables import TIE

SIDES = ("rulebreaker", "non_rulebreaker")


def tables(correct):
    """Prompts and answers for pairs of (rulebreaker correct, counterpart correct)."""
    prompts = pd.DataFrame(
        [
            {"prompt_id": f"{pair}/{side}", "pair_id": str(pair), "side": side, "weight": 1.0}
            for pair in range(len(correct))
            for side in SIDES
        ]
    )
    flags = [flag for pair in correct for flag in pair]
    answers = pd.DataFrame({"model": "m", "prompt_id": prompts["prompt_id"], "correct": flags})
    return answers, prompts


def test_prompts_that_are_alone_count_on_their_side_alone():
    answers, prompts = tables([(True, True), (False, True), (True, False), (False, True)])
    some = prompts.drop(index=[3, 4])  # the pairs 1 and 2 have one prompt each, both wrong
    values = accuracies(answers, some)
    assert values["paired_accuracy"] == 0.5
    assert values["rulebreaker_accuracy"] == pytest.approx(1 / 3)
    assert values["non_rulebreaker_accuracy"] == pytest.approx(2 / 3)
    table = accuracy_by(answers, some, factors=(), sides=SIDES).set_index("measure")
    assert table["pairs"].to_dict() == {"paired": 2, SIDES[0]: 3, SIDES[1]: 3}
    assert table["accuracy"].to_dict() == {
        "paired": 0.5,
        **{side: pytest.approx(values[f"{side}_accuracy"]) for side in SIDES},
    }
    one_sided = accuracies(answers, prompts[::2])
    assert np.isnan(one_sided["paired_accuracy"]) and one_sided["rulebreaker_accuracy"] == 0.5


def by(answers, prompts, *, factors=(), cluster=None):
    return accuracy_by(answers, prompts, factors=factors, sides=SIDES, cluster=cluster)


def test_accuracies_by_factor_by_hand():
    answers, prompts = tables([(True, True), (False, True), (True, False), (False, True)])
    prompts = prompts.assign(rule=["mt"] * 6 + ["ds"] * 2)
    table = by(answers, prompts, factors=["rule"])
    assert table[["model", "rule", "measure", "accuracy", "pairs"]].to_numpy().tolist() == [
        ["m", "mt", "paired", 1 / 3, 3],
        ["m", "ds", "paired", 0.0, 1],
        ["m", "mt", "rulebreaker", 2 / 3, 3],
        ["m", "ds", "rulebreaker", 0.0, 1],
        ["m", "mt", "non_rulebreaker", 2 / 3, 3],
        ["m", "ds", "non_rulebreaker", 1.0, 1],
    ]
    row = table.iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(proportion_confint(1, 3, method="wilson"))


def test_pairs_about_one_entity_widen_the_interval():
    answers, prompts = tables([(True, True)] * 20 + [(False, True)] * 20)
    together = prompts.assign(city=np.repeat(list("abcdefgh"), 10))
    apart = prompts.assign(city=np.tile(np.repeat(list("abcdefgh"), 2), 5))
    width = [
        (table["high"] - table["low"]).iloc[0]
        for table in (by(answers, frame, cluster="city") for frame in (together, apart))
    ]
    assert width[0] > 1.5 * width[1]


def test_weights_make_shares_those_of_the_data_set():
    answers, prompts = tables([(True, True), (False, True), (False, False)])
    prompts = prompts.assign(weight=np.repeat([1.0, 2.0, 5.0], 2))
    table = accuracy_by(answers, prompts, factors=(), sides=SIDES, weight="weight")
    assert table["accuracy"].tolist() == pytest.approx([1 / 8, 1 / 8, 3 / 8])
    assert table["pairs"].tolist() == [3, 3, 3]
    equal = accuracy_by(
        answers, prompts.assign(weight=4.0), factors=(), sides=SIDES, weight="weight"
    )
    pd.testing.assert_frame_equal(equal, by(answers, prompts))


def test_the_cluster_may_be_a_factor_too():
    answers, prompts = tables([(True, True), (False, True)])
    table = by(answers, prompts.assign(city="a"), factors=["city"], cluster="city")
    assert table["note"].tolist() == [table["note"].iloc[0]] * 3
    assert re.search(r"interval.*cluster", table["note"].iloc[0])


def test_half_a_pair_and_a_pair_that_failed_are_not_counted():
    answers, prompts = tables([(True, False), (True, True), (True, None), (True, True)])
    assert accuracies(answers, prompts).to_dict() == pytest.approx(
        {
            "paired_accuracy": 2 / 3,
            "rulebreaker_accuracy": 1.0,
            "non_rulebreaker_accuracy": 2 / 3,
            "prompts": 7,
        }
    )
    table = by(answers[:7], prompts).set_index("measure")
    assert table["pairs"].tolist() == [2, 2, 2]
    assert table["accuracy"].to_dict() == {
        "paired": 0.5,
        "rulebreaker": 1.0,
        "non_rulebreaker": 0.5,
    }


def test_models_keep_their_order_and_none_gives_no_row():
    answers, prompts = tables([(True, True), (False, True)])
    both = pd.concat([answers.assign(model="z"), answers.assign(model="a", correct=False)])
    table = accuracy_table(both, prompts)
    assert table["model"].tolist() == ["z", "a"]
    assert table["paired_accuracy"].tolist() == [0.5, 0.0]
    assert table["prompts"].tolist() == [4, 4]
    assert by(both, prompts)["model"].drop_duplicates().tolist() == ["z", "a"]
    assert by(answers[:0], prompts).empty


def test_two_answers_of_one_model_to_a_prompt_are_refused():
    answers, prompts = tables([(True, True)])
    twice = pd.concat([answers, answers])
    with pytest.raises(pd.errors.MergeError):
        accuracies(twice, prompts)
    with pytest.raises(UserError, match=r"prompt.*answer.*model"):
        by(twice, prompts)


def test_prompts_of_other_sides_are_left_out():
    answers, prompts = tables([(True, True), (False, True)])
    other = prompts.assign(prompt_id="x" + prompts["prompt_id"], side="other")
    more = pd.concat([answers, answers.assign(prompt_id="x" + answers["prompt_id"])])
    pd.testing.assert_frame_equal(by(more, pd.concat([other, prompts])), by(answers, prompts))


@pytest.mark.parametrize(
    ("factor", "message"), [("verb", r"'verb'.*prompt_id, pair_id, side"), ("side", r"^side.*'0'")]
)
def test_a_factor_that_is_none_of_the_pair_is_refused(factor, message):
    with pytest.raises(UserError, match=message):
        by(*tables([(True, True)]), factors=[factor])


def test_ties_are_counted_apart_from_answers_outside_the_options():
    answers = pd.DataFrame(
        {
            "model": [*"bbbbaaaa"],
            "answer": ["Yes", "", "", "No", "Yes", TIE, TIE, "No"],
            "error": ["", "", "non-finite", *[""] * 5],
        }
    )
    assert [*without_answer(answers).items()] == [("b", 0.25), ("a", 0.0)]
    silent, ties = notes_without_answer(answers, said=())
    assert silent.startswith("b: 25.0% ") and re.match(r"a: 2 .*\b4 ", ties)
    assert notes_without_answer(answers, said=["b"]) == [ties]


def test_prompts_that_only_generated_text_answers_are_counted():
    answers = pd.DataFrame(
        {"model": ["a", "a", "a", "b"], "correct": [None, True, None, False], "error": ""}
    )
    answers.loc[2, "error"] = "non-finite"
    (note,) = notes_unjudged(answers)
    assert re.match(r"a: 1 .*\b3 ", note)
