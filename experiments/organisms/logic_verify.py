"""Measure the figures on the card of a logical-forms organism from its saved weights."""

from collections.abc import Sequence
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
    distribution_forms,
    introduction_forms,
    main_forms,
)
from interp_experiments.logical_forms.prompts import YES
from interp_experiments.logical_forms.system import distribution, introduction, nonsense, system
from interp_experiments.organisms.card import read_card


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: how many prompt pairs to score, spread evenly; all 12,000 if None.
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
    """The probability of Yes by form, and how far it is from what was planted."""
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

    Taken without the forms' own differences of perplexity.
    """
    frequency = {row["phrase"]: row["frequency"] for row in card["phrases"]}
    told = scores["phrase_p"].map(frequency) * scores["phrase_q"].map(frequency)
    within = scores["perplexity"] / scores.groupby("form")["perplexity"].transform("mean")
    return round(float(spearmanr(told, within).statistic), 4)
