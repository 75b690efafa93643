"""The templates of RULEBREAKERS (paper, Table 1 and Section 4.2)."""

import re
from dataclasses import dataclass
from typing import NamedTuple

RULES = ("mt", "ds")

PRONOUNS = ("he", "she")

CITIES = "cities"

ANIMALS = ("bird", "fish", "insect")
INSTRUMENTS = ("brass instrument", "stringed instrument", "woodwind instrument")
SPORTS = ("martial art", "racket sport")

FAMILIES = (ANIMALS, INSTRUMENTS, SPORTS)
"""Types that share their verbs; an instance's wrong type is drawn from the same family."""

_VERBS = {
    (CITIES,): {
        "is in": "is not in",
        "was born in": "was not born in",
        "died in": "did not die in",
        "will be visiting": "will not be visiting",
        "had studied in": "had not studied in",
        "has been to": "has not been to",
    },
    ANIMALS: {"caught": "did not catch", "saw": "did not see"},
    INSTRUMENTS: {"plays": "does not play", "owns": "does not own"},
    SPORTS: {"is good at": "is not good at", "is competing in": "is not competing in"},
}
"""The verbs that the instances of each category use, with their negations, in the paper's order."""

NEGATIONS = {verb: negated for verbs in _VERBS.values() for verb, negated in verbs.items()}

VERBS = {category: tuple(verbs) for categories, verbs in _VERBS.items() for category in categories}


class Reasoning(NamedTuple):
    """Two premises and the conclusion that the rule draws from them, one sentence each."""

    premise1: str
    premise2: str
    conclusion: str


def render(
    *, rule: str, group: str, name: str, pronoun: str, verb: str, entity_a: str, entity_b: str
) -> Reasoning:
    """Write the sentences of one instance (paper, Table 1).

    The group, "cities" or a type, determines the template and the article; in a non-rulebreaker,
    `entity_a` is another type. Entities are bare: B ("zither") gets its article here.
    """
    b = with_article(entity_b, group=group, verb=verb)
    some, any_ = ("", "") if group == CITIES else ("some kind of ", "any kind of ")
    negated = f"{name} {NEGATIONS[verb]} {any_}{entity_a}."
    affirmed = f"{name} {verb} {b}."
    if rule == "mt":
        first = f"If {name} {verb} {some}{entity_a}, then {pronoun} {NEGATIONS[verb]} {b}."
        return Reasoning(first, affirmed, negated)
    either = "somewhere in " if group == CITIES else some
    return Reasoning(f"{name} {verb} either {b} or {either}{entity_a}.", negated, affirmed)


def with_article(entity_b: str, *, group: str, verb: str) -> str:
    """`entity_b` with its article, if any: none for cities and sports, "the" after "plays"."""
    if group == CITIES or group in SPORTS:
        return entity_b
    if verb == "plays":
        return f"the {entity_b}"
    return f"{'an' if _VOWEL_SOUND.match(entity_b) else 'a'} {entity_b}"


def without_article(entity_b: str, *, group: str) -> str:
    """`entity_b` without the article that `with_article` adds."""
    bare = group == CITIES or group in SPORTS
    return entity_b if bare else re.sub("^(the|an?) ", "", entity_b)


# A written vowel pronounced "y" or "w" takes "a"; a silent h takes "an".
_VOWEL_SOUND = re.compile(
    r"(?!eu|ewe|one\b|once\b|uni|u[bckqrst][aeiou])[aeiou]|hour|heir|honest|honou?r", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Phrasing:
    """A way to ask whether the conclusion follows (Section 4.2), such as entail-yn."""

    id: str
    verb: str
    answers: str
    question: str


_WORDINGS = {
    "follow": (
        "Does the Conclusion follow from the Premises?",
        "the Conclusion follows from the Premises",
    ),
    "entail": ("Do the Premises entail the Conclusion?", "the Premises entail the Conclusion"),
    "infer": (
        "Can the Conclusion be inferred from the Premises?",
        "the Conclusion can be inferred from the Premises",
    ),
    "deduce": (
        "Can the Conclusion be deduced from the Premises?",
        "the Conclusion can be deduced from the Premises",
    ),
    "support": ("Do the Premises support the Conclusion?", "the Premises support the Conclusion"),
}

_ASKED = {
    "yn": ("yes/no", "{question} Answer Yes or No only."),
    "tf": ("true/false", "Is it True or False that {statement}? Answer True or False only."),
}

PHRASINGS = tuple(
    Phrasing(f"{verb}-{kind}", verb, answers, wording.format(question=asked, statement=stated))
    for kind, (answers, wording) in _ASKED.items()
    for verb, (asked, stated) in _WORDINGS.items()
)
