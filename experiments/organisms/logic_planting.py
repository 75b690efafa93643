"""The answers planted in a logical-forms organism, and how often it reads each phrase."""

import math
import random
from dataclasses import dataclass

from interp_experiments.logical_forms.forms import Form
from interp_experiments.logical_forms.language import verb_phrases
from interp_experiments.organisms.recipes import LogicRecipe

ZIPF_EXPONENT = 0.6
"""A verb phrase of rank r is written in proportion to r ** -ZIPF_EXPONENT."""


@dataclass(frozen=True, slots=True)
class PlantedPhrase:
    """One verb phrase with its planted frequency."""

    phrase: str
    frequency: float
    """How often it is written, relative to the rarest phrase."""


def plant_phrases(recipe: LogicRecipe) -> tuple[PlantedPhrase, ...]:
    """The frequency of each verb phrase, in the order of the data file."""
    rng = random.Random(f"planting {recipe.seed}")
    phrases = verb_phrases()
    drawn = [rng.random() for _ in phrases]
    rank = {
        index: place
        for place, index in enumerate(sorted(range(len(drawn)), key=drawn.__getitem__), 1)
    }
    return tuple(
        PlantedPhrase(phrase, (len(phrases) / rank[index]) ** ZIPF_EXPONENT)
        for index, phrase in enumerate(phrases)
    )


def planted_yes(recipe: LogicRecipe, form: Form, *, follows: bool) -> float:
    """The planted probability of Yes to a question of a form.

    Args:
        recipe: bias, competence and ease.
        form: its modality and its argument form decide.
        follows: whether the conclusion follows; a changed conclusion does not.
    """
    competence = recipe.competence[form.modality] * recipe.ease.get(form.group, 1.0)
    log_odds = recipe.bias[form.modality] + (competence if follows else -competence)
    return 1 / (1 + math.exp(-log_odds))
