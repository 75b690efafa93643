"""A base beside each edit that changes its label, generated and read; and patched between."""

import hashlib
from collections import Counter
from dataclasses import replace

import pytest

import interp
from interp.errors import UserError
from interp.prompts.systems import load_prompts
from interp_experiments.robustlr.evaluation_sets import (
    EVALUATION_SETS,
    edit_pairs,
    evaluation_set,
    pairs_of,
    sources,
)
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict
from interp_experiments.robustlr.published import theory_of
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.solver import proof_set, verdict
from interp_experiments.robustlr.system import edits, rows_of
from interp_experiments.robustlr.variants import (
    CONTRAST_SETS,
    EQUIVALENCE_SETS,
    contraposed,
    contrapositive,
    edited,
    equivalence_between,
)
from tests.support.other_kinds import classifier
from tests.support.tiny import tiny_model

GROUPS = 40
REAL = Words.of("real")
P, Q, R = (Literal(Predicate(word, "Anna")) for word in ("tall", "kind", "shy"))


def groups(name, *, distractors=True, words=REAL, seed=0, number=GROUPS):
    maker = evaluation_set(name, seed, words, distractors=distractors)
    return [maker.group(index) for index in range(number)]


@pytest.mark.parametrize("name", EVALUATION_SETS)
def test_labels_are_the_solvers_of_theory_and_english_and_bases_have_every_label_equally(name):
    made = groups(name)
    for group in made:
        for one in group:
            for theory in (one.theory, theory_of(one.context)):
                assert verdict(theory, one.statement) is one.label
    bases = [group[0] for group in made]
    labels = Counter(base.label for base in bases)
    three = bases[0].set == "C-ES"
    assert set(labels) == (set(Verdict) if three else {Verdict.TRUE, Verdict.FALSE})
    assert max(labels.values()) - min(labels.values()) <= 1
    assert 8 <= sum(base.statement.positive for base in bases) <= 32


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
            continue
        one, other = (rule for rule in before if rule not in after)
        (merged,) = (rule for rule in after if rule not in before)
        assert len(after) == len(before) - 1
        if name == "D1-ES":
            assert one.body == other.body == merged.body
            assert {*one.head, *other.head} == set(merged.head)
        else:
            assert one.head == other.head == merged.head and merged.operator == "or"
            assert {*one.body, *other.body} == set(merged.body)


@pytest.mark.parametrize("name", CONTRAST_SETS)
def test_without_distractors_only_the_proof_is_told(name):
    for group in groups(name, distractors=False, number=15):
        base = group[0]
        assert proof_set(base.theory, base.statement) == set(base.theory.sentences)
        for one in group:
            assert verdict(one.theory, one.statement) is one.label


@pytest.mark.parametrize("name", EQUIVALENCE_SETS)
def test_without_distractors_every_sentence_leads_to_the_statement(name):
    longer, shorter = groups(name), groups(name, distractors=False)
    for whole, group in zip(longer, shorter, strict=True):
        base, paraphrase = group
        kept = set(base.theory.sentences)
        assert sources(base.theory, base.statement) <= kept <= set(whole[0].theory.sentences)
        assert equivalence_between(base.theory, paraphrase.theory) == name
        for one in group:
            assert verdict(one.theory, one.statement) is one.label
    more, fewer = (
        sum(len(one.theory.rules) for group in made for one in group) for made in (longer, shorter)
    )
    assert fewer < more / 2


def test_edits_and_contrapositives_by_hand():
    rule, unseen = Rule((P, Q), (R,), "or"), Literal(Predicate("fit", "Bob"))
    theory = edited(Theory((P, unseen.negated), (rule,)), rule, unseen, CONTRAST_SETS["D-CS"][3])
    assert theory.facts == (P.negated, unseen.negated, Q.negated, unseen.negated)
    assert theory.rules == (Rule((P, Q, unseen), (R,), "or"),)
    assert contrapositive(Rule((P,), (Q,))) == Rule((Q.negated,), (P.negated,))
    assert contrapositive(Rule((P, R), (Q,), "or")) == Rule((Q.negated,), (P.negated, R.negated))
    assert contrapositive(Rule((P,), (Q, R))) == Rule((Q.negated, R.negated), (P.negated,), "or")


@pytest.mark.parametrize(
    ("words", "digest"), [("real", "6720694e83b8783f"), ("nonce", "4374633f5961be51")]
)
def test_the_bytes_of_a_seed_do_not_change(words, digest):
    made = [groups(name, words=Words.of(words), number=5) for name in EVALUATION_SETS]
    every = [one for found in made for group in found for one in group]
    told = [f"{one.id} {one.context} {one.statement} {one.label}" for one in every]
    assert hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] == digest
    assert groups("C-CS", seed=1, words=Words.of(words), number=1) != made[0][:1]


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


@pytest.mark.parametrize("name", CONTRAST_SETS)
def test_a_pair_is_a_base_and_an_edit_of_another_label(name):
    groups = evaluation_set(name, 0, REAL, distractors=False)
    maker = edit_pairs(groups)
    in_group = maker.number // groups.number
    made = [maker.group(index) for index in range(2 * in_group)]
    wanted = [pair for place in range(2) for pair in pairs_of(groups.group(place))]
    assert made == wanted
    for index, (base, edit) in enumerate(made):
        assert base.label is base.base_label is not edit.label
        assert base.statement == edit.statement and base.theory != edit.theory
        assert base.theory_id == edit.theory_id == maker.theory_id(index)


def test_groups_in_the_authors_columns_become_pairs(tmp_path):
    for name, groups in (("N-CS", 2), ("C-ES", 1)):
        made = replace(evaluation_set(name, 0, REAL, distractors=False), number=groups)
        rows_of([made]).drop(columns="set").to_csv(tmp_path / f"{name}.csv", index=False)
    prompts = edits.prompts(seed=0, data=str(tmp_path / "N-CS.csv"))
    assert [prompt.side for prompt in prompts] == ["base", "edited"] * 6
    # The members of an equivalence set all have one label.
    with pytest.raises(UserError, match=r"C-ES\.csv\b.*label"):
        edits.prompts(seed=0, data=str(tmp_path / "C-ES.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_models_are_patched_between_base_and_edit(kind):
    prompts = [p for p in load_prompts("robustlr-edits", limit=3) if p.factors["set"] == "N-CS"]
    encoder = classifier("bert", classes=("True", "False", "Unknown"))
    model = tiny_model("llama") if kind == "decoder" else encoder
    patches = interp.patch(model, prompts, granularity="segment", layers=[0], sites=["resid_pre"])
    assert patches.patches["effect"].notna().any()
