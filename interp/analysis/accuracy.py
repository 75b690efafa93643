"""Accuracy by side and by pair (paper, Section 3.4, formulas 1 to 3)."""

import pandas as pd


def accuracies(answers: pd.DataFrame, prompts: pd.DataFrame, sides: tuple[str, ...]) -> pd.Series:
    """Accuracies of one model.

    Args:
        answers: the model's rows of the answers table.
        prompts: the prompts table, with prompt_id, pair_id and side.
        sides: names of the sides of a pair.

    Returns:
        paired_accuracy (1): share of pairs with both sides correct; one {side}_accuracy for each
        side (2, 3): share of its prompts that are correct; prompts: how many there are. A prompt
        whose most probable token is no answer, or that has an error, counts as wrong.
    """
    joined = prompts[["prompt_id", "pair_id", "side"]].merge(
        answers[["prompt_id", "correct"]], on="prompt_id", validate="one_to_one"
    )
    correct = joined["correct"].astype(bool)
    by_side = correct.groupby(joined["side"]).mean()
    values = {"paired_accuracy": correct.groupby(joined["pair_id"]).all().mean()}
    values |= {f"{side}_accuracy": by_side.loc[side] for side in sides}
    return pd.Series({**values, "prompts": len(joined)}, dtype=object)


def accuracy_table(
    answers: pd.DataFrame, prompts: pd.DataFrame, sides: tuple[str, ...]
) -> pd.DataFrame:
    """One row a model: model, paired_accuracy, accuracy of each side, prompts."""
    rows = {
        model: accuracies(rows, prompts, sides)
        for model, rows in answers.groupby("model", sort=False)
    }
    return pd.DataFrame(rows).T.rename_axis("model").reset_index().infer_objects()
