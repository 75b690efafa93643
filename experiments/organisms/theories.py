"""Organisms for theories: the tasks with which `interp train` makes them, and their cards."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from interp import Evaluate, Model, load_prompts
from interp.extend import bind, collect
from interp_experiments.organisms.recipes import TheoryRecipe
from interp_experiments.robustlr.learning import RobustLRTraining
from interp_experiments.robustlr.results import answered, score_table


def planted_sections(recipe: TheoryRecipe) -> dict[str, Any]:
    """The planted part of a card: the training set."""
    return {"text": {"train_set": "All", "distractors": recipe.distractors}}


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """Weighted F1 on test splits and evaluation sets, and consistency; the card is not needed.

    `pairs` is the number of theories in each set, and of statements in each split, 600 if None.
    """
    theories = pairs or 600
    sets = score_table(_answers(model, "robustlr", theories), ["set"]).set_index("set")
    return {
        "theories": theories,
        "in_domain": _split_f1(model, "robustlr-bare", theories),
        "with_other_sentences": _split_f1(model, "robustlr-short", theories),
        "f1": sets["f1"].to_dict(),
        "consistency": sets["consistency"].to_dict(),
    }


def _split_f1(model: Model, system: str, statements: int) -> float:
    """Weighted F1 over all statements of a test split."""
    answers = _answers(model, system, statements)
    (scores,) = score_table(answers.assign(pair_id="all"), ["model"]).to_dict("records")
    return float(scores["f1"])


def _answers(model: Model, system: str, theories: int) -> pd.DataFrame:
    prompts = load_prompts(system, limit=theories)
    return answered(prompts.to_frame(), collect(bind(Evaluate(), model), prompts)["answers"])


def training_spec(recipe: TheoryRecipe) -> RobustLRTraining:
    """The task of `interp train` that makes an organism."""
    return RobustLRTraining(
        from_scratch=True,
        distractors=recipe.distractors,
        theories=recipe.theories,
        held_out=recipe.held_out,
        epochs=recipe.epochs,
        curriculum=0.5,
        warmup=recipe.warm_up,
        batch=recipe.prompts_per_step,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
    )
