import hashlib
from collections import Counter
from dataclasses import replace

import pytest

from interp.errors import UserError
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS, GroupMaker, sources
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Verdict
from interp_experiments.robustlr.published import theory_of
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.solver import proof_set, verdict
from interp_experiments.robustlr.variants import (
    CONTRAST_SETS,
    EQUIVALENCE_SETS,
    contraposed,
    contrapositive,
    equivalence_between,
)

GROUPS = 40
REAL = Words.of("real")
P, Q, R = (Literal(Predicate(word, "Anna")) for word in ("tall", "kind", "shy"))


def groups(name, *, distractors=True, words=REAL, seed=0):
    maker = GroupMaker(name, seed, words, distractors)
    return [maker.group(index) for index in range(GROUPS)]


@pytest.fixture(scope="module", params=EVALUATION_SETS)
def made(request):
    return groups(request.param)


def test_every_label_is_the_solvers(made):
    for group in made:
        for one in group:
            assert verdict(one.theory, one.statement) is one.label


def test_the_solver_reads_the_same_labels_from_the_english(made):
    for group in made:
        for one in group:
            assert verdict(theory_of(one.context), one.statement) is one.label


def test_labels_are_those_of_the_tables(made):
    edits = {edit.version: edit for rows in CONTRAST_SETS.values() for edit in rows}
    for group in made:
        base, *variants = group
        assert base.label is base.base_label
        assert len({one.statement for one in group}) == 1
        for one in variants:
            if one.version in edits:
                assert one.label is edits[one.version].expected(base.label)
            else:
                assert one.label is base.label


def test_bases_have_every_label_and_negated_statements_equally(made):
    bases = [group[0] for group in made]
    labels = Counter(base.label for base in bases)
    three = bases[0].set == "C-ES"
    assert set(labels) == (set(Verdict) if three else {Verdict.TRUE, Verdict.FALSE})
    assert max(labels.values()) - min(labels.values()) <= 1
    assert 8 <= sum(base.statement.positive for base in bases) <= 32


def test_edits_change_one_rule_and_its_facts(made):
    for group in made:
        base, *variants = (one.theory for one in group)
        if group[0].set not in CONTRAST_SETS:
            continue
        for theory in variants:
            assert sum(a != b for a, b in zip(base.rules, theory.rules, strict=True)) == 1
            assert len(set(theory.facts) - set(base.facts)) <= 4


@pytest.mark.parametrize("name", EQUIVALENCE_SETS)
def test_paraphrases_say_the_same(name):
    for base, paraphrase in groups(name):
        assert equivalence_between(base.theory, paraphrase.theory) == name
        assert equivalence_between(base.theory, base.theory) is None
        fewer = replace(paraphrase.theory, rules=paraphrase.theory.rules[1:])
        assert equivalence_between(base.theory, fewer) is None
        assert paraphrase.theory.facts == base.theory.facts
        before, after = base.theory.rules, paraphrase.theory.rules
        if name == "C-ES":
            assert after == tuple(map(contrapositive, before))
            assert contraposed(paraphrase.theory).rules == before
        else:
            gone = [rule for rule in before if rule not in after]
            (merged,) = (rule for rule in after if rule not in before)
            assert len(gone) == 2
            assert len(after) == len(before) - 1
            if name == "D1-ES":
                assert {rule.body for rule in gone} == {merged.body}
                assert {*gone[0].head, *gone[1].head} == set(merged.head)
            else:
                assert {rule.head for rule in gone} == {merged.head}
                assert {*gone[0].body, *gone[1].body} == set(merged.body)
                assert merged.operator == "or"


@pytest.mark.parametrize("name", CONTRAST_SETS)
def test_without_distractors_only_the_proof_is_told(name):
    for group in groups(name, distractors=False)[:15]:
        base = group[0]
        assert proof_set(base.theory, base.statement) == set(base.theory.sentences)
        for one in group:
            assert verdict(one.theory, one.statement) is one.label


@pytest.mark.parametrize("name", EQUIVALENCE_SETS)
def test_without_distractors_every_sentence_leads_to_the_statement(name):
    longer = groups(name)
    for whole, group in zip(longer, groups(name, distractors=False), strict=True):
        base, paraphrase = group
        kept = set(base.theory.sentences)
        assert sources(base.theory, base.statement) <= kept <= set(whole[0].theory.sentences)
        assert equivalence_between(base.theory, paraphrase.theory) == name
        for one in group:
            assert verdict(one.theory, one.statement) is one.label
    means = [
        sum(len(one.theory.rules) for group in made for one in group)
        for made in (longer, groups(name, distractors=False))
    ]
    assert means[1] < means[0] / 2


def test_contrapositives_by_hand():
    assert contrapositive(Rule((P,), (Q,))) == Rule((Q.negated,), (P.negated,))
    assert contrapositive(Rule((P, R), (Q,), "or")) == Rule((Q.negated,), (P.negated, R.negated))
    assert contrapositive(Rule((P,), (Q, R))) == Rule((Q.negated, R.negated), (P.negated,), "or")
    with pytest.raises(UserError, match="a disjunction on its right"):
        contrapositive(Rule((P, R), (Q,)))


def digest(words):
    text = "\n".join(
        f"{one.id} {one.context} {one.statement} {one.label}"
        for name in EVALUATION_SETS
        for group in groups(name, words=words)[:5]
        for one in group
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def test_the_bytes_of_a_seed_do_not_change():
    assert digest(REAL) == "6720694e83b8783f"
    assert digest(Words.of("nonce")) == "4374633f5961be51"
    assert groups("C-CS", seed=1)[0] != groups("C-CS")[0]


def test_nonce_words_stand_for_real_ones_in_the_same_theories():
    real, nonce = REAL, Words.of("nonce")
    assert real.names == nonce.names
    known = dict(
        zip(real.adjectives + real.relations, nonce.adjectives + nonce.relations, strict=True)
    )
    assert len(set(known.values())) == len(known)
    assert not set(known) & set(known.values())
    for one, other in zip(groups("D-CS"), groups("D-CS", words=nonce), strict=True):
        for ours, theirs in zip(one, other, strict=True):
            words = [known[p.predicate.word] for p in ours.theory.literals()]
            assert words == [p.predicate.word for p in theirs.theory.literals()]
            assert ours.label is theirs.label


def test_sets_are_as_large_as_whole_groups_allow():
    sizes = {name: len(GroupMaker(name, 0, REAL)) for name in EVALUATION_SETS}
    assert sizes == {"C-CS": 2857, "D-CS": 2857, "N-CS": 5000} | dict.fromkeys(
        EQUIVALENCE_SETS, 10_000
    )
