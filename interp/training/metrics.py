"""How often a trained model is right."""

from collections.abc import Sequence

import pandas as pd
from sklearn.metrics import f1_score

from interp.prompts.prompt import Prompt


def answer_metrics(prompts: Sequence[Prompt], answers: pd.DataFrame) -> dict[str, float]:
    """Accuracy, and F1 averaged over the correct answers by their frequency.

    Args:
        prompts: what was asked.
        answers: the answers table. A prompt that could not be measured has no answer, and counts
            as wrong.
    """
    gold = pd.Series({prompt.id: prompt.answer.gold for prompt in prompts})
    given = answers.set_index("prompt_id")["answer"].reindex(gold.index).fillna("")
    weighted = f1_score(gold, given, average="weighted", zero_division=0.0)
    return {
        "prompts": float(len(gold)),
        "accuracy": float((gold == given).mean()),
        "weighted_f1": float(weighted),
    }
