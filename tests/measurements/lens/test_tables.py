"""Accuracies of readings against loops over readings, and on planted readings."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.estimates.compute import estimate
from interp.measurements.lens.show import READINGS
from interp.measurements.lens.show import WORDS as OF_WORDS
from interp.measurements.lens.tables import in_middle, judged, mean_rank, word_trials

WORDS = ["Norway", "Italy", "Peru"]


def readings(scores, right, *, embedding=None, words=WORDS, **others):
    """Rows of lens_readings, one for each row of scores."""
    alone = scores if embedding is None else embedding
    place = {"model": "m", "group": "city", "method": "jacobian", "layer": 0}
    frame = pd.DataFrame({"prompt_id": [f"p{n}" for n in range(len(scores))], **place})
    return frame.assign(
        words=[list(words)] * len(scores),
        fact="f",
        log_odds=0.0,
        right=[None if own is None else words[own] for own in right],
        scores=[*np.asarray(scores, dtype=float)],
        from_embedding=[*np.asarray(alone, dtype=float)],
    ).assign(**others)


def clusters_of(numbers):
    return pd.Series({f"p{n}": f"c{own}" for n, own in enumerate(numbers)})


def reading_table(found):
    return estimate(READINGS, found)


def word_table(rows, sides):
    return estimate(OF_WORDS, word_trials(rows.assign(side=sides, cluster=rows["prompt_id"])))


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 3), min_size=4, max_size=12).filter(lambda own: len(set(own)) > 1),
)
def test_judged_readings_equal_loops(seed, numbers):
    chance = np.random.default_rng(seed)
    n = len(numbers)
    scores, alone = chance.normal(size=(2, n, 3))
    right = chance.integers(3, size=n)
    found = judged(readings(scores, right, embedding=alone), clusters_of(numbers))
    for i in range(n):
        others = [j for j in range(n) if numbers[j] != numbers[i]]
        centred = scores[i] - np.mean([scores[j] for j in others], axis=0)
        control = alone[i] - np.mean([alone[j] for j in others], axis=0)
        row = found.iloc[i]
        assert row["accuracy"] == (centred.argmax() == right[i])
        assert row["embedding"] == (control.argmax() == right[i])
        assert row["raw_accuracy"] == (scores[i].argmax() == right[i])
        drawn = [
            np.mean([right[j] == centred.argmax() for j in range(n) if numbers[j] == cluster])
            for cluster in set(numbers)
        ]
        assert row["shuffled"] == pytest.approx(np.mean(drawn))
        rest = np.delete(centred, right[i])
        assert row["margin"] == pytest.approx(centred[right[i]] - rest.max())


def test_ties_share_the_point_and_a_single_cluster_cannot_be_centred():
    scores = np.ones((4, 3))
    found = judged(readings(scores, [0, 1, 2, 0]), clusters_of(range(4)))
    shares = found[["accuracy", "embedding", "raw_accuracy", "shuffled"]]
    np.testing.assert_allclose(shares, 1 / 3)
    alone = judged(readings(scores, [0, 1, 2, 0]), clusters_of([0] * 4))
    assert alone[["accuracy", "embedding", "shuffled", "margin"]].isna().all(axis=None)
    table = reading_table(alone)
    assert table["accuracy"].isna().all()
    assert re.search(r"\bno other cluster\b", table["note"].item())
    assert table["raw_accuracy"].item() == pytest.approx(1 / 3)
    # Centred, the last reading is [1, 1, -2] plus what is common to all words.
    scores = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, -2.0]])
    last = judged(readings(scores, [2, 2, 0]), clusters_of(range(3))).iloc[2]
    assert last[["margin", "accuracy"]].tolist() == pytest.approx([0, 1 / 2])
    nothing = judged(readings(np.eye(3), [None] * 3), clusters_of(range(3)))
    assert nothing.empty and reading_table(nothing).empty


def test_one_embedding_reads_by_chance_whatever_is_left_of_rounding():
    found = readings(np.random.default_rng(0).normal(size=(9, 3)), [0, 1, 2] * 3)
    noise = 1e-8 * np.random.default_rng(1).normal(size=(9, 3))
    found["from_embedding"] = list(np.array([3.0, -1.0, 2.0]) + noise)
    table = reading_table(judged(found, clusters_of(range(9))))
    assert table["embedding"].item() == pytest.approx(1 / 3)


def test_words_that_lead_together_share_the_point_in_every_table():
    scores = [[2.0, 2.0, 1.0], [2.0, 2.0, 2.0], [0.0, 3.0, 1.0], [1.0, 2.0, 3.0]]
    rows = readings(scores, [None] * 4)
    by_word = word_table(rows, "one").set_index("word")["first"]
    expected = [(1 / 2 + 1 / 3) / 4, (1 / 2 + 1 / 3 + 1) / 4, (1 / 3 + 1) / 4]
    assert by_word[WORDS].tolist() == pytest.approx(expected)
    found = judged(readings(scores, [0] * 4), clusters_of(range(4)))
    assert found["raw_accuracy"].tolist() == pytest.approx([1 / 2, 1 / 3, 0, 0])
    ranks = [[mean_rank(np.array(own), word) for word in range(3)] for own in scores]
    assert ranks == [[1.5, 1.5, 3], [2, 2, 2], [3, 1, 2], [3, 2, 1]]
    noise = 1e-7 * np.array([0.0, 1.0, -1.0])
    assert mean_rank(np.full(3, 5.0) + noise, 0) == 2


def test_readings_among_different_words_are_centred_apart():
    first = readings(np.eye(3), [0, 1, 2])
    second = readings(np.eye(2), [0, 1], words=["Yes", "No"]).assign(prompt_id=["p3", "p4"])
    found = judged(pd.concat([first, second]), clusters_of(range(5)))
    assert found["accuracy"].all()
    assert found["chance"].tolist() == pytest.approx([1 / 3] * 3 + [1 / 2] * 2)
    table = reading_table(found)
    assert table[["readings", "clusters"]].to_numpy().tolist() == [[5, 5]]


def test_words_by_side():
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    rows = readings(scores, [None] * 3, embedding=-scores)
    table = word_table(rows, ["a", "b", "a"]).set_index(["side", "word"])
    columns = ["first", "score", "embedding_score", "readings"]
    assert table.loc[("a", "Norway"), columns].tolist() == [1.0, 2.5, -2.5, 2]
    assert table.loc["b", "first"][["Peru", "Norway"]].tolist() == [1.0, 0.0]


def test_the_middle_layers_are_those_from_38_to_92_percent_of_the_depth():
    layers = pd.DataFrame({"model": "m", "layer": range(-1, 30)})
    assert in_middle(layers)["layer"].tolist() == [*range(11, 27)]
    shallow = pd.DataFrame({"model": "m", "layer": [-1, 0]})
    assert in_middle(shallow)["layer"].tolist() == [-1, 0]
