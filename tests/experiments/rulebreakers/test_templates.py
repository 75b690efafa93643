import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp_experiments.rulebreakers import render, templates
from interp_experiments.rulebreakers.instances import entity_pairs

ANNE = {"name": "Anne", "pronoun": "she"}


PARTS = ("rule", "group", "verb", "entity_a", "entity_b")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            ("mt", "cities", "is in", "France", "Paris"),
            "If Anne is in France, then she is not in Paris. Anne is in Paris. "
            "Anne is not in France.",
        ),
        (
            ("ds", "cities", "has been to", "The Gambia", "Banjul"),
            "Anne has been to either Banjul or somewhere in The Gambia. "
            "Anne has not been to The Gambia. Anne has been to Banjul.",
        ),
        (
            ("mt", "bird", "caught", "bird", "goose"),
            "If Anne caught some kind of bird, then she did not catch a goose. "
            "Anne caught a goose. Anne did not catch any kind of bird.",
        ),
        (
            ("ds", "stringed instrument", "owns", "woodwind instrument", "zither"),
            "Anne owns either a zither or some kind of woodwind instrument. "
            "Anne does not own any kind of woodwind instrument. Anne owns a zither.",
        ),
        (
            ("mt", "brass instrument", "plays", "brass instrument", "French horn"),
            "If Anne plays some kind of brass instrument, then she does not play the French horn. "
            "Anne plays the French horn. Anne does not play any kind of brass instrument.",
        ),
        (
            ("ds", "racket sport", "is good at", "martial art", "table tennis"),
            "Anne is good at either table tennis or some kind of martial art. "
            "Anne is not good at any kind of martial art. Anne is good at table tennis.",
        ),
        (
            ("mt", "cities", "died in", "United States of America", "Washington, D.C."),
            "If Anne died in United States of America, then she did not die in Washington, D.C.. "
            "Anne died in Washington, D.C.. Anne did not die in United States of America.",
        ),
    ],
)
def test_render_writes_the_templates_of_table_1(parts, expected):
    found = render(**ANNE, **dict(zip(PARTS, parts, strict=True)))
    assert " ".join(found) == expected


@pytest.mark.parametrize(
    ("article", "nouns"),
    [
        ("an", ["ostrich", "eel", "oboe", "English horn", "umbrella bird"]),
        ("a", ["euphonium", "ukulele", "unicorn", "zither"]),
    ],
)
def test_articles_go_by_sound(article, nouns):
    assert {templates.indefinite_article(noun) for noun in nouns} == {article}


@given(data=st.data())
def test_every_field_is_one_sentence_that_names_its_entities(data):
    category = data.draw(st.sampled_from(templates.CATEGORIES))
    pairs = [pair for pair in entity_pairs() if pair.category == category]
    pair = data.draw(st.sampled_from(pairs))
    fields = render(
        **ANNE,
        rule=data.draw(st.sampled_from(templates.RULES)),
        group=category,
        verb=data.draw(st.sampled_from(templates.VERBS[category])),
        entity_a=pair.entity_a,
        entity_b=pair.entity_b,
    )
    assert all(field.endswith(".") and "  " not in field for field in fields)
    assert pair.entity_a in fields.premise1
    assert pair.entity_b in fields.premise1
    assert {pair.entity_a in fields.premise2, pair.entity_b in fields.premise2} == {
        True,
        False,
    } or (pair.entity_a in pair.entity_b)
    assert not any("n't" in field for field in fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "mp"}, r"rule 'mp'.*\bmt, ds\b"),
        ({"group": "planet"}, r"group 'planet'.*cities, bird"),
        ({"pronoun": "it"}, r"pronoun 'it'.*\bhe, she\b"),
        ({"verb": "plays"}, r"'cities'.*verb 'plays'.*born in\b"),
        ({"entity_b": " "}, "entity_b"),
    ],
)
def test_wrong_parts_are_refused(change, message):
    parts = {"rule": "mt", "group": "cities", "verb": "is in", "entity_a": "France"}
    with pytest.raises(UserError, match=message):
        render(**{**ANNE, **parts, "entity_b": "Paris", **change})


def test_the_ten_phrasings():
    assert len({phrasing.question for phrasing in templates.PHRASINGS}) == 10
    assert templates.PHRASINGS[0].question == (
        "Does the Conclusion follow from the Premises? Answer Yes or No only."
    )
    assert templates.PHRASINGS[7].question == (
        "Is it True or False that the Conclusion can be inferred from the Premises? "
        "Answer True or False only."
    )
