"""StringGame: a string, and rules of which exactly one applies to it (paper, Appendix G).

A rule consists of a condition and an action. Both are functions made from a grammar; running them
shows which rule applies and what its answer is. (In the paper, a language model writes the rules
and the functions.) A fifth of the rules are held out, so a model can be tuned on the others and
tested on these.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import pairwise, product
from string import ascii_uppercase

from interp_experiments.chance import pick, shuffled
from interp_experiments.rulebench import items

VOWELS = frozenset("AEIOU")

LENGTHS = range(8, 21)

_LETTERS = "ABEGHKLMNOPRSTUW"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a string `s`, in words and in logic, and the letter that it names, if any."""

    words: str
    """The words after "if"."""
    logic: str
    holds: Callable[[str], bool]
    letter: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A number computed from a string `s`, and the letter that it names, if any."""

    words: str
    """A noun phrase."""
    logic: str
    result: Callable[[str], int | None]
    """None for a string that has no such number."""
    letter: str = ""


@dataclass(frozen=True, slots=True)
class StringRule:
    """A condition and its action."""

    id: str
    condition: Condition
    action: Action

    def run(self, string: str) -> int | None:
        """The number that the rule gives; None if it does not apply."""
        return self.action.result(string) if self.condition.holds(string) else None

    @property
    def rule(self) -> items.Rule:
        """The rule in natural language and in logic."""
        return items.Rule(
            self.id,
            natural=f"If {self.condition.words}, then output {self.action.words}.",
            logic=f"{self.condition.logic} → output({self.action.logic})",
        )


@cache
def string_rules() -> Mapping[str, StringRule]:
    """All rules of the grammar, by id.

    No rule names one letter twice, since then its parts would determine each other; each gives a
    number for some random string, so its parts do not contradict each other.
    """
    rng = random.Random("string rules")
    strings = [random_string(rng) for _ in range(2_000)]
    rules: dict[str, StringRule] = {}
    for condition, action in product(_conditions(), _actions()):
        rule = StringRule(f"S{len(rules) + 1:04d}", condition, action)
        alike = condition.letter and condition.letter == action.letter
        if not alike and any(rule.run(string) is not None for string in strings):
            rules[rule.id] = rule
    return rules


def random_string(rng: random.Random) -> str:
    """A string of upper-case letters."""
    return "".join(pick(rng, ascii_uppercase) for _ in range(pick(rng, LENGTHS)))


def _either(
    holds: Callable[[str], bool], form: tuple[str, str], opposite: tuple[str, str], letter: str = ""
) -> Iterator[Condition]:
    yield Condition(*form, holds, letter)
    yield Condition(*opposite, lambda s: not holds(s), letter)


def _conditions() -> Iterator[Condition]:
    length = "the length of the string is"
    yield from _either(
        lambda s: len(s) % 2 == 0,
        (f"{length} even", "even(length(s))"),
        (f"{length} odd", "odd(length(s))"),
    )
    for number in (10, 12, 14):
        yield from _either(
            partial(lambda number, s: len(s) > number, number),
            (f"{length} greater than {number}", f"length(s) > {number}"),
            (f"{length} at most {number}", f"length(s) ≤ {number}"),
        )
    for verb, name, place in (("starts", "first", 0), ("ends", "last", -1)):
        yield from _either(
            partial(lambda place, s: s[place] in VOWELS, place),
            (f"the string {verb} with a vowel", f"vowel({name}(s))"),
            (f"the string {verb} with a consonant", f"consonant({name}(s))"),
        )
        letter = f"the string {verb} with a letter"
        yield from _either(
            partial(lambda place, s: s[place] < "N", place),
            (f'{letter} before "N" in the alphabet', f'{name}(s) < "N"'),
            (f'{letter} from "N" to "Z"', f'{name}(s) ≥ "N"'),
        )
    for words, logic, number_of, numbers in (
        ("vowels", "vowels(s)", vowels, (1, 2, 3)),
        ("different letters", "unique(s)", different, (9, 11)),
    ):
        yield from _either(
            partial(lambda number_of, s: number_of(s) % 2 == 0, number_of),
            (f"the number of {words} is even", f"even({logic})"),
            (f"the number of {words} is odd", f"odd({logic})"),
        )
        for number in numbers:
            yield Condition(
                f"the string has more than {number} {words}",
                f"{logic} > {number}",
                partial(lambda two, s: two[0](s) > two[1], (number_of, number)),
            )
    yield from _either(
        lambda s: any(a == b for a, b in pairwise(s)),
        ("two equal letters stand next to each other in the string", "∃i s[i] = s[i + 1]"),
        ("no two equal letters stand next to each other in the string", "¬∃i s[i] = s[i + 1]"),
    )
    for letter in _LETTERS[:8]:
        yield from _either(
            partial(lambda letter, s: letter in s, letter),
            (f'the string contains the letter "{letter}"', f'"{letter}" ∈ s'),
            (f'the string does not contain the letter "{letter}"', f'"{letter}" ∉ s'),
            letter,
        )
    for letter in _LETTERS[8:]:
        yield Condition(
            f'the letter "{letter}" occurs exactly once in the string',
            f'count("{letter}", s) = 1',
            partial(lambda letter, s: s.count(letter) == 1, letter),
            letter,
        )


def _actions() -> Iterator[Action]:
    length = "the length of the string"
    yield Action(length, "length(s)", len)
    yield Action(f"{length} plus 1", "length(s) + 1", lambda s: len(s) + 1)
    yield Action(f"twice {length}", "2 · length(s)", lambda s: 2 * len(s))
    yield Action(f"half {length}", "length(s) / 2", lambda s: None if len(s) % 2 else len(s) // 2)
    for what, logic, count_of in (
        ("vowels", "vowels(s)", vowels),
        ("consonants", "consonants(s)", lambda s: len(s) - vowels(s)),
        ("different letters", "unique(s)", different),
        ("different vowels", "unique_vowels(s)", lambda s: len(VOWELS & set(s))),
        ("different consonants", "unique_consonants(s)", lambda s: len(set(s) - VOWELS)),
        (
            "letters that occur more than once",
            "repeated(s)",
            lambda s: sum(s.count(letter) > 1 for letter in set(s)),
        ),
    ):
        yield Action(f"the number of {what} in the string", logic, count_of)
    for name, place in (("first", 0), ("last", -1)):
        yield Action(
            f"the position in the alphabet of the {name} letter (A is 1)",
            f"alphabet({name}(s))",
            partial(lambda place, s: ascii_uppercase.index(s[place]) + 1, place),
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
            partial(lambda letter, s: s.count(letter), letter),
            letter,
        )
        yield Action(
            f'the index of the first "{letter}" (the index begins from 0)',
            f'index("{letter}", s)',
            partial(lambda letter, s: s.index(letter) if letter in s else None, letter),
            letter,
        )
    for letter in _LETTERS[1::2]:
        yield Action(
            f'the position of the last "{letter}" (the first letter has position 1)',
            f'1 + last_index("{letter}", s)',
            partial(lambda letter, s: s.rindex(letter) + 1 if letter in s else None, letter),
            letter,
        )


def vowels(string: str) -> int:
    """Number of letters among A, E, I, O and U."""
    return sum(letter in VOWELS for letter in string)


def different(string: str) -> int:
    """Number of different letters."""
    return len(set(string))


QUESTIONS = 1_800


@cache
def rules_of(split: items.Split) -> Mapping[str, StringRule]:
    """The rules of a split, which is the same for all seeds."""
    order = list(shuffled(random.Random("string game split"), list(string_rules())))
    held_out = set(order[: len(order) // items.HELD_OUT])
    return {
        id_: rule
        for id_, rule in string_rules().items()
        if (id_ in held_out) is (split == "held-out")
    }


@dataclass(frozen=True)
class StringGame:
    """Questions about the rules of a split, generated from a seed."""

    seed: int
    split: items.Split = "held-out"
    questions: int = QUESTIONS

    @cached_property
    def rule_set(self) -> items.RuleSet:
        """The questions with their rules; they have no counterfactual version."""
        rng = random.Random(f"string game {self.split} {self.seed}")
        rules = rules_of(self.split)
        choices = tuple(rules.values())
        asked = [self._item(n, choices, rng) for n in range(1, self.questions + 1)]
        return items.RuleSet(
            name=items.STRING_GAME.name,
            kind=items.STRING_GAME,
            factual=items.Version(tuple(asked), {id_: each.rule for id_, each in rules.items()}),
            fits=applies,
        )

    def _item(self, number: int, rules: tuple[StringRule, ...], rng: random.Random) -> items.Item:
        rule = pick(rng, rules)
        string = random_string(rng)
        while (result := rule.run(string)) is None:
            string = random_string(rng)
        question = f"The string is {string}.\nWhich number is the output for this string?"
        return items.Item(f"{number:05d}", question, str(result), rule.id, {"string": string})


def applies(item: items.Item, rule: items.Rule, golden: items.Rule) -> bool:
    """Whether a rule gives a number for the string of an item."""
    return string_rules()[rule.id].run(item.factors["string"]) is not None
