import pytest

from interp.errors import UserError
from interp_experiments.rulebreakers import render, templates

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
            ("ds", "racket sport", "is good at", "martial art", "table tennis"),
            "Anne is good at either table tennis or some kind of martial art. "
            "Anne is not good at any kind of martial art. Anne is good at table tennis.",
        ),
    ],
)
def test_render_writes_the_templates_of_table_1(parts, expected):
    found = render(**ANNE, **dict(zip(PARTS, parts, strict=True)))
    assert " ".join(found) == expected


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
