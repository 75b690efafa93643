"""Scores against scikit-learn."""

import random
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from interp_experiments.robustlr import results
from interp_experiments.robustlr.language import LABELS


def made_up(theories=40, seed=0):
    rng = random.Random(seed)
    rows = [
        {
            "model": model,
            "prompt_id": f"{number}/{member}",
            "pair_id": f"theory {number}",
            "set": ("C-CS", "D-CS")[number % 2],
            "group": "base" if member == 0 else "conj",
            "base_label": ("True", "False")[number % 2],
            "gold": LABELS[(number + member * 7) % 3],
            "answer": rng.choice([*LABELS, ""]),
        }
        for model in ("one", "other")
        for number in range(theories)
        for member in range(2 + number % 6)
    ]
    rng.shuffle(rows)
    return pd.DataFrame(rows)


def by_sklearn(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return f1_score(rows["gold"], rows["answer"], average="weighted", zero_division=0)


@pytest.mark.quick(1)
@pytest.mark.parametrize("by", [["model"], ["model", "set", "group"], ["model", "gold"]])
def test_the_f1_of_every_theory_is_scikit_learns(by):
    rows = made_up()
    found = results.theory_scores(rows, by).set_index([*by, "pair_id"])
    assert len(found) > 70
    for key, members in rows.groupby([*by, "pair_id"]):
        assert found.loc[key, "f1"] == pytest.approx(by_sklearn(members))
        assert found.loc[key, "consistent"] == (members["gold"] == members["answer"]).all()


def test_the_authors_round_each_theory_first():
    rows, differ = made_up(), set()
    for by in (["model", "set"], ["model", "gold"], ["model", "set", "group"]):
        table = results.score_table(rows, by).set_index(by)
        for key, members in rows.groupby(by):
            each = [by_sklearn(theory) for _, theory in members.groupby("pair_id")]
            rounded = np.round(np.mean(np.round(each, 2)), 2)
            assert table.loc[key, "f1_rounded"] == rounded
            differ.add(rounded != np.round(np.mean(each), 2))
    assert True in differ
