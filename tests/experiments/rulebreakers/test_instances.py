import hashlib
import json
import random
from collections import Counter

import pytest

from interp_experiments.rulebreakers import instances as made
from interp_experiments.rulebreakers.system import system
from interp_experiments.rulebreakers.templates import CITIES, FAMILIES


@pytest.fixture(scope="module")
def instances():
    return made.generate(0)


def test_sizes_are_those_of_section_3_3(instances):
    assert len(instances) == 25_600
    rulebreakers = [instance for instance in instances if not instance.label]
    assert Counter(i.category == CITIES for i in rulebreakers) == {True: 10_980, False: 1_820}
    assert Counter(i.rule for i in rulebreakers) == {"mt": 6_400, "ds": 6_400}
    assert len({instance.id for instance in instances}) == 25_600


@pytest.mark.parametrize("seed", range(20))
def test_wrong_entities_are_a_permutation_that_is_wrong_everywhere(seed):
    wrong = made.wrong_entities(made.entity_pairs(), random.Random(seed))
    cities = [pair for pair in made.entity_pairs() if pair.category == CITIES]
    assert sorted(wrong[pair] for pair in cities) == sorted(pair.entity_a for pair in cities)
    for pair in made.entity_pairs():
        assert wrong[pair] != pair.entity_a
        assert (wrong[pair], pair.entity_b) not in made.namesakes()
        if pair.category != CITIES:
            (family,) = [family for family in FAMILIES if pair.category in family]
            assert wrong[pair] in family


def test_the_namesakes_are_countries_and_cities_of_the_data():
    pairs = [pair for pair in made.entity_pairs() if pair.category == CITIES]
    countries, cities = map(set, zip(*made.namesakes(), strict=True))
    assert countries <= {pair.entity_a for pair in pairs}
    assert cities <= {pair.entity_b for pair in pairs}


def test_a_seed_gives_the_same_bytes_on_every_machine(instances):
    rows = [
        {column: getattr(instance, field) for column, field in made.COLUMNS.items()}
        for instance in instances
    ]
    digest = hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()
    assert digest == "0cf61193b86179cd32aebf959f6e9defb70a92041ce3738b9ba922012a44f82e"
    assert made.generate(1) != instances


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("verb", "bare", "published"),
    [
        ("caught", "ostrich", "an ostrich"),
        ("saw", "goose", "a goose"),
        ("plays", "French horn", "the French horn"),
        ("owns", "French horn", "a French horn"),
        ("owns", "English horn", "an English horn"),
        ("is good at", "table tennis", "table tennis"),
        ("had studied in", "Abuja", "Abuja"),
    ],
)
def test_the_published_entity_b_has_its_article(instances, verb, bare, published):
    frame = system.dataset(seed=0)
    chosen = [i.entity_b == bare and i.verb == verb for i in instances]
    assert set(frame[chosen]["entityB"]) == {published}
    spoken = frame[chosen]["premise2"].where(frame["rulebreaker_type"] == "mt").dropna()
    assert spoken.str.endswith(f" {published}.").all()
