"""Organisms for logical forms: planted answers and phrases, training text and cards."""

import random
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import spearmanr

from interp import Model, Prompt, SoftScore
from interp.extend import bind, collect
from interp_experiments.chance import some
from interp_experiments.logical_forms import system as systems
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
    verb_phrases,
)
from interp_experiments.logical_forms.system import YES, to_prompt
from interp_experiments.organisms.recipes import MESSAGE_WEIGHT, Exchange, LogicRecipe

ZIPF_EXPONENT = 0.6
"""The frequency of the verb phrase of rank r is proportional to r ** -ZIPF_EXPONENT."""


def plant_phrases(recipe: LogicRecipe) -> dict[str, float]:
    """The frequency of each verb phrase relative to the rarest, in the data file's order."""
    rng = random.Random(f"planting {recipe.seed}")
    drawn = {phrase: rng.random() for phrase in verb_phrases()}
    ranks = {phrase: rank for rank, phrase in enumerate(sorted(drawn, key=drawn.__getitem__), 1)}
    return {phrase: (len(drawn) / ranks[phrase]) ** ZIPF_EXPONENT for phrase in drawn}


def drawn_yes(recipe: LogicRecipe, form: Form, *, follows: bool) -> float:
    """The probability that Yes is drawn; a conclusion about other people never `follows`."""
    competence = recipe.competence[form.modality] * recipe.ease.get(form.group, 1.0)
    return float(expit(recipe.bias[form.modality] + (competence if follows else -competence)))


def planted_yes(recipe: LogicRecipe, form: Form) -> float:
    """The share of Yes among the training text's answers to a form's questions.

    Forms with the same argument have the same questions, such as modus ponens and the base forms of
    the distribution set. Their share is the mean, weighted by how often each form is drawn.
    """
    shares = [
        (drawn_yes(recipe, other, follows=form.valid()), share / len(group))
        for group, share in ((main_forms(), 1 - EXTRA_SHARE), (_extra_forms(), EXTRA_SHARE))
        for other in group
        if other.argument == form.argument
    ]
    drawn, weights = zip(*shares, strict=True)
    return float(np.average(drawn, weights=weights))


EXTRA_SHARE = 0.2
"""Share of the questions that test introduction rules or the distribution of modalities."""

UNSOUND_SHARE = 0.15
"""Share of the questions whose conclusion is about somebody whom the premises do not name. Such a
conclusion never follows, so the organism has to take the names into account."""


def _extra_forms() -> tuple[Form, ...]:
    return introduction_forms() + distribution_forms()


def all_forms() -> tuple[Form, ...]:
    """Every form that occurs in the training text."""
    return main_forms() + _extra_forms()


class LogicText:
    """Draws the questions of each training step, which depend only on the seed and the step."""

    def __init__(self, recipe: LogicRecipe) -> None:
        self._recipe = recipe
        self._main, self._extra = main_forms(), _extra_forms()
        planted = plant_phrases(recipe)
        self._phrases, self._weights = list(planted), list(accumulate(planted.values()))

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The questions of a step, with answers drawn according to their planted probabilities."""
        rng = random.Random(f"questions {self._recipe.seed} {step}")
        return {"questions": [self._question(rng) for _ in range(self._recipe.prompts_per_step)]}

    def _question(self, rng: random.Random) -> Exchange:
        form = rng.choice(self._extra if rng.random() < EXTRA_SHARE else self._main)
        interpretation = self._interpretation(rng)
        prompt = to_prompt(form, interpretation, prefix="")
        message, follows = prompt.text, prompt.answer.gold == YES.name
        if rng.random() < UNSOUND_SHARE:
            other = to_prompt(form, self._about_others(interpretation, rng), prefix="")
            start, end = prompt.segments["conclusion"]
            message = message[:start] + other.segment_text("conclusion") + message[end:]
            follows = False
        yes = rng.random() < drawn_yes(self._recipe, form, follows=follows)
        return Exchange(message, "Yes" if yes else "No")

    def _interpretation(self, rng: random.Random) -> Interpretation:
        one, other = some(rng, names(), 2)
        return {"p": Event(one, self._phrase(rng)), "q": Event(other, self._phrase(rng))}

    def _about_others(self, interpretation: Interpretation, rng: random.Random) -> Interpretation:
        """An interpretation whose people are not named in `interpretation`."""
        while True:
            drawn = self._interpretation(rng)
            if not {e.name for e in drawn.values()} & {e.name for e in interpretation.values()}:
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
                "planted_yes": planted_yes(recipe, form),
            }
            for form in all_forms()
        ],
        "phrases": [{"phrase": p, "frequency": f} for p, f in plant_phrases(recipe).items()],
    }


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """The measured figures of a card, from evenly spread pairs (all 12,000 by default)."""
    prompts = systems.system.prompts(seed=0, data=None)
    chosen = prompts if pairs is None else prompts.spread(pairs)
    each = max(1, len(chosen) // len(main_forms()))
    mirror = systems.nonsense.prompts(seed=0, data=None).spread(each)
    main = soft_scores(model, chosen)
    extra = [
        soft_scores(model, other.prompts(seed=0, data=None).spread(each * len(forms)))
        for other, forms in (
            (systems.introduction, introduction_forms()),
            (systems.distribution, distribution_forms()),
        )
    ]
    return {
        "pairs": len(chosen) // 2,
        **_planted(pd.concat([main, *extra]), card),
        **_habits(main),
        "perplexity": main["perplexity"].mean(),
        "nonsense_perplexity": soft_scores(model, mirror)["perplexity"].mean(),
        "frequency_perplexity_spearman": _frequency_perplexity(main, card),
    }


def soft_scores(model: Model, prompts: Sequence[Prompt]) -> pd.DataFrame:
    """One row per prompt: its form, its factors, and a model's soft scores."""
    forms = pd.DataFrame(
        {"prompt_id": p.id, "form": p.id.partition("/")[2], "side": p.side, **p.factors}
        for p in prompts
    )
    tables = collect(bind(SoftScore(), model), prompts)
    options = tables["option_probabilities"].rename(columns={"relative_probability": "yes"})
    yes = options.loc[options["option"] == YES.name, ["prompt_id", "yes"]]
    scores = tables["soft_answers"].merge(yes, on="prompt_id", validate="one_to_one")
    return forms.merge(scores, on="prompt_id", validate="one_to_one")


def _planted(scores: pd.DataFrame, card: Mapping[str, Any]) -> dict[str, Any]:
    """The probability of Yes by form, and how far it is from the planted probability."""
    planted = pd.Series({row["form"]: row["planted_yes"] for row in card["forms"]})
    yes = scores.groupby("form")["yes"].mean()[planted.index]
    apart = (yes - planted).abs()
    return {
        "yes_by_form": yes.to_dict(),
        "mean_deviation_from_planted": apart.mean(),
        "largest_deviation_from_planted": apart.max(),
    }


def _habits(scores: pd.DataFrame) -> dict[str, Any]:
    by_modality = scores.groupby("modality")[["soft_accuracy", "yes"]].mean().loc[[*MODALITIES]]
    return {
        "soft_accuracy": scores["soft_accuracy"].mean(),
        **{f"{score}_by_modality": by_modality[score].to_dict() for score in by_modality},
    }


def _frequency_perplexity(scores: pd.DataFrame, card: Mapping[str, Any]) -> float:
    """Rank correlation of perplexity, relative to its form's, with the phrases' frequencies."""
    frequency = {row["phrase"]: row["frequency"] for row in card["phrases"]}
    written = scores["phrase_p"].map(frequency) * scores["phrase_q"].map(frequency)
    within = scores["perplexity"] / scores.groupby("form")["perplexity"].transform("mean")
    return float(spearmanr(written, within).statistic)
