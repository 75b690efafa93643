"""Measure the figures on the card of an organism for rules."""

import random
from pathlib import Path
from typing import Any

from interp.measurements.core import bind, collect
from interp.measurements.specs import Generate
from interp.models.model import Model
from interp.prompts.answers import FreeText, whole_text
from interp.prompts.messages import Messages
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp_experiments.chance import pick
from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.rule_text import (
    SETTINGS,
    action_exchange,
    actions,
    condition_exchange,
    conditions,
)
from interp_experiments.rulebench.answers.numbers import number
from interp_experiments.rulebench.prompts import PREFIX
from interp_experiments.rulebench.settings import DIRECT_TOKENS, Setting
from interp_experiments.rulebench.string_rules import random_string
from interp_experiments.rulebench.system import RuleBench, string_game_set

QUESTIONS = 200
"""Questions of each kind if it is not said how many."""

MEASURED = (*SETTINGS, *(Setting(quantity="few", noise=noise) for noise in (1, 3)))


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card: accuracy on held-out rules by setting, and on parts of rules.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: questions of each kind; `QUESTIONS` if None.
    """
    questions = pairs or QUESTIONS
    asked = RuleBench("rules", MEASURED, string_game_set).prompts(seed=0, data=None)
    prompts = asked.spread(questions)
    right = _right(model, prompts)
    by_setting = {
        setting.name: [right[p.id] for p in prompts if p.side == setting.name]
        for setting in MEASURED
    }
    parts = _right(model, PromptSet.of(_parts(questions)))
    return {
        "questions": questions,
        "accuracy": {name: _mean(found) for name, found in by_setting.items()},
        "actions": _mean([found for id_, found in parts.items() if id_.startswith("action")]),
        "conditions": _mean([found for id_, found in parts.items() if id_.startswith("condition")]),
    }


def _right(model: Model, prompts: PromptSet) -> dict[str, bool]:
    """Whether each prompt is answered correctly; one that could not be measured is not."""
    rows = collect(bind(Generate(max_new_tokens=DIRECT_TOKENS), model), prompts)["completions"]
    return dict(zip(rows["prompt_id"], rows["correct"].astype(bool), strict=True))


def _mean(values: list[bool]) -> float:
    return round(sum(values) / len(values), 4)


def _parts(questions: int) -> list[Prompt]:
    """Actions and conditions by themselves."""
    rng = random.Random("rules parts")
    made = []
    for index in range(questions):
        action, condition = pick(rng, actions()), pick(rng, conditions())
        string = random_string(rng)
        while (result := action.result(string)) is None:
            string = random_string(rng)
        made.append(_part(f"action {index}", action_exchange(action, string, result)))
        made.append(_part(f"condition {index}", condition_exchange(condition, random_string(rng))))
    return made


def _part(id_: str, exchange: Exchange) -> Prompt:
    answer = exchange.answer.removeprefix(f"{PREFIX} ")
    return Prompt(
        id=id_,
        text=exchange.message,
        segments={},
        answer=FreeText((answer,), number if answer.isdigit() else whole_text),
        pair_id=id_,
        side="part",
        factors={},
        messages=Messages(answer_prefix=PREFIX),
    )
