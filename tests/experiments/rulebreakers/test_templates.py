import pytest

from interp_experiments.rulebreakers import templates

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
    found = templates.render(**ANNE, **dict(zip(PARTS, parts, strict=True)))
    assert " ".join(found) == expected


def test_the_ten_phrasings():
    assert len({phrasing.question for phrasing in templates.PHRASINGS}) == 10
    assert templates.PHRASINGS[0].question == (
        "Does the Conclusion follow from the Premises? Answer Yes or No only."
    )
    assert templates.PHRASINGS[7].question == (
        "Is it True or False that the Conclusion can be inferred from the Premises? "
        "Answer True or False only."
    )
