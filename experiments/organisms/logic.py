"""Organisms for logical forms: planted answers and phrases, training text, measured card."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import spearmanr

from interp.measurements.core import bind, collect
from interp.measurements.specs import SoftScore
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp_experiments.logical_forms.forms import (
    MODALITIES,
    Form,
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.language import (
    Event,
    Interpretation,
    names,
    two_of,
    verb_phrases,
)
from interp_experiments.logical_forms.system import YES, to_prompt
from interp_experiments.logical_forms.system import distribution, introduction, nonsense, system
from interp_experiments.organisms.card import read_card
from interp_experiments.organisms.recipes import MESSAGE_WEIGHT, Exchange, LogicRecipe

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
        form: only its modality and its argument form matter.
        follows: whether the conclusion follows; a changed conclusion does not.
    """
    competence = recipe.competence[form.modality] * recipe.ease.get(form.group, 1.0)
    log_odds = recipe.bias[form.modality] + (competence if follows else -competence)
    return 1 / (1 + math.exp(-log_odds))


EXTRA_SHARE = 0.2
"""Share of the questions about introduction rules and the distribution of modalities."""

UNSOUND_SHARE = 0.15
"""Share of the questions with a conclusion about somebody whom the premises do not name, which
never follows: the organism has to read the names."""


def all_forms() -> tuple[Form, ...]:
    """Every form in the training text."""
    return main_forms() + introduction_forms() + distribution_forms()


class LogicText:
    """Draws the questions of each training step; they depend only on seed and step."""

    def __init__(self, recipe: LogicRecipe) -> None:
        self._recipe = recipe
        self._main = main_forms()
        self._extra = introduction_forms() + distribution_forms()
        planted = plant_phrases(recipe)
        self._phrases = [item.phrase for item in planted]
        self._weights = list(accumulate(item.frequency for item in planted))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The questions of a step, with answers drawn with their planted probability."""
        rng = random.Random(f"questions {self._recipe.seed} {step}")
        return {"questions": [self._question(rng) for _ in range(self._recipe.prompts_per_step)]}

    def _question(self, rng: random.Random) -> Exchange:
        form = rng.choice(self._extra if rng.random() < EXTRA_SHARE else self._main)
        own = self._interpretation(rng)
        prompt = to_prompt(form, own, prefix="")
        message, follows = prompt.text, prompt.answer.gold == YES.name
        if rng.random() < UNSOUND_SHARE:
            other = to_prompt(form, self._about_others(own, rng), prefix="")
            start, end = prompt.segments["conclusion"]
            message = message[:start] + other.segment_text("conclusion") + message[end:]
            follows = False
        yes = rng.random() < planted_yes(self._recipe, form, follows=follows)
        return Exchange(message, "Yes" if yes else "No")

    def _interpretation(self, rng: random.Random) -> Interpretation:
        one, other = two_of(names(), rng)
        return {"p": Event(one, self._phrase(rng)), "q": Event(other, self._phrase(rng))}

    def _about_others(self, own: Interpretation, rng: random.Random) -> Interpretation:
        """An interpretation with people whom `own` does not name."""
        while True:
            drawn = self._interpretation(rng)
            if not {e.name for e in drawn.values()} & {e.name for e in own.values()}:
                return drawn

    def _phrase(self, rng: random.Random) -> str:
        (phrase,) = rng.choices(self._phrases, cum_weights=self._weights)
        return phrase


def planted_sections(recipe: LogicRecipe) -> dict[str, Any]:
    """The planted part of a card: the parameters of the text, each form, and each phrase."""
    return {
        "text": {
            "zipf_exponent": ZIPF_EXPONENT,
            "extra_share": EXTRA_SHARE,
            "unsound_share": UNSOUND_SHARE,
            "message_weight": MESSAGE_WEIGHT,
        },
        "forms": [
            {
                "form": form.id,
                "formula": form.sequent(),
                "gold": "Yes" if form.valid() else "No",
                "planted_yes": round(planted_yes(recipe, form, follows=form.valid()), 4),
            }
            for form in all_forms()
        ],
        "phrases": [
            {"phrase": item.phrase, "frequency": round(item.frequency, 4)}
            for item in plant_phrases(recipe)
        ],
    }


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: number of prompt pairs to score, spread evenly; all 12,000 if None.
    """
    card = read_card(folder)
    prompts = system.prompts(seed=0, data=None)
    chosen = prompts if pairs is None else prompts.spread(pairs)
    each = max(1, len(chosen) // len(main_forms()))
    mirror = nonsense.prompts(seed=0, data=None).spread(each)
    main = soft_scores(model, chosen)
    extra = [
        soft_scores(model, other.prompts(seed=0, data=None).spread(each * len(forms)))
        for other, forms in (
            (introduction, introduction_forms()),
            (distribution, distribution_forms()),
        )
    ]
    return {
        "pairs": len(chosen) // 2,
        **_planted(pd.concat([main, *extra]), card),
        **_habits(main),
        "perplexity": round(float(main["perplexity"].mean()), 4),
        "nonsense_perplexity": round(float(soft_scores(model, mirror)["perplexity"].mean()), 4),
        "frequency_perplexity_spearman": _frequency_perplexity(main, card),
    }


def soft_scores(model: Model, prompts: Sequence[Prompt]) -> pd.DataFrame:
    """One row per prompt: its form and factors with the soft scores of a model."""
    forms = pd.DataFrame(
        [
            {"prompt_id": p.id, "form": p.id.partition("/")[2], "side": p.side, **p.factors}
            for p in prompts
        ]
    )
    tables = collect(bind(SoftScore(), model), prompts)
    options = tables["option_probabilities"].rename(columns={"relative_probability": "yes"})
    yes = options.loc[options["option"] == YES.name, ["prompt_id", "yes"]]
    scores = tables["soft_answers"].merge(yes, on="prompt_id", validate="one_to_one")
    return forms.merge(scores, on="prompt_id", validate="one_to_one")


def _planted(scores: pd.DataFrame, card: dict[str, Any]) -> dict[str, Any]:
    """The probability of Yes by form, and its deviation from the planted one."""
    yes = scores.groupby("form")["yes"].mean()
    planted = pd.Series({row["form"]: row["planted_yes"] for row in card["forms"]})
    apart = (yes - planted).abs()
    return {
        "yes_by_form": {form: round(float(yes[form]), 4) for form in planted.index},
        "mean_deviation_from_planted": round(float(apart.mean()), 4),
        "largest_deviation_from_planted": round(float(apart.max()), 4),
    }


def _habits(scores: pd.DataFrame) -> dict[str, Any]:
    by_modality = scores.groupby("modality")[["soft_accuracy", "yes"]].mean()
    return {
        "soft_accuracy": round(float(scores["soft_accuracy"].mean()), 4),
        **{
            f"{score}_by_modality": {
                modality: round(float(by_modality[score].loc[modality]), 4)
                for modality in MODALITIES
            }
            for score in ("soft_accuracy", "yes")
        },
    }


def _frequency_perplexity(scores: pd.DataFrame, card: dict[str, Any]) -> float:
    """Rank correlation of a prompt's perplexity with how often its two phrases were written.

    Perplexities are divided by the mean of their form.
    """
    frequency = {row["phrase"]: row["frequency"] for row in card["phrases"]}
    written = scores["phrase_p"].map(frequency) * scores["phrase_q"].map(frequency)
    within = scores["perplexity"] / scores.groupby("form")["perplexity"].transform("mean")
    return round(float(spearmanr(written, within).statistic), 4)
