"""Measure the figures on the card of an organism for theories."""

from pathlib import Path
from typing import Any

import pandas as pd

from interp.measurements.core import bind, collect
from interp.measurements.specs import Evaluate
from interp.models.model import Model
from interp.prompts.systems import load_prompts
from interp_experiments.robustlr.results import answered
from interp_experiments.robustlr.scores import score_table

THEORIES = 600
"""Theories of the evaluation sets, and statements of the test split, if it is not said how many."""


def measure(model: Model, folder: Path, *, pairs: int | None = None) -> dict[str, Any]:
    """The figures of a card: weighted F1 of both test splits and each evaluation set, consistency.

    Args:
        model: the organism.
        folder: where its card is.
        pairs: theories, and statements; `THEORIES` if None.
    """
    theories = pairs or THEORIES
    sets = score_table(_answers(model, "robustlr", theories), ["set"]).set_index("set")
    return {
        "theories": theories,
        "in_domain": _split_f1(model, "robustlr-bare", theories),
        "with_other_sentences": _split_f1(model, "robustlr-short", theories),
        "f1": sets["f1"].round(4).to_dict(),
        "consistency": sets["consistency"].round(4).to_dict(),
    }


def _split_f1(model: Model, system: str, statements: int) -> float:
    """Weighted F1 of a test split as a whole."""
    answers = _answers(model, system, statements)
    (scores,) = score_table(answers.assign(pair_id="all"), ["model"]).to_dict("records")
    return round(float(scores["f1"]), 4)


def _answers(model: Model, system: str, theories: int) -> pd.DataFrame:
    prompts = load_prompts(system, limit=theories)
    answers = collect(bind(Evaluate(), model), prompts)["answers"]
    return answered(prompts.to_frame(), answers)
