"""Counts that could give a label away without reasoning (Section 4.3, Figure 8)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from interp_experiments.robustlr.instances import Instance
from interp_experiments.robustlr.language import LABELS, Literal, Operator, Rule


def _with_negation(literals: Iterable[Literal]) -> bool:
    return not all(literal.positive for literal in literals)


def _joined_by(rule: Rule, operator: Operator) -> bool:
    return rule.operator == operator and len(rule.body) > 1


FEATURES: Mapping[str, Callable[[Instance], int]] = {
    "rules": lambda one: len(one.theory.rules),
    "facts": lambda one: len(one.theory.facts),
    "facts with negation": lambda one: sum(not fact.positive for fact in one.theory.facts),
    "rules with negation": lambda one: sum(_with_negation(r.literals) for r in one.theory.rules),
    "rules with conjunction": lambda one: sum(
        _joined_by(rule, "and") or len(rule.head) > 1 for rule in one.theory.rules
    ),
    "rules with disjunction": lambda one: sum(_joined_by(rule, "or") for rule in one.theory.rules),
    "statements with negation": lambda one: int(not one.statement.positive),
}
"""The seven features of Appendix D."""


def feature_table(instances: Sequence[Instance]) -> pd.DataFrame:
    """One row per feature and value: the share of each label among its instances, and n."""
    rows = []
    for feature, count in FEATURES.items():
        counts: Counter[tuple[int, str]] = Counter(
            (count(instance), instance.label.value) for instance in instances
        )
        for value in sorted({value for value, _ in counts}):
            of_labels = [counts[value, label] for label in LABELS]
            n = sum(of_labels)
            shares = {label: share / n for label, share in zip(LABELS, of_labels, strict=True)}
            rows.append({"feature": feature, "value": value, **shares, "n": n})
    return pd.DataFrame(rows)


def guess_table(features: pd.DataFrame) -> pd.DataFrame:
    """One row per feature: how often the best guess from its value alone is right.

    Columns are feature, accuracy, baseline (the share of the most frequent label, the accuracy
    without the feature), gain (their difference) and n.

    Args:
        features: what `feature_table` gives.
    """
    rows = []
    for feature, values in features.groupby("feature", sort=False):
        counts = values[list(LABELS)].mul(values["n"], axis=0)
        n = values["n"].sum()
        accuracy, baseline = counts.max(axis=1).sum() / n, counts.sum().max() / n
        rows.append(
            {
                "feature": feature,
                "accuracy": accuracy,
                "baseline": baseline,
                "gain": accuracy - baseline,
                "n": n,
            }
        )
    return pd.DataFrame(rows)
