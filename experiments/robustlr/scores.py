"""The scores of theories: weighted F1, strict consistency, and what constant guesses reach.

The authors' code scores every theory, a base and its variants, by scikit-learn's weighted F1,
rounds it to two decimals, and averages over theories. Here the mean is that of unrounded scores;
`f1_rounded` is theirs. A slice of the data (a group, a label) is scored theory by theory, too.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from interp.statistics.proportions import proportions
from interp_experiments.robustlr.language import LABELS, Verdict

OF_BASE = ("always the base's label", "always the base's negated")
"""Guesses that know the label of each theory's base alone."""

BASELINES = (*(f"always {label}" for label in LABELS), *OF_BASE)
"""Guesses that read nothing, and those."""


def weighted_f1(
    gold: Sequence[str], answer: Sequence[str], theory: Int[np.ndarray, " instances"]
) -> Float[np.ndarray, " theories"]:
    """The F1 of each label, weighted by its share among the correct answers, of each theory.

    Args:
        gold: the correct labels.
        answer: what was answered; anything but a label counts as wrong.
        theory: the number of each instance's theory, from 0 on.
    """
    right, said = np.asarray(gold, dtype=object), np.asarray(answer, dtype=object)
    theories = int(theory.max(initial=-1)) + 1
    total = np.zeros(theories)
    for label in LABELS:
        of_label, called = right == label, said == label
        support, predicted, hits = (
            np.bincount(theory, weights=which, minlength=theories)
            for which in (of_label, called, of_label & called)
        )
        # 2 precision recall / (precision + recall); a label that is not in the gold has no weight.
        total += support * 2 * hits / np.maximum(support + predicted, 1)
    return total / np.bincount(theory, minlength=theories)


def theory_scores(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row per combination of `by` and theory: f1, and consistent (all answers are right).

    Args:
        rows: one row per model and instance: model, pair_id, gold, answer, and the columns of `by`.
        by: the columns whose combinations of values are scored separately.
    """
    keys = list(dict.fromkeys([*by, "pair_id"]))
    grouped = rows.groupby(keys, sort=False, observed=True)
    scores = grouped.size().reset_index()[keys]
    number = grouped.ngroup().to_numpy()
    f1 = weighted_f1(rows["gold"].tolist(), rows["answer"].tolist(), number)
    wrong = np.bincount(number, weights=(rows["gold"] != rows["answer"]), minlength=len(scores))
    order = grouped.ngroup().drop_duplicates().to_numpy()
    return scores.assign(f1=f1[order], consistent=(wrong == 0)[order])


def score_table(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row per combination of `by`: the mean over theories of each score, with 95% intervals.

    Columns are those of `by`, f1, f1_low, f1_high, f1_rounded (as the authors' code has it),
    consistency (the share of theories with every answer right) with its ends, and theories. A
    theory is one trial; intervals are those of `interp.statistics.proportions` for clusters, which
    follow the spread of the scores, and are undefined for one theory.

    How often the 95% interval held the mean, of 1,000 samples of theories as organism/theories
    answers them, and its mean width; in brackets Student's interval, and Wilson's for so many
    trials, which ignores that scores vary less than right and wrong do::

        theories  C-CS, mean 0.23                         N-CS, mean 0.31
        7         1.00, 0.32 (0.85, 0.12) (1.00, 0.54)    1.00, 0.32 (0.50, 0.11) (1.00, 0.57)
        20        0.99, 0.14 (0.91, 0.06) (1.00, 0.35)    1.00, 0.14 (0.85, 0.07) (1.00, 0.38)
        40        0.99, 0.08 (0.94, 0.04) (1.00, 0.25)    0.98, 0.08 (0.92, 0.05) (1.00, 0.28)
        100       0.97, 0.04 (0.94, 0.03) (1.00, 0.16)    0.97, 0.04 (0.94, 0.03) (1.00, 0.18)

    Args:
        rows: as `theory_scores`.
        by: the columns whose combinations of values are scored separately.
    """
    theories = theory_scores(rows, by)
    shares = proportions(theories, values=["f1", "consistent"], by=by, cluster="pair_id")
    f1, consistent = (
        shares[shares["measure"] == measure].set_index(list(by)) for measure in ("f1", "consistent")
    )
    rounded = theories.assign(f1=theories["f1"].round(2)).groupby(list(by), sort=False)["f1"].mean()
    table = pd.DataFrame(
        {
            "f1": f1["share"],
            "f1_low": f1["low"],
            "f1_high": f1["high"],
            "f1_rounded": rounded.round(2),
            "consistency": consistent["share"],
            "consistency_low": consistent["low"],
            "consistency_high": consistent["high"],
            "theories": f1["n"],
        }
    )
    return table.loc[f1.index].reset_index()


def with_baselines(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with those of constant guesses below; `source` is "measured" or "baseline"."""
    prompts = rows.drop_duplicates("prompt_id")
    base = prompts["base_label"]
    said = [pd.Series(label, base.index) for label in LABELS] + [base, base.map(_negated)]
    baselines = [
        prompts.assign(model=name, answer=guess)
        for name, guess in zip(BASELINES, said, strict=True)
    ]
    return pd.concat(
        [
            rows.assign(source="measured"),
            pd.concat(baselines, ignore_index=True).assign(source="baseline"),
        ],
        ignore_index=True,
    )


def _negated(label: str) -> str:
    return Verdict(label).negated.value
