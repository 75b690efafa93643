"""The training text of an organism of the logical forms, drawn step by step from one seed."""

import random
from itertools import accumulate

from interp_experiments.logical_forms.forms import (
    Form,
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.language import Event, Interpretation, names, two_of
from interp_experiments.logical_forms.prompts import YES, to_prompt
from interp_experiments.organisms.lessons import Exchange
from interp_experiments.organisms.logic_planting import plant_phrases, planted_yes
from interp_experiments.organisms.recipes import LogicRecipe

EXTRA_SHARE = 0.2
"""Share of the questions about introduction rules and the distribution of modalities."""

UNSOUND_SHARE = 0.15
"""Share of the questions whose conclusion is about somebody whom the premises do not name and
never follows. The organism therefore has to read the names."""


def all_forms() -> tuple[Form, ...]:
    """Every form that is trained on."""
    return main_forms() + introduction_forms() + distribution_forms()


class LogicText:
    """Draws the questions of each training step; they depend on seed and step alone."""

    def __init__(self, recipe: LogicRecipe) -> None:
        self._recipe = recipe
        self._main = main_forms()
        self._extra = introduction_forms() + distribution_forms()
        planted = plant_phrases(recipe)
        self._phrases = [item.phrase for item in planted]
        self._weights = list(accumulate(item.frequency for item in planted))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The questions of a step, with answers drawn with the planted probability."""
        rng = random.Random(f"questions {self._recipe.seed} {step}")
        return {"questions": [self._question(rng) for _ in range(self._recipe.prompts_per_step)]}

    def _question(self, rng: random.Random) -> Exchange:
        form = rng.choice(self._extra if rng.random() < EXTRA_SHARE else self._main)
        told = self._interpretation(rng)
        prompt = to_prompt(form, told, prefix="")
        message, follows = prompt.text, prompt.answer.gold == YES.name
        if rng.random() < UNSOUND_SHARE:
            other = to_prompt(form, self._about_others(told, rng), prefix="")
            start, end = prompt.segments["conclusion"]
            message = message[:start] + other.segment_text("conclusion") + message[end:]
            follows = False
        yes = rng.random() < planted_yes(self._recipe, form, follows=follows)
        return Exchange(message, "Yes" if yes else "No")

    def _interpretation(self, rng: random.Random) -> Interpretation:
        one, other = two_of(names(), rng)
        return {"p": Event(one, self._phrase(rng)), "q": Event(other, self._phrase(rng))}

    def _about_others(self, told: Interpretation, rng: random.Random) -> Interpretation:
        """An interpretation by people that `told` does not name."""
        while True:
            drawn = self._interpretation(rng)
            if not {e.name for e in drawn.values()} & {e.name for e in told.values()}:
                return drawn

    def _phrase(self, rng: random.Random) -> str:
        (phrase,) = rng.choices(self._phrases, cum_weights=self._weights)
        return phrase
