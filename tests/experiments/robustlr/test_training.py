from collections import Counter

import pytest

from interp_experiments.robustlr.language import LABELS, Verdict
from interp_experiments.robustlr.learning import SPLITS, TRAINING_SETS, TheoryMaker, split_of
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.solver import verdict
from interp_experiments.robustlr.tables import FEATURES, feature_table, guess_table

REAL = Words.of("real")


def theories(name, split="train", number=40):
    maker = TheoryMaker(name, split, 0, REAL)
    return [maker.group(index) for index in range(number)]


@pytest.fixture(scope="module")
def made():
    return {name: theories(name) for name in TRAINING_SETS}


def test_each_set_has_its_operators_and_no_others(made):
    for name, groups in made.items():
        rules = [rule for group in groups for rule in group[0].theory.rules]
        assert {r.operator for r in rules if len(r.body) > 1} == set(TRAINING_SETS[name])
        assert all(len(rule.head) == 1 for rule in rules)
        assert any(not literal.positive for rule in rules for literal in rule.literals)
        assert any(not fact.positive for group in groups for fact in group[0].theory.facts)


def test_labels_are_the_solvers_and_balanced_in_every_theory(made):
    for groups in made.values():
        for group in groups:
            assert Counter(one.label for one in group) == dict.fromkeys(Verdict, 2)
            for one in group:
                assert verdict(one.theory, one.statement) is one.label
                assert one.version.startswith(one.label.value.lower())
                assert one.version.endswith("negated") is not one.statement.positive
                assert one.statement.predicate in one.theory.predicates()


def test_no_feature_tells_the_label(made):
    table = feature_table([one for group in made["All"] for one in group])
    assert set(table["feature"]) == set(FEATURES)
    assert table[list(LABELS)].to_numpy() == pytest.approx(1 / 3)
    guesses = guess_table(table)
    assert guesses["gain"].tolist() == pytest.approx([0] * 7)
    assert guesses["baseline"].tolist() == pytest.approx([1 / 3] * 7)


def test_a_feature_that_tells_the_label_is_seen(made):
    groups = made["All"]
    biased = [group[0] for group in groups] + [group[3] for group in groups]  # True; ¬ and False
    gain = guess_table(feature_table(biased)).set_index("feature")["gain"]
    assert gain["statements with negation"] == pytest.approx(0.5)
    assert gain["rules"] == pytest.approx(0)


def test_features_by_hand(made):
    one = made["All"][0][0]
    text = one.context
    rules = [words for words in text.split(". ") if " if " in words.lower() or "If " in words]
    assert FEATURES["rules"](one) == len(rules)
    assert FEATURES["rules with disjunction"](one) == sum(" or " in words for words in rules)
    assert FEATURES["rules with conjunction"](one) == sum(" and " in words for words in rules)
    assert FEATURES["rules with negation"](one) == sum(" not " in words for words in rules)


def test_splits_share_no_theory():
    found = {}
    for split in SPLITS:
        for group in theories("NOT", split, number=100):
            theory = group[0].theory
            assert split_of(theory) == split
            key = frozenset(theory.sentences)
            assert key not in found
            found[key] = split
    assert len(found) == 300


def test_the_split_of_a_theory_depends_on_neither_order_nor_wording(made):
    theory = made["All"][0][0].theory
    turned = type(theory)(theory.facts[::-1], theory.rules[::-1])
    assert split_of(turned) == split_of(theory)


def test_splits_are_as_large_as_whole_theories_allow():
    sizes = [len(TheoryMaker("All", split, 0, REAL)) for split in SPLITS]
    assert sizes == [8333, 1666, 1666]
