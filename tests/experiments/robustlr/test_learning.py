import pytest

from interp.errors import UserError
from interp.training.spec import find_training
from interp_experiments.robustlr.learning import TRAINING_SETS, RobustLRTraining
from interp_experiments.robustlr.system import system


def theory_of(prompt):
    """The sentences of a prompt's theory, whatever their order."""
    start = prompt.segments["statement"][0]
    return frozenset(
        prompt.text[a:b] for name, (a, b) in prompt.segments.items() if b <= start and name
    )


@pytest.mark.parametrize("name", TRAINING_SETS)
def test_splits_share_no_theory(name):
    spec = RobustLRTraining(train_set=name, theories=40, held_out=30)
    splits = {split: spec.prompts(split) for split in ("train", "dev", "test")}
    assert [len(prompts) for prompts in splits.values()] == [240, 180, 180]
    theories = {split: set(map(theory_of, prompts)) for split, prompts in splits.items()}
    assert all(len(own) > 25 for own in theories.values())
    assert not theories["train"] & theories["dev"]
    assert not theories["train"] & theories["test"]
    assert not theories["dev"] & theories["test"]


def test_a_larger_set_begins_with_the_smaller_one_and_the_seed_decides():
    few, more = (RobustLRTraining(theories=n).prompts("train") for n in (2, 4))
    assert list(more[:12]) == list(few)
    assert list(RobustLRTraining(theories=2, seed=1).prompts("train")) != list(few)


def test_what_is_learned_reads_like_what_is_evaluated():
    learned = RobustLRTraining(theories=1).prompts("train")[0]
    asked = system.prompts(seed=0, data=None)[0]
    assert learned.answer.options == asked.answer.options
    assert learned.messages == asked.messages
    ends = [one.text[slice(*one.segments["question"])] for one in (learned, asked)]
    assert ends[0] == ends[1]


def test_defaults_are_the_papers():
    spec = RobustLRTraining()
    assert (spec.train_set, spec.batch, spec.epochs, spec.warmup) == ("All", 8, 4, 0.1)
    assert len(spec.prompts("train")) == 49_998
    assert len(spec.prompts("dev")) == len(spec.prompts("test")) == 9_996
    assert find_training("robustlr") is RobustLRTraining
    with pytest.raises(UserError, match="unknown train_set 'AND'"):
        RobustLRTraining(train_set="AND")
