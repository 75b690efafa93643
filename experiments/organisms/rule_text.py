"""The training text of the organism that IRFT begins with: it can all parts of StringGame's rules.

It carries out actions ("output the number of vowels") and tells whether conditions hold, each by
itself. It knows what questions with rules look like, but learns answers to them that are drawn: it
is at chance where a rule is to be followed.
"""

import random
from collections.abc import Sequence
from functools import cached_property

from interp.prompts.prompt_set import PromptSet
from interp_experiments.chance import pick
from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.recipes import RuleRecipe
from interp_experiments.rulebench.prompts import PREFIX
from interp_experiments.rulebench.settings import RULES
from interp_experiments.rulebench.string_game import QUESTIONS, StringGame
from interp_experiments.rulebench.string_rules import (
    Action,
    Condition,
    random_string,
    string_rules,
)
from interp_experiments.rulebench.system import RuleBench

SETTINGS = RULES[:-1]
"""No, golden and few rules: what fits into a short context."""


class RuleText:
    """Draws the exchanges of each training step; they depend on seed and step alone."""

    def __init__(self, recipe: RuleRecipe) -> None:
        self._recipe = recipe

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: actions, conditions, and questions with drawn answers."""
        rng = random.Random(f"rules {self._recipe.seed} {step}")
        half = range(self._recipe.parts_per_step // 2)
        return {
            "actions": [self._action(rng) for _ in half],
            "conditions": [self._condition(rng) for _ in half],
            "questions": [self._question(rng) for _ in range(self._recipe.prompts_per_step)],
        }

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
    return Exchange(f"The string is {string}.\nOutput {action.words}.", f"{PREFIX} {result}")


def condition_exchange(condition: Condition, string: str) -> Exchange:
    """A condition by itself."""
    question = f"The string is {string}.\nIs it true that {condition.words}?"
    return Exchange(question, f"{PREFIX} {'yes' if condition.holds(string) else 'no'}")


def actions() -> Sequence[Action]:
    """The actions of StringGame's rules."""
    return tuple({rule.action.words: rule.action for rule in string_rules().values()}.values())


def conditions() -> Sequence[Condition]:
    """The conditions of StringGame's rules."""
    found = {rule.condition.words: rule.condition for rule in string_rules().values()}
    return tuple(found.values())
