"""StringGame: a string, and rules of which exactly one applies to it (paper, Appendix G).

A rule consists of a condition and an action. Both are functions made from a grammar; running them
shows which rule applies and what its answer is. (In the paper, a language model writes the rules
and the functions.) A fifth of the rules are held out, so a model can be tuned on the others and
tested on these.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise, product
from string import ascii_uppercase

from interp_experiments.chance import pick, shuffled
from interp_experiments.rulebench import items

VOWELS = frozenset("AEIOU")

LENGTHS = range(8, 21)

_LETTERS = "ABEGHKLMNOPRSTUW"


@dataclass(frozen=True, slots=True)
class Part:
    """A condition or an action, in words and in logic, and the letter that it names, if any."""

    words: str
    """Of a condition, the words after "if"; of an action, a noun phrase."""
    logic: str
    of: Callable[[str], int | None]
    """Whether a string meets the condition, or the number that the action computes from it (None
    if the string has no such number)."""
    letter: str = ""


@dataclass(frozen=True, slots=True)
class StringRule:
    """A condition and its action."""

    id: str
    condition: Part
    action: Part

    def run(self, string: str) -> int | None:
        """The number that the rule gives; None if it does not apply."""
        return self.action.of(string) if self.condition.of(string) else None

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
    words: str, logic: str, holds: Callable[[str], bool], letter: str = ""
) -> Iterator[Part]:
    """A condition and its opposite, whose words and logic choose the other side of "[a|b]"."""
    for side, wanted in ((1, True), (2, False)):
        one, in_logic = (
            re.sub(r"\[([^]]*)\|([^]]*)\]", rf"\{side}", text) for text in (words, logic)
        )
        yield Part(one, in_logic, partial(lambda wanted, s: holds(s) is wanted, wanted), letter)


def _conditions() -> Iterator[Part]:
    length = "the length of the string is"
    yield from _either(f"{length} [even|odd]", "[even|odd](length(s))", lambda s: len(s) % 2 == 0)
    for n in (10, 12, 14):
        words, logic = f"{length} [greater than|at most] {n}", f"length(s) [>|≤] {n}"
        yield from _either(words, logic, partial(lambda n, s: len(s) > n, n))
    for verb, name, at in (("starts", "first", 0), ("ends", "last", -1)):
        words = f"the string {verb} with a [vowel|consonant]"
        logic = f"[vowel|consonant]({name}(s))"
        yield from _either(words, logic, partial(lambda at, s: s[at] in VOWELS, at))
        words = f'the string {verb} with a letter [before "N" in the alphabet|from "N" to "Z"]'
        logic = f'{name}(s) [<|≥] "N"'
        yield from _either(words, logic, partial(lambda at, s: s[at] < "N", at))
    for what, logic, count, numbers in (
        ("vowels", "vowels(s)", vowels, (1, 2, 3)),
        ("different letters", "unique(s)", different, (9, 11)),
    ):
        words = f"the number of {what} is [even|odd]"
        parity = partial(lambda count, s: count(s) % 2 == 0, count)
        yield from _either(words, f"[even|odd]({logic})", parity)
        for n in numbers:
            words = f"the string has more than {n} {what}"
            yield Part(words, f"{logic} > {n}", partial(lambda n, count, s: count(s) > n, n, count))
    yield from _either(
        "[two|no two] equal letters stand next to each other in the string",
        "[∃|¬∃]i s[i] = s[i + 1]",
        lambda s: any(a == b for a, b in pairwise(s)),
    )
    for char in _LETTERS[:8]:
        words = f'the string [contains|does not contain] the letter "{char}"'
        yield from _either(words, f'"{char}" [∈|∉] s', partial(lambda c, s: c in s, char), char)
    for char in _LETTERS[8:]:
        words = f'the letter "{char}" occurs exactly once in the string'
        logic = f'count("{char}", s) = 1'
        yield Part(words, logic, partial(lambda c, s: s.count(c) == 1, char), char)


def _actions() -> Iterator[Part]:
    length = "the length of the string"
    yield Part(length, "length(s)", len)
    yield Part(f"{length} plus 1", "length(s) + 1", lambda s: len(s) + 1)
    yield Part(f"twice {length}", "2 · length(s)", lambda s: 2 * len(s))
    yield Part(f"half {length}", "length(s) / 2", lambda s: None if len(s) % 2 else len(s) // 2)
    for what, logic, count in (
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
        yield Part(f"the number of {what} in the string", logic, count)
    for name, at in (("first", 0), ("last", -1)):
        words = f"the position in the alphabet of the {name} letter (A is 1)"
        place = partial(lambda at, s: ascii_uppercase.index(s[at]) + 1, at)
        yield Part(words, f"alphabet({name}(s))", place)
    yield Part(
        "the index of the first vowel (the index begins from 0)",
        "index_of_vowel(s)",
        lambda s: next((place for place, letter in enumerate(s) if letter in VOWELS), None),
    )
    for char in _LETTERS[::2]:
        words = f'the number of times that "{char}" occurs in the string'
        yield Part(words, f'count("{char}", s)', partial(lambda c, s: s.count(c), char), char)
        words = f'the index of the first "{char}" (the index begins from 0)'
        first = partial(lambda c, s: s.index(c) if c in s else None, char)
        yield Part(words, f'index("{char}", s)', first, char)
    for char in _LETTERS[1::2]:
        words = f'the position of the last "{char}" (the first letter has position 1)'
        last = partial(lambda c, s: s.rfind(c) + 1 or None, char)
        yield Part(words, f'1 + last_index("{char}", s)', last, char)


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


def game_questions(
    seed: int, split: items.Split = "held-out", questions: int = QUESTIONS
) -> items.RuleSet:
    """Questions about the rules of a split, with these rules; without a counterfactual version."""
    rng = random.Random(f"string game {split} {seed}")
    rules = rules_of(split)
    choices = tuple(rules.values())
    asked = []
    for number in range(1, questions + 1):
        rule, result = pick(rng, choices), None
        while result is None:
            string = random_string(rng)
            result = rule.run(string)
        question = f"The string is {string}.\nWhich number is the output for this string?"
        factors = {"string": string}
        asked.append(items.Item(f"{number:05d}", question, str(result), rule.id, factors))
    version = items.Version(tuple(asked), {id_: each.rule for id_, each in rules.items()})
    return items.RuleSet(items.STRING_GAME, version, fits=applies)


def applies(item: items.Item, rule: items.Rule, golden: items.Rule) -> bool:
    """Whether a rule gives a number for the string of an item."""
    return string_rules()[rule.id].run(item.factors["string"]) is not None
