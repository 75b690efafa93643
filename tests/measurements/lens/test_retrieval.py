"""Verdicts on retrieval: against loops, without information, and with a planted share."""

import numpy as np
import pandas as pd
import pytest

from interp.estimates.compute import estimate
from interp.measurements.lens.ledger import RETRIEVAL, retrieval_trials, retrieved
from tests.measurements.lens.test_tables import clusters_of, readings

WORDS = [f"w{n}" for n in range(20)]


def retrieval_table(found, answers):
    return estimate(RETRIEVAL, retrieval_trials(found, answers))


def planted(share, *, clusters=60, each=2, seed=0, size=4.0):
    """Readings at two middle layers and the last; in a share of clusters, right words are stronger.

    The last layer, which does not count, names the word of all prompts.
    """
    chance = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), each)
    right = chance.integers(len(WORDS), size=clusters)[of]
    knows = (np.arange(clusters) < share * clusters)[of]
    common = chance.normal(size=len(WORDS))
    parts = []
    for layer in (1, 2, 3):
        scores = chance.normal(size=(len(of), len(WORDS))) + 3 * common
        alone = 3 * chance.normal(size=scores.shape)
        scores[np.arange(len(of)), right] += 10 * size if layer == 3 else size * knows
        part = readings(scores, right, embedding=alone, words=WORDS)
        parts.append(part.assign(layer=layer))
    return pd.concat(parts, ignore_index=True), clusters_of(of), knows


def test_verdicts_equal_loops():
    rows, clusters, _ = planted(0.5, clusters=5)
    found = retrieved(rows, clusters).set_index("prompt_id")
    prompts = [*dict.fromkeys(rows["prompt_id"])]
    right = rows.drop_duplicates("prompt_id").set_index("prompt_id")["right"].map(WORDS.index)
    inside = rows[rows["layer"] < 3].groupby("prompt_id")["scores"]
    means = {one: np.mean([*own], axis=0) for one, own in inside}
    others = {a: [b for b in prompts if clusters[b] != clusters[a]] for a in prompts}
    strengths = {}
    for one in prompts:
        usual = [
            np.mean([means[other][word] for other in others[one] if right[other] != word])
            for word in range(len(WORDS))
        ]
        centred = means[one] - usual
        rest = [np.mean(np.delete(centred, [word, right[one]])) for word in range(len(WORDS))]
        strengths[one] = centred - rest
    for one in prompts:
        wrong = np.sort([s for b in others[one] for s in np.delete(strengths[b], right[b])])
        threshold = wrong[int(np.ceil(0.95 * (len(wrong) - 1)))]
        row = found.loc[one]
        assert row["threshold"] == pytest.approx(threshold)
        assert row["strength"] == pytest.approx(strengths[one][right[one]])
        assert row["retrieved"] == (strengths[one][right[one]] > threshold)
        assert row["error"] == np.mean(np.delete(strengths[one], right[one]) > threshold)


def test_facts_that_are_retrieved_do_not_change_the_error_of_others():
    shares = []
    for size in (0.0, 4.0, 400.0):
        rows, clusters, knows = planted(0.7, clusters=300, size=size)
        found = retrieved(rows, clusters)
        shares.append(found.loc[~knows, "retrieved"].tolist())
        for verdict in ("error", "embedding"):
            assert found[verdict].mean() == pytest.approx(0.05, abs=0.025)
    assert np.mean(shares[0]) == pytest.approx(0.05, abs=0.04)
    assert shares[0] == shares[1] == shares[2]


def test_of_two_words_the_other_one_is_subtracted():
    right = np.arange(8) % 2
    scores = np.random.default_rng(3).normal(size=(8, 2)) + 9 * np.eye(2)[right]
    rows, clusters = readings(scores, right, words=["Yes", "No"]), clusters_of(range(8))
    found = retrieved(rows, clusters)
    for one in range(8):
        usual = [
            np.mean([scores[j, word] for j in range(8) if j != one and right[j] != word])
            for word in (0, 1)
        ]
        centred = scores[one] - usual
        strength = centred[right[one]] - centred[1 - right[one]]
        assert found.loc[one, "strength"] == pytest.approx(strength)
    # A word that is right everywhere else is centred over these prompts all the same.
    found = retrieved(readings(scores, [0] * 8, words=["Yes", "No"]), clusters)
    assert found["strength"].notna().all()


def test_a_planted_share_is_found():
    rows, clusters, knows = planted(0.5)
    found = retrieved(rows, clusters)
    assert found.loc[knows, "retrieved"].mean() > 0.95
    answers = pd.DataFrame({"model": "m", "prompt_id": found["prompt_id"], "correct": knows})
    table = retrieval_table(found, answers).set_index("answered")
    assert table.loc["all", "prompts"] == 120
    assert table.loc["all", "clusters"] == 60
    assert table.loc["right", "retrieved"] > 0.95
    assert table.loc["wrong", "retrieved"] == pytest.approx(0.05, abs=0.06)
    assert table.loc["all", "retrieved_low"] < 0.525 < table.loc["all", "retrieved_high"]
    unjudged = retrieval_table(found, answers.assign(correct=None))
    assert unjudged["answered"].tolist() == ["all"]


def test_a_single_cluster_has_no_verdict():
    rows, clusters, _ = planted(0.5, clusters=1, each=3)
    found = retrieved(rows, clusters)
    assert found[["retrieved", "threshold", "embedding"]].isna().all(axis=None)
    answers = pd.DataFrame({"model": "m", "prompt_id": found["prompt_id"], "correct": True})
    assert retrieval_table(found, answers)["retrieved"].isna().all()


def test_without_information_the_share_is_the_error():
    rows, clusters, _ = planted(0.0, clusters=400)
    found = retrieved(rows, clusters)
    assert found["error"].mean() == pytest.approx(0.05, abs=0.005)
    for verdict in ("retrieved", "embedding"):
        assert found[verdict].mean() == pytest.approx(0.05, abs=0.025)
