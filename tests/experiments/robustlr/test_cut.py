import random
from collections import Counter

import pytest

from interp_experiments.robustlr.language import Verdict
from interp_experiments.robustlr.learning import (
    RobustLRTraining,
    StatementMaker,
    balanced,
    cut,
    split_of,
)
from interp_experiments.robustlr.sampling import Words, sample
from interp_experiments.robustlr.solver import verdict

WORDS = Words.of("real")


def made(split="train", distractors=0, number=90):
    maker = StatementMaker("All", split, 0, WORDS, distractors)
    return [one for index in range(number) for one in maker.group(index)]


@pytest.mark.parametrize("distractors", [0, 3])
def test_labels_are_the_solvers_and_come_in_turn(distractors):
    instances = made(distractors=distractors)
    assert Counter(one.label for one in instances) == dict.fromkeys(Verdict, 30)
    for one in instances:
        assert verdict(one.theory, one.statement) is one.label
        assert one.statement.predicate in one.theory.predicates()


def test_splits_share_no_theory():
    splits = {split: made(split) for split in ("train", "dev", "test")}
    sentences = {
        split: {frozenset(map(str, one.theory.sentences)) for one in own}
        for split, own in splits.items()
    }
    assert not sentences["train"] & sentences["dev"]
    assert not sentences["train"] & sentences["test"]
    assert not sentences["dev"] & sentences["test"]
    assert all(split_of(one.theory) == split for split, own in splits.items() for one in own)


def test_a_number_of_other_sentences_is_kept():
    rng = random.Random(0)
    for _ in range(40):
        sampled = sample(rng, WORDS)
        statements = balanced(rng, sampled)
        for statement, label in statements or ():
            bare = cut(rng, sampled.theory, statement, 0)
            more = cut(rng, sampled.theory, statement, 4)
            whole = cut(rng, sampled.theory, statement, 1000)
            assert set(whole.sentences) == set(sampled.theory.sentences)
            assert 1 <= len(bare.sentences) <= len(more.sentences) <= len(bare.sentences) + 4
            assert verdict(bare, statement) is label
            assert bool(bare.facts) is (label is not Verdict.UNKNOWN)


def test_a_training_set_may_have_them():
    spec = RobustLRTraining(theories=3, held_out=2, distractors=2)
    prompts = spec.prompts("train")
    assert len(prompts) == 18
    assert len({prompt.pair_id for prompt in prompts}) == 18
    assert len(spec.prompts("test")) == 12
    assert list(RobustLRTraining(theories=2, distractors=2).prompts("train")) == list(prompts[:12])
