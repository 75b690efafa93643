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
from interp_experiments.robustlr.language import Literal, Predicate, Rule, Verdict
from interp_experiments.robustlr.published import theory_of
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.solver import proof_set, verdict
from interp_experiments.robustlr.system import edits, rows_of
from interp_experiments.robustlr.variants import (
    CONTRAST_SETS,
    EQUIVALENCE_SETS,
    contraposed,
    contrapositive,
    equivalence_between,
)
from tests.support.other_kinds import classifier
from tests.support.tiny import tiny_model

GROUPS = 40
REAL = Words.of("real")
P, Q, R = (Literal(Predicate(word, "Anna")) for word in ("tall", "kind", "shy"))


def groups(name, *, distractors=True, words=REAL, seed=0):
    maker = evaluation_set(name, seed, words, distractors=distractors)
    return [maker.group(index) for index in range(GROUPS)]


@pytest.fixture(scope="module", params=EVALUATION_SETS)
def made(request):
    return groups(request.param)


def test_labels_are_the_solvers_of_the_theory_and_of_its_english(made):
    for group in made:
        for one in group:
            for theory in (one.theory, theory_of(one.context)):
                assert verdict(theory, one.statement) is one.label


def test_bases_have_every_label_and_negated_statements_equally(made):
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
    sizes = {name: evaluation_set(name, 0, REAL).number for name in EVALUATION_SETS}
    assert sizes == {"C-CS": 2857, "D-CS": 2857, "N-CS": 5000} | dict.fromkeys(
        EQUIVALENCE_SETS, 10_000
    )


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


def few(name):
    """Two groups instead of thousands."""
    return replace(evaluation_set(name, 0, REAL, distractors=False), number=2)


def test_groups_in_the_authors_columns_become_pairs(tmp_path):
    file = tmp_path / "neg_contrast.csv"
    frame = rows_of([few("N-CS")])
    assert len(frame) == 8  # two groups of four
    frame.drop(columns="set").to_csv(file, index=False)
    prompts = edits.prompts(seed=0, data=str(file))
    assert [prompt.side for prompt in prompts] == ["base", "edited"] * 6


def test_groups_without_another_label_are_refused(tmp_path):
    """The members of an equivalence set all have one label."""
    file = tmp_path / "contra_equiv.csv"
    frame = rows_of([few("C-ES")])
    frame.iloc[:2].drop(columns="set").to_csv(file, index=False)  # one group
    with pytest.raises(UserError, match=r"contra_equiv\.csv\b.*label"):
        edits.prompts(seed=0, data=str(file))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_models_are_patched_between_base_and_edit(kind):
    prompts = [p for p in load_prompts("robustlr-edits", limit=3) if p.factors["set"] == "N-CS"]
    encoder = classifier("bert", classes=("True", "False", "Unknown"))
    model = tiny_model("llama") if kind == "decoder" else encoder
    patches = interp.patch(model, prompts, granularity="segment", layers=[0], sites=["resid_pre"])
    assert patches.patches["effect"].notna().any()
