import dataclasses

import pandas as pd
import pytest

import interp
from interp.errors import UserError
from interp.measurements.specs import Circuits, Edges, Patch
from interp.measuring.core import bind
from interp.patching.pairs import in_pairs, is_checked
from interp.prompts.own.pairs import EXAMPLE
from tests.support.answers import yes_no
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def test_the_clean_prompt_comes_first_whatever_the_order():
    prompts = some_prompts(12)
    for order in (prompts, prompts[::-1], [*prompts[::2], *prompts[1::2]]):
        arranged = in_pairs(order, clean="rulebreaker")
        for clean, corrupt in zip(arranged[::2], arranged[1::2], strict=True):
            assert clean.pair_id == corrupt.pair_id
            assert (clean.side, corrupt.side) == ("rulebreaker", "non_rulebreaker")
    arranged = in_pairs(prompts, clean="non_rulebreaker")
    assert type(arranged) is type(prompts)
    assert sorted(arranged.numbers) == sorted(prompts.numbers)
    assert arranged[0].side == in_pairs(list(prompts[:4])[::-1])[0].side == "non_rulebreaker"


def in_threes():
    """Pairs with a third side."""
    third = EXAMPLE[EXAMPLE["side"] == "follows"].assign(side="third", gold="No")
    third["premise2"] = third["premise2"].str.replace(" is ", " is not ")
    return interp.read_pairs(pd.concat([EXAMPLE, third]).sort_values("pair", kind="stable"))


def changed(**change):
    prompts = list(some_prompts(2))
    prompts[1] = dataclasses.replace(prompts[1], **change)
    return prompts


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        (lambda: [], {}, r"prompts; .*pair"),
        (
            lambda: list(some_prompts(2))[:3],
            {},
            r"pair 'RULEBREAKER\S+'.*clean prompt \(rulebreaker\)",
        ),
        (
            lambda: changed(side="rulebreaker"),
            {},
            r"pair 'RULEBREAKER\S+'.*clean prompt \(rulebreaker\)",
        ),
        (
            lambda: changed(text=some_prompts(2)[0].text, segments={}, roles={}),
            {},
            r"'RULEBREAKER_0012630/infer-tf'.*identical",
        ),
        (
            lambda: changed(answer=yes_no()),
            {},
            r"'RULEBREAKER_0012630/infer-tf'.*True/False.*Yes/No",
        ),
        (lambda: some_prompts(2), {"clean": "good"}, r"'good'.*\brulebreaker, non_rulebreaker"),
        (in_threes, {}, "--sides follows"),
        (in_threes, {"sides": ["follows", "fourth"]}, r"'fourth'.*follows, does_not, third"),
        (in_threes, {"sides": ["follows", "does_not"], "clean": "third"}, "'third'"),
    ],
)
def test_what_is_no_pair_is_refused(prompts, options, message):
    with pytest.raises(UserError, match=message):
        in_pairs(prompts(), **options)


@pytest.mark.parametrize("order", [[0, 2, 1, 3], [0, 1, 2]])
def test_a_measurement_refuses_prompts_that_do_not_stand_pair_by_pair(order):
    prompts = list(some_prompts(2))
    with pytest.raises(UserError, match=r"interp\.patching\.pairs"):
        bind(Patch(), tiny_model("llama"))([prompts[index] for index in order])


IDS = [f"pair {number}" for number in range(20_000)]


@pytest.mark.parametrize("share", [0.1, 0.25, 0.9])
def test_about_the_share_is_checked(share):
    assert sum(is_checked(pair_id, share) for pair_id in IDS) / len(IDS) == pytest.approx(
        share, abs=0.015
    )


def test_a_larger_share_checks_the_same_pairs_and_more():
    few, many = ({i for i in IDS[:2000] if is_checked(i, share)} for share in (0.2, 0.5))
    assert few < many


@pytest.mark.parametrize("spec", [Patch, Edges, Circuits])
def test_two_of_three_sides_are_patched_the_first_named_is_clean(spec):
    prompts = spec(sides=["third", "follows"]).arranged(in_threes())
    assert [prompt.side for prompt in prompts] == ["third", "follows"] * 4
    prompts.check()
    prompts = spec(sides=["third", "follows"], clean="follows").arranged(in_threes())
    assert prompts[0].side == "follows"


@pytest.mark.parametrize("sides", [["follows"], ["a", "a"], ["a", "b", "c"], []])
def test_other_than_two_different_sides_are_refused(sides):
    with pytest.raises(UserError, match=r"sides.*\b\w+; "):
        Patch(sides=sides)


def test_two_of_three_sides_give_the_effects_of_a_table_with_these_two():
    model, chosen = tiny_model("llama"), ("follows", "does_not")
    found = interp.patch(model, in_threes(), sides=chosen, granularity="all")
    alone = interp.patch(model, interp.read_pairs(EXAMPLE), granularity="all")
    assert found.patches.effect.tolist() == alone.patches.effect.tolist()
