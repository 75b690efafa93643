import random

import pytest

from interp.errors import UserError
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, sentence
from interp_experiments.robustlr.published import sentence_of, theory_of
from tests.experiments.robustlr.random_theories import random_theory


def is_(word, name):
    return Literal(Predicate(word, name))


TALL, SMART = is_("tall", "Charlie"), is_("smart", "Charlie")
KIND, ROUND = is_("kind", "Gary"), is_("round", "Charlie")
BROTHER = Literal(Predicate("brother", "Erin", "Gary"))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (TALL, "Charlie is tall."),
        (BROTHER.negated, "Erin is not the brother of Gary."),
        (Literal(BROTHER.predicate, inverted=True), "The brother of Gary is Erin."),
        (Literal(BROTHER.predicate, False, inverted=True), "The brother of Gary is not Erin."),
        (Rule((TALL, SMART), (KIND,), "or"), "If Charlie is tall or smart, then Gary is kind."),
        (Rule((KIND,), (ROUND,), style=2), "Charlie is round if Gary is kind."),
        (
            Rule((TALL, ROUND), (is_("kind", "Erin"),), style=3),
            "Erin is kind, if Charlie is tall and round.",
        ),
        (
            Rule((TALL, SMART.negated), (KIND, BROTHER), style=1),
            "If Charlie is tall and not smart then Gary is kind and Erin is the brother of Gary.",
        ),
        (
            Rule((TALL.negated, SMART), (KIND.negated, is_("bold", "Gary").negated), style=1),
            "If Charlie is not tall and is smart then Gary is not kind and is not bold.",
        ),
        (
            Rule((TALL.negated, SMART, ROUND), (KIND,), "or", style=2),
            "Gary is kind if Charlie is not tall or is smart or round.",
        ),
        (
            Rule((KIND,), (Literal(BROTHER.predicate, inverted=True),), style=2),
            "The brother of Gary is Erin if Gary is kind.",
        ),
    ],
)
def test_sentences_by_hand(told, expected):
    assert sentence(told) == expected
    assert sentence_of(expected) == told


def test_every_theory_is_read_back_with_its_wording():
    rng = random.Random(4)
    for _ in range(300):
        theory, _ = random_theory(rng)
        words = [sentence(told) for told in theory.sentences]
        # A rule of one literal in its body says "and" as well as "or".
        read = theory_of(" ".join(words))
        assert [sentence(told) for told in read.sentences] == words
        assert read.facts == theory.facts
        assert [(r.body, r.head) for r in read.rules] == [(r.body, r.head) for r in theory.rules]
        for ours, theirs in zip(read.rules, theory.rules, strict=True):
            assert ours.operator == theirs.operator or len(theirs.body) == 1


def test_the_authors_wording_is_read_too():
    """Their data may share the subject behind a negation, with labels that deny one adjective."""
    read = sentence_of("If Charlie is not tall and smart, then Gary is kind.")
    assert read == Rule((TALL.negated, SMART), (KIND,))
    # Facts come before rules.
    told = "If Charlie is tall then Gary is kind. Charlie is tall."
    assert theory_of(told) == Theory((TALL,), (Rule((TALL,), (KIND,)),))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Charlie likes Gary.", r"'Charlie likes Gary'.*'Anna is tall'"),
        ("Charlie is tall", r"'Charlie is tall'.*full stop"),
        ("If Charlie is tall then Gary is kind or round.", r"disjunction.*'then'"),
        ("If Charlie is tall and kind or round then Gary is kind.", r"literals.*'and'.*'or'"),
        ("If Charlie is tall.", r"^'(If )?Charlie .*'.*'Anna is tall'"),
        ("Charlie is the brother of.", r"^'(If )?Charlie .*'.*'Anna is tall'"),
        ("  ", r"context.*sentence"),
        ("Charlie is " + "very " * 100 + "tall.", r"^'(If )?Charlie .*'.*'Anna is tall'"),
    ],
)
def test_other_sentences_are_refused(words, expected):
    with pytest.raises(UserError, match=expected) as refused:
        theory_of(words)
    assert len(str(refused.value)) < 300
