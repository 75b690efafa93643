import random
from collections import Counter

import pytest

from interp.errors import UserError
from interp.training.spec import find_training
from interp_experiments.robustlr import learning
from interp_experiments.robustlr.evaluation_sets import sources
from interp_experiments.robustlr.language import Verdict
from interp_experiments.robustlr.sampling import Words, sample
from interp_experiments.robustlr.solver import verdict
from interp_experiments.robustlr.system import system


def test_what_is_learned_reads_like_what_is_asked_and_more_begins_with_less():
    few, more = (learning.RobustLRTraining(theories=n).prompts("train") for n in (2, 4))
    assert list(more[:12]) == list(few)
    assert list(learning.RobustLRTraining(theories=2, seed=1).prompts("train")) != list(few)
    learned, asked = few[0], system.prompts(seed=0, data=None)[0]
    assert learned.answer.options == asked.answer.options
    assert learned.messages == asked.messages
    assert learned.segment_text("question") == asked.segment_text("question")


def test_defaults_are_the_papers():
    spec = learning.RobustLRTraining()
    assert (spec.train_set, spec.batch, spec.epochs, spec.warmup) == ("All", 8, 4, 0.1)
    assert len(spec.prompts("train")) == 49_998
    assert len(spec.prompts("dev")) == len(spec.prompts("test")) == 9_996
    assert find_training("robustlr") is learning.RobustLRTraining
    with pytest.raises(UserError, match=r"'AND'.*\bAll, NOT, AND\+NOT, OR\+NOT\b"):
        learning.RobustLRTraining(train_set="AND")


@pytest.mark.parametrize("name", learning.TRAINING_SETS)
def test_each_set_has_its_operators_and_the_solvers_labels_balanced_in_every_theory(name):
    maker = learning.training_set(name, "train", 0)
    groups = [maker.group(index) for index in range(40)]
    rules = [rule for group in groups for rule in group[0].theory.rules]
    assert {r.operator for r in rules if len(r.body) > 1} == set(learning.TRAINING_SETS[name])
    assert all(len(rule.head) == 1 for rule in rules)
    assert any(not literal.positive for rule in rules for literal in rule.literals)
    assert any(not fact.positive for group in groups for fact in group[0].theory.facts)
    for group in groups:
        assert Counter(one.label for one in group) == dict.fromkeys(Verdict, 2)
        for one in group:
            assert verdict(one.theory, one.statement) is one.label
            assert one.version.startswith(one.label.value.lower())
            assert one.version.endswith("negated") is not one.statement.positive
            assert one.statement.predicate in one.theory.predicates()


@pytest.mark.parametrize("distractors", [None, 0])
def test_splits_share_no_theory_whatever_its_order_and_wording(distractors):
    found = {}
    for split in learning.SPLITS:
        maker = learning.training_set("NOT", split, 0, distractors)
        made = {maker.group(index)[0].theory for index in range(100)}
        assert {learning.split_of(theory) for theory in made} == {split}
        found[split] = {frozenset(map(str, theory.sentences)) for theory in made}
    assert not set.intersection(*found.values())
    assert sum(map(len, found.values())) == len(set.union(*found.values()))
    theory = made.pop()
    turned = type(theory)(theory.facts[::-1], theory.rules[::-1])
    assert learning.split_of(turned) == learning.split_of(theory)


@pytest.mark.parametrize("distractors", [0, 3])
def test_labels_of_short_theories_are_the_solvers_and_come_in_turn(distractors):
    maker = learning.training_set("All", "train", 0, distractors)
    instances = [one for index in range(90) for one in maker.group(index)]
    assert Counter(one.label for one in instances) == dict.fromkeys(Verdict, 30)
    others = set()
    for one in instances:
        assert verdict(one.theory, one.statement) is one.label
        assert one.statement.predicate in one.theory.predicates()
        needed = sources(one.theory, one.statement)
        others.add(len(one.theory.sentences) - len(needed) if needed else 0)
    assert others == set(range(distractors + 1))


def test_a_number_of_other_sentences_is_kept():
    rng = random.Random(0)
    for _ in range(40):
        sampled = sample(rng, Words.of("real"))
        statements = learning.balanced(rng, sampled)
        for statement, label in statements:
            bare = learning.cut(rng, sampled.theory, statement, 0)
            more = learning.cut(rng, sampled.theory, statement, 4)
            whole = learning.cut(rng, sampled.theory, statement, 1000)
            assert set(whole.sentences) == set(sampled.theory.sentences)
            assert 1 <= len(bare.sentences) <= len(more.sentences) <= len(bare.sentences) + 4
            assert verdict(bare, statement) is label
            assert bool(bare.facts) is (label is not Verdict.UNKNOWN)


def test_a_training_set_may_have_short_theories():
    spec = learning.RobustLRTraining(theories=3, held_out=2, distractors=2)
    prompts = spec.prompts("train")
    assert len(prompts) == 18
    assert len({prompt.pair_id for prompt in prompts}) == 18
    assert len(spec.prompts("test")) == 12
    assert list(learning.RobustLRTraining(theories=2, distractors=2).prompts("train")) == list(
        prompts[:12]
    )
