"""StringGame: a string, and rules of which exactly one applies to it (paper, Appendix G).

The rules are all conditions of a grammar with all its actions, as functions: running them decides
which one applies, and what comes out. (In the paper rules and their functions are written by a
language model.) A fifth of the rules is held out, so that a model can be tuned on the others and
asked about these.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import count, pairwise
from string import ascii_uppercase

from interp_experiments.chance import pick, shuffled
from interp_experiments.rulebench.items import (
    HELD_OUT,
    STRING_GAME,
    Item,
    Rule,
    RuleSet,
    Split,
    Version,
)

VOWELS = frozenset("AEIOU")

LENGTHS = range(8, 21)
"""Possible lengths of a string, in letters."""

_TRIED = 2_000

_LETTERS = "ABEGHKLMNOPRSTUW"
"""Letters that conditions and actions are about."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a string."""

    words: str
    """The words after "if"."""
    logic: str
    """A formula about the string s."""
    holds: Callable[[str], bool]
    letter: str = ""
    """The letter that it is about, if any."""


@dataclass(frozen=True, slots=True)
class Action:
    """A number computed from a string."""

    words: str
    """A noun phrase."""
    logic: str
    """A term over the string s."""
    result: Callable[[str], int | None]
    """Returns None if the string has no such number."""
    letter: str = ""
    """The letter that it is about, if any."""


@dataclass(frozen=True, slots=True)
class StringRule:
    """A condition with an action."""

    id: str
    condition: Condition
    action: Action

    def run(self, string: str) -> int | None:
        """The number that the rule gives; None if it does not apply."""
        return self.action.result(string) if self.condition.holds(string) else None

    @property
    def rule(self) -> Rule:
        """The rule in both forms."""
        return Rule(
            self.id,
            natural=f"If {self.condition.words}, then output {self.action.words}.",
            logic=f"{self.condition.logic} → output({self.action.logic})",
        )


@cache
def string_rules() -> Mapping[str, StringRule]:
    """All rules of the grammar, by id.

    No rule has a condition and an action about the same letter, since one would decide the other.
    Nor do the two contradict each other, such as an odd length and half of it: every rule applies
    to some of `_TRIED` random strings.
    """
    rng = random.Random("string rules")
    strings = [random_string(rng) for _ in range(_TRIED)]
    actions = tuple(_actions())
    made = (
        StringRule("", condition, action)
        for condition in _conditions()
        for action in actions
        if not (condition.letter and condition.letter == action.letter)
    )
    rules = (rule for rule in made if any(rule.run(string) is not None for string in strings))
    return {rule.id: rule for rule in map(_numbered, rules, count(1))}


def random_string(rng: random.Random) -> str:
    """A string of upper-case letters."""
    return "".join(pick(rng, ascii_uppercase) for _ in range(pick(rng, LENGTHS)))


def _numbered(rule: StringRule, number: int) -> StringRule:
    return replace(rule, id=f"S{number:04d}")


def _conditions() -> Iterator[Condition]:
    yield from _length_conditions()
    yield from _end_conditions()
    yield from _count_conditions()
    yield Condition(
        "two equal letters stand next to each other in the string",
        "∃i s[i] = s[i + 1]",
        lambda s: any(a == b for a, b in pairwise(s)),
    )
    yield Condition(
        "no two equal letters stand next to each other in the string",
        "¬∃i s[i] = s[i + 1]",
        lambda s: all(a != b for a, b in pairwise(s)),
    )
    for letter in _LETTERS[:8]:
        yield Condition(
            f'the string contains the letter "{letter}"',
            f'"{letter}" ∈ s',
            partial(_contains, letter),
            letter,
        )
        yield Condition(
            f'the string does not contain the letter "{letter}"',
            f'"{letter}" ∉ s',
            partial(_lacks, letter),
            letter,
        )
    for letter in _LETTERS[8:]:
        yield Condition(
            f'the letter "{letter}" occurs exactly once in the string',
            f'count("{letter}", s) = 1',
            partial(_once, letter),
            letter,
        )


def _length_conditions() -> Iterator[Condition]:
    length = "the length of the string is"
    yield Condition(f"{length} even", "even(length(s))", lambda s: len(s) % 2 == 0)
    yield Condition(f"{length} odd", "odd(length(s))", lambda s: len(s) % 2 == 1)
    for number in (10, 12, 14):
        yield Condition(f"{length} greater than {number}", f"length(s) > {number}", _longer(number))
        yield Condition(
            f"{length} at most {number}", f"length(s) ≤ {number}", _not(_longer(number))
        )


def _end_conditions() -> Iterator[Condition]:
    for verb, name, place in (("starts", "first", 0), ("ends", "last", -1)):
        for kind, vowel in (("vowel", True), ("consonant", False)):
            yield Condition(
                f"the string {verb} with a {kind}", f"{kind}({name}(s))", _is_vowel(place, vowel)
            )
        yield Condition(
            f'the string {verb} with a letter before "N" in the alphabet',
            f'{name}(s) < "N"',
            _before_n(place),
        )
        yield Condition(
            f'the string {verb} with a letter from "N" to "Z"',
            f'{name}(s) ≥ "N"',
            _not(_before_n(place)),
        )


def _count_conditions() -> Iterator[Condition]:
    counts = (
        ("vowels", "vowels(s)", vowels, (1, 2, 3)),
        ("different letters", "unique(s)", different, (9, 11)),
    )
    for words, logic, number_of, numbers in counts:
        yield Condition(f"the number of {words} is even", f"even({logic})", _even(number_of))
        yield Condition(f"the number of {words} is odd", f"odd({logic})", _not(_even(number_of)))
        for number in numbers:
            yield Condition(
                f"the string has more than {number} {words}",
                f"{logic} > {number}",
                _more(number_of, number),
            )


def _actions() -> Iterator[Action]:
    yield Action("the length of the string", "length(s)", len)
    yield Action("the length of the string plus 1", "length(s) + 1", lambda s: len(s) + 1)
    yield Action("twice the length of the string", "2 · length(s)", lambda s: 2 * len(s))
    yield Action(
        "half the length of the string",
        "length(s) / 2",
        lambda s: None if len(s) % 2 else len(s) // 2,
    )
    yield Action("the number of vowels in the string", "vowels(s)", vowels)
    yield Action(
        "the number of consonants in the string", "consonants(s)", lambda s: len(s) - vowels(s)
    )
    yield Action("the number of different letters in the string", "unique(s)", different)
    yield Action(
        "the number of different vowels in the string",
        "unique_vowels(s)",
        lambda s: len(VOWELS & set(s)),
    )
    yield Action(
        "the number of different consonants in the string",
        "unique_consonants(s)",
        lambda s: len(set(s) - VOWELS),
    )
    yield Action(
        "the number of letters that occur more than once in the string",
        "repeated(s)",
        lambda s: sum(s.count(letter) > 1 for letter in set(s)),
    )
    for name, place in (("first", 0), ("last", -1)):
        yield Action(
            f"the position in the alphabet of the {name} letter (A is 1)",
            f"alphabet({name}(s))",
            partial(_in_alphabet, place),
        )
    yield Action(
        "the index of the first vowel (the index begins from 0)",
        "index_of_vowel(s)",
        lambda s: next((place for place, letter in enumerate(s) if letter in VOWELS), None),
    )
    for letter in _LETTERS[::2]:
        yield Action(
            f'the number of times that "{letter}" occurs in the string',
            f'count("{letter}", s)',
            partial(_times, letter),
            letter,
        )
        yield Action(
            f'the index of the first "{letter}" (the index begins from 0)',
            f'index("{letter}", s)',
            partial(_index, letter),
            letter,
        )
    for letter in _LETTERS[1::2]:
        yield Action(
            f'the position of the last "{letter}" (the first letter has position 1)',
            f'1 + last_index("{letter}", s)',
            partial(_position_of_last, letter),
            letter,
        )


def vowels(string: str) -> int:
    """Number of letters among A, E, I, O and U."""
    return sum(letter in VOWELS for letter in string)


def different(string: str) -> int:
    """Number of different letters."""
    return len(set(string))


def _longer(number: int) -> Callable[[str], bool]:
    return lambda string: len(string) > number


def _not(holds: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda string: not holds(string)


def _is_vowel(place: int, vowel: bool) -> Callable[[str], bool]:
    return lambda string: (string[place] in VOWELS) is vowel


def _before_n(place: int) -> Callable[[str], bool]:
    return lambda string: string[place] < "N"


def _even(number_of: Callable[[str], int]) -> Callable[[str], bool]:
    return lambda string: number_of(string) % 2 == 0


def _more(number_of: Callable[[str], int], number: int) -> Callable[[str], bool]:
    return lambda string: number_of(string) > number


def _contains(letter: str, string: str) -> bool:
    return letter in string


def _lacks(letter: str, string: str) -> bool:
    return letter not in string


def _once(letter: str, string: str) -> bool:
    return string.count(letter) == 1


def _times(letter: str, string: str) -> int:
    return string.count(letter)


def _in_alphabet(place: int, string: str) -> int:
    return ascii_uppercase.index(string[place]) + 1


def _index(letter: str, string: str) -> int | None:
    return string.index(letter) if letter in string else None


def _position_of_last(letter: str, string: str) -> int | None:
    return string.rindex(letter) + 1 if letter in string else None


QUESTIONS = 1_800


@cache
def rules_of(split: Split) -> Mapping[str, StringRule]:
    """The rules of a split, which is the same for all seeds."""
    order = list(shuffled(random.Random("string game split"), list(string_rules())))
    held_out = set(order[: len(order) // HELD_OUT])
    return {
        id_: rule
        for id_, rule in string_rules().items()
        if (id_ in held_out) is (split == "held-out")
    }


@dataclass(frozen=True)
class StringGame:
    """The questions of a seed about the rules of a split."""

    seed: int
    split: Split = "held-out"
    questions: int = QUESTIONS

    @cached_property
    def rule_set(self) -> RuleSet:
        """The questions with their rules; there are no counterfactual ones."""
        rng = random.Random(f"string game {self.split} {self.seed}")
        rules = rules_of(self.split)
        choices = tuple(rules.values())
        items = [self._item(n, choices, rng) for n in range(1, self.questions + 1)]
        return RuleSet(
            name=STRING_GAME.name,
            kind=STRING_GAME,
            factual=Version(tuple(items), {id_: each.rule for id_, each in rules.items()}),
            fits=applies,
        )

    def _item(self, number: int, rules: tuple[StringRule, ...], rng: random.Random) -> Item:
        rule = pick(rng, rules)
        string = random_string(rng)
        while (result := rule.run(string)) is None:
            string = random_string(rng)
        return Item(f"{number:05d}", asked(string), str(result), rule.id, {"string": string})


def applies(item: Item, rule: Rule, golden: Rule) -> bool:
    """Whether a rule gives a number for the string of an item."""
    return string_rules()[rule.id].run(item.factors["string"]) is not None


def asked(string: str) -> str:
    """The question about a string."""
    return f"The string is {string}.\nWhich number is the output for this string?"
