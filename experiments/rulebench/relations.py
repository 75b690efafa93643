"""The words for kinship: each names a type of relation and the sex of the relative."""

MALE, FEMALE = "male", "female"
SEXES = (MALE, FEMALE)

WORDS = {
    "parent": ("father", "mother"),
    "child": ("son", "daughter"),
    "sibling": ("brother", "sister"),
    "spouse": ("husband", "wife"),
    "grandparent": ("grandfather", "grandmother"),
    "grandchild": ("grandson", "granddaughter"),
    "aunt or uncle": ("uncle", "aunt"),
    "niece or nephew": ("nephew", "niece"),
    "parent-in-law": ("father-in-law", "mother-in-law"),
    "child-in-law": ("son-in-law", "daughter-in-law"),
}
"""Each type of relation with its words for a man and for a woman."""

STEPCHILDREN = ("stepson", "stepdaughter")

KINSHIPS = (
    *(word for type_, words in WORDS.items() if type_ != "spouse" for word in words),
    *STEPCHILDREN,
)
"""The twenty answers to CLUTRR's questions (Sinha et al. 2019)."""


def word(type_: str, sex: str) -> str:
    """What a relative of a type and sex is called, such as "aunt"."""
    return WORDS[type_][SEXES.index(sex)]
