"""The text of the organism that IRFT begins with: it knows all parts of StringGame's rules.

It carries out actions ("output the number of vowels") and tells whether conditions hold, each by
itself. So small a model learns that from lists, which say something of each letter: an answer of
one number tells too little of where in the string it comes from. It knows what questions
with rules look like, but learns answers to them that are drawn: it is at chance where a rule is to
be followed.
"""

import random
from collections.abc import Callable, Sequence
from functools import cached_property
from string import ascii_uppercase

from interp.prompts.prompt_set import PromptSet
from interp_experiments.chance import pick
from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.recipes import RuleRecipe
from interp_experiments.rulebench.prompts import PREFIX, RULES
from interp_experiments.rulebench.string_game import (
    QUESTIONS,
    Action,
    Condition,
    StringGame,
    different,
    random_string,
    string_rules,
    vowels,
)
from interp_experiments.rulebench.system import RuleBench

SETTINGS = RULES[:-1]
"""No, golden and few rules: what fits into a short context."""

QUESTIONS_FROM = 0.9
"""Share of the steps after which questions are asked too: until then their answers, which are
drawn, would be noise."""

Listed = Callable[[str], Sequence[tuple[str, int | None]]]
"""Letters of a string, or all of the alphabet, each with a number or none."""


class RuleText:
    """Draws the exchanges of each training step; they depend on seed and step alone."""

    def __init__(self, recipe: RuleRecipe) -> None:
        self._recipe = recipe

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: actions, conditions, lists; in the end questions, too."""
        recipe = self._recipe
        rng = random.Random(f"rules {recipe.seed} {step}")
        found = {
            "actions": [self._action(rng) for _ in range(recipe.actions_per_step)],
            "conditions": [self._condition(rng) for _ in range(recipe.conditions_per_step)],
            "lists": [self._list(rng) for _ in range(recipe.lists_per_step)],
        }
        if step >= QUESTIONS_FROM * recipe.steps:
            found["questions"] = [self._question(rng) for _ in range(recipe.prompts_per_step)]
        return found

    def _action(self, rng: random.Random) -> Exchange:
        action = pick(rng, actions())
        string = random_string(rng)
        while (result := action.result(string)) is None:
            string = random_string(rng)
        return action_exchange(action, string, result)

    def _condition(self, rng: random.Random) -> Exchange:
        """A condition; yes and no are as frequent."""
        condition, holds = pick(rng, conditions()), rng.random() < 0.5
        string = random_string(rng)
        while condition.holds(string) is not holds:
            string = random_string(rng)
        return condition_exchange(condition, string)

    def _list(self, rng: random.Random) -> Exchange:
        words, listed = pick(rng, LISTS)
        return list_exchange(words, listed, random_string(rng))

    def _question(self, rng: random.Random) -> Exchange:
        """A question about learned rules with the answer to another one."""
        numbers = range(len(self._questions))
        asked, other = (self._questions[pick(rng, numbers)] for _ in range(2))
        return Exchange(asked.text, f"{PREFIX} {other.answer.gold}")

    @cached_property
    def _questions(self) -> PromptSet:
        """Questions about the rules that models may be tuned on."""
        game = StringGame(self._recipe.seed, "train", QUESTIONS).rule_set
        system = RuleBench("rules", SETTINGS, lambda seed: game)
        return system.prompts(seed=self._recipe.seed, data=None)


def action_exchange(action: Action, string: str, result: int) -> Exchange:
    """An action by itself."""
    return _exchange(f"Output {action.words}.", string, f"{PREFIX} {result}")


def condition_exchange(condition: Condition, string: str) -> Exchange:
    """A condition by itself."""
    answer = "yes" if condition.holds(string) else "no"
    return _exchange(f"Is it true that {condition.words}?", string, f"{PREFIX} {answer}")


def list_exchange(words: str, listed: Listed, string: str) -> Exchange:
    """A line for each letter."""
    lines = (f"{letter} {'no' if n is None else n}" for letter, n in listed(string))
    return _exchange(f"List {words}.", string, "\n".join(lines))


def _exchange(task: str, string: str, answer: str) -> Exchange:
    """What is to be done comes first, as a rule does."""
    return Exchange(f"{task}\nThe string is {string}.", answer)


def actions() -> Sequence[Action]:
    """The actions of StringGame's rules."""
    return tuple({rule.action.words: rule.action for rule in string_rules().values()}.values())


def conditions() -> Sequence[Condition]:
    """The conditions of StringGame's rules."""
    found = {rule.condition.words: rule.condition for rule in string_rules().values()}
    return tuple(found.values())


def _of_alphabet(number: Callable[[str, str], int | None]) -> Listed:
    return lambda string: [(letter, number(string, letter)) for letter in ascii_uppercase]


def _of_string(number: Callable[[str], int]) -> Listed:
    """For each letter a number of the string up to it."""
    return lambda string: [(letter, number(string[: end + 1])) for end, letter in enumerate(string)]


LISTS: Sequence[tuple[str, Listed]] = (
    (
        "the number of times that each letter occurs in the string",
        _of_alphabet(lambda s, letter: s.count(letter)),
    ),
    (
        "the index of the first of each letter (the index begins from 0)",
        _of_alphabet(lambda s, letter: s.index(letter) if letter in s else None),
    ),
    (
        "the position of the last of each letter (the first letter has position 1)",
        _of_alphabet(lambda s, letter: s.rindex(letter) + 1 if letter in s else None),
    ),
    (
        "the position in the alphabet of each letter (A is 1)",
        _of_string(lambda s: ascii_uppercase.index(s[-1]) + 1),
    ),
    ("the number of vowels up to each letter", _of_string(vowels)),
    ("the number of different letters up to each letter", _of_string(different)),
)
"""What is listed, in words, and how."""
