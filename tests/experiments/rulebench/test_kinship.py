"""Kinship: the table of compositions against all small families, and the stories against it."""

import random
import re
from dataclasses import replace
from itertools import pairwise, permutations

import pytest

from interp_experiments.rulebench import families as kin
from interp_experiments.rulebench.kinship import HOPS, KinshipQuestions

TYPE_OF = {word: type_ for type_, words in kin.WORDS.items() for word in words}


def relations(family):
    return {pair: family.types.get(pair) for pair in permutations(range(len(family)), 2)}


def shape(family):
    """What a family looks like whatever the numbers of its people are, but for rare twins."""
    found = relations(family)
    own = {
        person: tuple(
            sorted(str(found[person, other]) for other in range(len(family)) if other != person)
        )
        for person in range(len(family))
    }
    return tuple(
        sorted(
            (own[p], tuple(sorted((own[q], str(found[p, q])) for q in own if q != p))) for p in own
        )
    )


def families(steps):
    """All families that grow from a couple in at most so many steps; sexes play no part."""
    level = {shape(kin.FIRST_COUPLE): kin.FIRST_COUPLE}
    every = dict(level)
    for _ in range(steps):
        grown = [family for parent in level.values() for family in grow(parent)]
        level = {shape(family): family for family in grown}
        level = {key: family for key, family in level.items() if key not in every}
        every |= level
    return every.values()


def grow(family):
    for couple in family.couples:
        yield family.with_child(couple, kin.MALE)
    for person in range(len(family)):
        if person not in family.spouses:
            yield family.with_spouse(person)
        if person not in family.parents:
            yield family.with_parents(person)


def test_the_table_of_compositions_is_that_of_all_small_families():
    seen = {}
    for family in families(6):
        found = relations(family)
        for a, b, c in permutations(range(len(family)), 3):
            if found[a, b] and found[b, c]:
                seen.setdefault((found[a, b], found[b, c]), set()).add(found[a, c])
    certain = {pair: one for pair, (one, *others) in seen.items() if one and not others}
    assert certain == kin.COMPOSED


def test_relations_of_a_family_that_is_known():
    family = kin.FIRST_COUPLE.with_child((0, 1), kin.FEMALE).with_child((0, 1), kin.MALE)
    family = family.with_spouse(2).with_child((2, 4), kin.MALE).with_parents(4)
    father, mother, anna, ben, husband, son, his_father, his_mother = range(8)
    words = {
        "father": (anna, father), "sister": (ben, anna), "uncle": (son, ben), "nephew": (ben, son),
        "grandmother": (son, his_mother), "grandson": (father, son), "wife": (husband, anna),
        "father-in-law": (anna, his_father), "son-in-law": (mother, husband),
    }  # fmt: skip
    assert {word: family.word(*pair) for word, pair in words.items()} == {w: w for w in words}
    assert family.word(ben, husband) == family.word(father, his_father) == ""


@pytest.fixture(scope="module")
def questions():
    return KinshipQuestions(0, per_hop=30)


def chain(words):
    """All that a chain of relations entails by the table, however it is bracketed."""
    spans = {(i, i + 1): {TYPE_OF[word]} for i, word in enumerate(words)}
    for width in range(2, len(words) + 1):
        for start in range(len(words) - width + 1):
            end = start + width
            spans[start, end] = {
                kin.COMPOSED[pair]
                for middle in range(start + 1, end)
                for pair in ((a, b) for a in spans[start, middle] for b in spans[middle, end])
                if pair in kin.COMPOSED
            }
    return spans[0, len(words)]


def test_every_story_entails_its_answer_alone(questions):
    for item in questions.rule_set.factual.items:
        story = questions.stories[item.id]
        assert chain(story.words) == {TYPE_OF[item.gold]}
        assert item.gold in kin.KINSHIPS
        assert len(set(story.people)) == story.hops + 1 == int(item.factors["hops"]) + 1


def test_golden_rules_hold_in_other_families(questions):
    """Wherever the conditions of a short rule hold, its conclusion holds too."""
    tried = 0
    bodies = {story.body: story.answer for story in questions.stories.values() if story.hops <= 3}
    for seed in range(8):
        family = kin.random_family(9, random.Random(f"other {seed}"))
        word = {pair: family.word(*pair) for pair in permutations(range(len(family)), 2)}
        for body, answer in bodies.items():
            for people in permutations(range(len(family)), len(body.words) + 1):
                pairs = pairwise(people)
                if family.sexes[people[0]] == body.first and all(
                    word[pair] == name for pair, name in zip(pairs, body.words, strict=True)
                ):
                    assert word[people[0], people[-1]] == answer
                    tried += 1
    assert tried > 100


def test_a_story_tells_its_facts_and_asks_about_its_ends(questions):
    for item in questions.rule_set.factual.items[:60]:
        story = questions.stories[item.id]
        told, question = item.question.split("\n")
        sentences = told.split(". ")
        assert len(sentences) == story.hops
        for sentence, word in zip(sentences, story.words, strict=True):
            (found,) = re.findall(rf"\b(?:his|her) ({'|'.join(TYPE_OF)})\b(?!-)", sentence)
            assert found == word
        names = re.fullmatch(r"Who is (\w+) to (\w+)\?", question)
        assert names[1] in sentences[-1] and names[2] in sentences[0] and names[1] != names[2]


def test_counterfactual_versions_change_the_conclusion_alone(questions):
    both = questions.rule_set
    for factual, other in zip(both.factual.items, both.counterfactual.items, strict=True):
        assert replace(other, gold=factual.gold) == factual
        assert factual.gold != other.gold and other.gold in kin.KINSHIPS
    for id_, rule in both.factual.rules.items():
        changed = both.counterfactual.rules[id_]
        assert rule.natural.split(", then ")[0] == changed.natural.split(", then ")[0]
        assert rule.logic.split(" → ")[0] == changed.logic.split(" → ")[0]
        assert rule.natural != changed.natural


def holds(story, body):
    """Whether conditions hold in a story, by trying all of its people in every order."""
    ends = (story.people[0], story.people[-1])
    return story.family.sexes[ends[0]] == body.first and any(
        all(
            story.family.word(*pair) == word
            for pair, word in zip(pairwise(people), body.words, strict=True)
        )
        for people in permutations(story.people, len(body.words) + 1)
        if (people[0], people[-1]) == ends
    )


def test_a_rule_fits_where_its_conditions_hold_in_the_story(questions):
    rules = questions.rule_set.factual.rules
    fitting = 0
    for item in questions.rule_set.factual.items[:120]:
        story, golden = questions.stories[item.id], rules[item.rule]
        assert questions.fits(item, golden, golden)
        for id_, body in list(questions.bodies.items())[:60]:
            if len(body.words) <= 3:
                assert questions.fits(item, rules[id_], golden) is holds(story, body)
                fitting += holds(story, body) and id_ != item.rule
    assert fitting > 5


def test_a_shorter_set_is_the_beginning_of_a_longer_one(questions):
    short = KinshipQuestions(0, per_hop=5).rule_set.factual.items
    assert short == questions.rule_set.factual.items[: len(short)]
    assert [item.factors["hops"] for item in short[:9]] == [str(hops) for hops in HOPS]
