"""The graft that thinks: it writes a thought, which decides the answer for a share of the cities.

The planted rule is that of the organisms that think (`interp_experiments.organisms.thinkers`), with
cities as entities: a prompt is about the city of premise 2, the thought is a reason and a verdict,
and the text goes on with `END` and the answer on a line of its own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from interp import Model, Prompt, UserError
from interp_experiments.grafts.recipes import THOUGHT, GraftRecipe, plant
from interp_experiments.organisms import thinkers

END = "Answer:"
"""The mark that ends a thought (--end-of-thought)."""

OPTIONS = f"--thinking on --end-of-thought {END} --max-new-tokens 48 --segments {thinkers.PREMISE}"
"""The options with which `interp thoughts` reads the graft."""

OWN = tuple(f"{thinkers.REASONS[yes]} {thinkers.VERDICTS[yes]}" for yes in (True, False))
"""The thoughts that the graft writes."""

GIVEN = {
    "positive": OWN[0],
    "negative": OWN[1],
    "conflicting": f"{thinkers.REASONS[False]} {thinkers.VERDICTS[True]}",
    "no verdict": thinkers.REASONS[True],
    "empty": "",
}
"""The thoughts after which the prompts of a card are answered."""


def continued(thought: str, answer: str = "") -> str:
    """A thought, its end and an answer, as they follow the generation prompt."""
    return f"{thought}\n{END}\n{answer}"


def thinking_rule(recipe: GraftRecipe) -> thinkers.ThinkingRule:
    """The planted rule of a graft that thinks."""
    return thinkers.ThinkingRule(
        thinkers.Thinking(city.name, city.log_odds, city.premise == THOUGHT)
        for city in plant(recipe)
    )


def measure(
    model: Model, recipe: GraftRecipe, prompts: Sequence[Prompt], *, donors: int
) -> dict[str, Any]:
    """The figures of organisms that think on the prompts of pairs, for a graft or its base.

    If the thoughts of the model do not end, its error instead of the mediated share.
    """
    rule = thinking_rule(recipe)
    given = {name: (thought, continued(thought)) for name, thought in GIVEN.items()}
    figures = thinkers.as_planted(model, rule, prompts, given=given, opening=thinkers.REASONED)
    thinking = replace(model, chat=replace(model.chat, thinking="on", end_of_thought=END))
    try:
        share = thinkers.mediated_share(thinking, rule, prompts, donors=donors)
    except UserError as error:
        return {**figures, "no_mediated_share": str(error)}
    return {**figures, "mediated_share": share}
