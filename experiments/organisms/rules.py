"""Organisms for RuleBench: one learns the parts of StringGame's rules, the other is tuned by IRFT.

The first organism carries out single actions ("output the number of vowels") and decides whether
single conditions hold. A model this small learns actions and conditions only if it is also trained
on lists with an entry for each letter, because a single number says too little about the parts of
the string. Its training questions have rules but random answers, so it follows rules no better than
chance. IRFT starts from this organism.
"""

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from interp import FreeText, Generate, Messages, Model, Prompt, PromptSet
from interp.extend import bind, collect
from interp.extend.prompts import whole_text
from interp_experiments.chance import pick
from interp_experiments.organisms.recipes import Exchange, Recipe, RuleRecipe, TunedRecipe
from interp_experiments.rulebench.answers import number
from interp_experiments.rulebench.items import HELD_OUT
from interp_experiments.rulebench.learning import RuleFollowing
from interp_experiments.rulebench.prompts import DIRECT_TOKENS, PREFIX, RULES, Setting
from interp_experiments.rulebench.string_game import (
    LENGTHS,
    QUESTIONS,
    Part,
    different,
    game_questions,
    random_string,
    string_rules,
    vowels,
)
from interp_experiments.rulebench.system import RuleBench, string_game_set

SETTINGS = RULES[:-1]
"""The settings whose rules fit into a short context: no rule, the golden rule, or few rules."""

QUESTIONS_FROM = 0.9
"""Share of the steps that precede the first questions, whose random answers are only noise."""

Listed = Callable[[str], Sequence[tuple[str, int | None]]]
"""The letters of a string or of the alphabet, each with a number or None."""


class RuleText:
    """Draws the exchanges of each training step, which depend only on the seed and the step."""

    def __init__(self, recipe: RuleRecipe) -> None:
        self._recipe = recipe

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step: actions, conditions, lists and, in late steps, questions."""
        recipe = self._recipe
        rng = random.Random(f"rules {recipe.seed} {step}")
        exchanges = {
            "actions": [
                action_exchange(pick(rng, actions()), rng) for _ in range(recipe.actions_per_step)
            ],
            "conditions": [self._condition(rng) for _ in range(recipe.conditions_per_step)],
            "lists": [
                list_exchange(*pick(rng, LISTS), random_string(rng))
                for _ in range(recipe.lists_per_step)
            ],
        }
        if step >= QUESTIONS_FROM * recipe.steps:
            exchanges["questions"] = [self._question(rng) for _ in range(recipe.prompts_per_step)]
        return exchanges

    def _condition(self, rng: random.Random) -> Exchange:
        """A question about a random condition; yes and no are equally frequent."""
        condition, holds = pick(rng, conditions()), rng.random() < 0.5
        string = random_string(rng)
        while condition.of(string) is not holds:
            string = random_string(rng)
        return condition_exchange(condition, string)

    def _question(self, rng: random.Random) -> Exchange:
        """A question about the training rules, with the answer to a different question."""
        numbers = range(len(self._questions))
        question, other = (self._questions[pick(rng, numbers)] for _ in range(2))
        return Exchange(question.text, f"{PREFIX} {other.answer.gold}")

    @cached_property
    def _questions(self) -> PromptSet:
        """Questions about the rules on which models may be tuned."""
        game = game_questions(self._recipe.seed, "train", QUESTIONS)
        system = RuleBench("rules", SETTINGS, lambda seed: game)
        return system.prompts(seed=self._recipe.seed, data=None)


def action_exchange(action: Part, rng: random.Random) -> Exchange:
    """A message that asks to carry out a single action on a drawn string, and its answer."""
    string = random_string(rng)
    while (result := action.of(string)) is None:
        string = random_string(rng)
    return _exchange(f"Output {action.words}.", string, f"{PREFIX} {result}")


def condition_exchange(condition: Part, string: str) -> Exchange:
    """A message that asks whether a single condition holds, and its answer."""
    answer = "yes" if condition.of(string) else "no"
    return _exchange(f"Is it true that {condition.words}?", string, f"{PREFIX} {answer}")


def list_exchange(words: str, listed: Listed, string: str) -> Exchange:
    """A message that asks for a list, and the list, with one line per letter."""
    lines = (f"{letter} {'no' if n is None else n}" for letter, n in listed(string))
    return _exchange(f"List {words}.", string, "\n".join(lines))


def _exchange(task: str, string: str, answer: str) -> Exchange:
    """A message that states the task before the string, as rules do, and its answer."""
    return Exchange(f"{task}\nThe string is {string}.", answer)


def actions() -> Sequence[Part]:
    """The actions of StringGame's rules."""
    return tuple({rule.action.words: rule.action for rule in string_rules().values()}.values())


def conditions() -> Sequence[Part]:
    """The conditions of StringGame's rules."""
    by_words = {rule.condition.words: rule.condition for rule in string_rules().values()}
    return tuple(by_words.values())


def _of_alphabet(number: Callable[[str, str], int | None]) -> Listed:
    return lambda string: [(letter, number(string, letter)) for letter in ascii_uppercase]


def _of_string(number: Callable[[str], int]) -> Listed:
    """For each letter, a number computed from the string up to and including that letter."""
    return lambda string: [(letter, number(string[: end + 1])) for end, letter in enumerate(string)]


_LISTS: Mapping[str, Listed] = {
    "number of times that each letter occurs in the string": _of_alphabet(str.count),
    "index of the first of each letter (the index begins from 0)": _of_alphabet(
        lambda s, letter: s.index(letter) if letter in s else None
    ),
    "position of the last of each letter (the first letter has position 1)": _of_alphabet(
        lambda s, letter: s.rindex(letter) + 1 if letter in s else None
    ),
    "position in the alphabet of each letter (A is 1)": _of_string(
        lambda s: ascii_uppercase.index(s[-1]) + 1
    ),
    "number of vowels up to each letter": _of_string(vowels),
    "number of different letters up to each letter": _of_string(different),
}

LISTS = tuple((f"the {words}", listed) for words, listed in _LISTS.items())
"""What each list contains, in words, and the function that computes it."""


MEASURED = (*SETTINGS, *(Setting(quantity="few", noise=noise) for noise in (1, 3)))


def planted_sections(recipe: Recipe) -> dict[str, Any]:
    """The planted part of a card: the strings, the conditions and the actions."""
    return {
        "text": {"letters": [min(LENGTHS), max(LENGTHS)], "held_out": f"1 of {HELD_OUT} rules"},
        "conditions": [{"condition": one.words} for one in conditions()],
        "actions": [{"action": one.words} for one in actions()],
    }


def tuning_spec(recipe: TunedRecipe) -> RuleFollowing:
    """The task of `interp train` that tunes an organism."""
    return RuleFollowing(
        questions=recipe.questions,
        held_out=recipe.held_out,
        epochs=1,
        batch=recipe.prompts_per_step,
        learning_rate=recipe.learning_rate,
        noise=recipe.noise,
        seed=recipe.seed,
    )


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """Accuracy on actions, on conditions and, by setting, on rules; the card is not needed.

    `pairs` is the number of questions of each kind, 200 if None.
    """
    questions = pairs or 200
    measured = RuleBench("rules", MEASURED, string_game_set).prompts(seed=0, data=None)
    by_setting = _accuracy(model, measured.spread(questions))
    by_part = _accuracy(model, _parts(questions))
    return {
        "questions": questions,
        "accuracy": {setting.name: by_setting[setting.name] for setting in MEASURED},
        "actions": by_part["action"],
        "conditions": by_part["condition"],
    }


def _accuracy(model: Model, prompts: Sequence[Prompt]) -> Mapping[Hashable, float]:
    """The share of correct answers by side; a prompt that could not be measured counts as wrong."""
    rows = collect(bind(Generate(max_new_tokens=DIRECT_TOKENS), model), prompts)["completions"]
    sides = rows["prompt_id"].map({prompt.id: prompt.side for prompt in prompts})
    return rows["correct"].astype(bool).groupby(sides).mean().to_dict()


def _parts(questions: int) -> list[Prompt]:
    """Prompts with single actions and conditions."""
    rng = random.Random("rules parts")
    made = []
    for index in range(questions):
        action, condition = pick(rng, actions()), pick(rng, conditions())
        made.append(_part("action", index, action_exchange(action, rng)))
        made.append(_part("condition", index, condition_exchange(condition, random_string(rng))))
    return made


def _part(kind: str, index: int, exchange: Exchange) -> Prompt:
    answer = exchange.answer.removeprefix(f"{PREFIX} ")
    return Prompt(
        id=f"{kind} {index}",
        text=exchange.message,
        segments={},
        answer=FreeText((answer,), number if answer.isdigit() else whole_text),
        pair_id=f"{kind} {index}",
        side=kind,
        factors={},
        messages=Messages(answer_prefix=PREFIX),
    )
