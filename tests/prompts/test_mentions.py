import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.prompts.mentions import mentions
from interp_experiments.rulebreakers.instances import entity_pairs
from interp_experiments.rulebreakers.system import system

FACTS = {prompt.factors["entity_b"]: prompt for prompt in system.facts(data=None)}


def named(city, completion):
    """The name by which a completion gives the answer of a fact."""
    prompt = FACTS[city]
    return mentions(completion, prompt.answer.expected, lookalikes=prompt.answer.excluded)


@pytest.mark.parametrize(
    ("city", "completion", "name"),
    [
        ("Harare", "Zimbabwe.", "Zimbabwe"),
        ("Harare", "Harare is in **Zimbabwe**", "Zimbabwe"),
        ("Harare", "the ZIMBABWE highlands", "Zimbabwe"),
        ("Harare", "Zimbabwe's north-east", "Zimbabwe"),
        ("Banjul", "Gambia", "The Gambia"),
        ("Banjul", "the Gambia, on the Gambia River", "The Gambia"),
        ("Nassau", "the Bahamas", "The Bahamas"),
        ("Washington, D.C.", "the U.S.", "US"),
        ("Washington, D.C.", "the United States.", "United States"),
        ("Washington, D.C.", "the U.S.A.!", "USA"),
        ("London", "the U.K.", "UK"),
        ("Beijing", "China", "China"),
        ("Beijing", "the People’s Republic of China", "People's Republic of China"),
        ("Amsterdam", "The Netherlands", "Netherlands"),
        ("Amsterdam", "Holland", "Holland"),
        ("Dili", "Timor-Leste", "Timor-Leste"),
        ("Dili", "Timor Leste", "Timor-Leste"),
        ("Yamoussoukro", "Cote d’Ivoire", "Côte d'Ivoire"),
        ("Ankara", "Turkiye", "Türkiye"),
        ("São Tomé", "Sao Tome & Principe", "São Tomé and Príncipe"),
        ("Castries", "St. Lucia", "Saint Lucia"),
        ("Kinshasa", "the Democratic Republic of Congo", "Democratic Republic of the Congo"),
        ("Brazzaville", "the Republic of Congo", "Republic of the Congo"),
        ("Conakry", "Guinea, south of Guinea-Bissau", "Guinea"),
        ("Bissau", "Guinea-Bissau", "Guinea-Bissau"),
        ("Niamey", "on the Niger River, in Niger", "Niger"),
        ("Seoul", "the Republic of Korea", "Republic of Korea"),
        ("Mexico City", "Mexico City is in Mexico", "Mexico"),
        ("goose", "waterfowl", "waterfowl"),
        ("goose", "large birds", "bird"),
        ("violin", "string instruments", "string instrument"),
        ("tuba", "brass instrument", "brass instrument"),
    ],
)
def test_names_are_found_however_they_are_written(city, completion, name):
    assert named(city, completion) == name


@pytest.mark.parametrize(
    ("city", "completion"),
    [
        ("Conakry", "Guinea-Bissau"),
        ("Conakry", "Guinea–Bissau"),
        ("Conakry", "Papua New Guinea"),
        ("Conakry", "Equatorial Guinea"),
        ("Niamey", "Nigeria"),
        ("Niamey", "the valley of the Niger River"),
        ("Roseau", "the Dominican Republic"),
        ("Brazzaville", "the Democratic Republic of the Congo"),
        ("Brazzaville", "the Democratic Republic of Congo"),
        ("Brazzaville", "Congo"),
        ("Kinshasa", "the Republic of the Congo"),
        ("Kinshasa", "Congo"),
        ("Khartoum", "South Sudan"),
        ("Juba", "Sudan"),
        ("Seoul", "Korea"),
        ("Seoul", "North Korea"),
        ("Seoul", "the Democratic People's Republic of Korea"),
        ("Pyongyang", "the Republic of Korea"),
        ("Pyongyang", "Korea"),
        ("Taipei", "the People's Republic of China"),
        ("Beijing", "the Republic of China"),
        ("Washington, D.C.", "tell us more"),
        ("Washington, D.C.", "North America"),
        ("Mexico City", "Mexico City is in New Mexico"),
        ("Guatemala City", "Guatemala City is in Central America"),
        ("Dublin", "Northern Ireland"),
        ("Harare", ""),
        ("guitar", "instrument"),
        ("goose", "cricket"),
    ],
)
def test_other_names_are_not_taken_for_it(city, completion):
    assert named(city, completion) == ""


@pytest.mark.parametrize("city", FACTS)
def test_no_answer_is_taken_for_another(city):
    """Every name of every answer counts for that answer, and for no other."""
    for other in FACTS.values():
        same = other.factors["entity_a"] == FACTS[city].factors["entity_a"]
        for name in other.answer.expected:
            assert bool(named(city, f"{name}.")) == same


@given(st.sampled_from(entity_pairs()), st.text(alphabet=" .,;:!?*\n\"'(", max_size=5))
def test_punctuation_and_case_make_no_difference(pair, around):
    forms = (pair.entity_a,)
    for written in (pair.entity_a, pair.entity_a.upper(), pair.entity_a.lower()):
        assert mentions(f"{around} {written}{around}", forms) == pair.entity_a


@given(st.text(max_size=30))
def test_any_text_can_be_read(text):
    assert mentions(text, ["Chad"]) in ("", "Chad")
