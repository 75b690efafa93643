import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from interp.api import collect
from interp.errors import UserError
from interp_experiments.rulebreakers.system import system
from interp_probes import linear
from interp_probes.linear import linear_probes
from interp_probes.specs import Residuals
from tests.probes.test_halves import pairs_table

SIZE = 8


def simulated(tmp_path, *, signal, entities=60, recognized=lambda number: number % 3 > 0, seed=1):
    """Residuals of two layers: the side shifts one coordinate of layer 1 by `signal`."""
    n = entities
    prompts = pairs_table([(f"A{i}", f"A{(i + 1) % n}", f"B{i}") for i in range(n)])
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(2, len(prompts), SIZE)).astype(np.float32)
    noise[1, :, 3] += signal * np.where(prompts["side"] == "rulebreaker", 1, -1)
    frame = pd.concat(
        pd.DataFrame(
            {
                "model": "m",
                "prompt_id": prompts["prompt_id"],
                "position": "last_token",
                "layer": layer,
                "vector": list(vectors),
            }
        )
        for layer, vectors in enumerate(noise)
    ).reset_index(drop=True)
    file = tmp_path / "residuals.parquet"
    frame.to_parquet(file)
    answers = pd.DataFrame(
        {
            "model": "m",
            "prompt_id": prompts["prompt_id"],
            "correct": [
                side == "non_rulebreaker" or recognized(int(pair))
                for side, pair in zip(prompts["side"], prompts["pair_id"], strict=True)
            ],
        }
    )
    return [file], prompts, answers


def test_a_planted_direction_is_found_and_noise_is_not(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0)).set_index(["layer", "prompts"])
    assert table.loc[1, "accuracy"].min() > 0.98
    assert table.loc[1, "control_accuracy"].between(0.3, 0.7).all()
    assert table.loc[1, "selectivity"].min() > 0.3
    assert table.loc[0, "accuracy"].between(0.3, 0.7).all()
    assert table["accuracy"].between(table["accuracy_low"], table["accuracy_high"]).all()


def test_most_intervals_on_noise_hold_the_chance_level(tmp_path):
    held = []
    for seed in range(20):
        table = linear_probes(*simulated(tmp_path, signal=0.0, entities=40, seed=seed))
        rows = table[table["prompts"] == "all"]
        held += list((rows["accuracy_low"] <= 0.5) & (rows["accuracy_high"] >= 0.5))
    # Not 95%: the docstring of linear_probes says why, and how many of 240 did.
    assert sum(held) >= 30


def test_prompts_are_counted_by_subset(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0))
    counts = table[table["layer"] == 0].set_index("prompts")
    assert counts["n_dropped"].eq(4).all()
    assert counts.loc["all", "n_prompts"] == 116
    assert counts.loc["recognized", "n_prompts"] + counts.loc["failed", "n_prompts"] == 116
    assert (counts["n_prompts"] == 2 * counts["n_entities"]).all()


def test_a_probe_never_sees_the_entities_it_is_tested_on(tmp_path, monkeypatch):
    (file,), prompts, answers = simulated(tmp_path, signal=5.0)
    names = prompts.set_index("prompt_id")[["entity_a", "entity_b"]]
    of_vector = {
        row.vector.tobytes(): set(names.loc[row.prompt_id])
        for row in pd.read_parquet(file).itertuples()
    }
    seen = []

    class Spy(LogisticRegression):
        def fit(self, vectors, labels):
            seen.append(len(vectors))
            return super().fit(vectors, labels)

    scaled = []

    class Scaler(linear.StandardScaler):
        def fit(self, vectors, y=None, sample_weight=None):
            scaled.append(set().union(*(of_vector[v.tobytes()] for v in vectors)))
            return super().fit(vectors, y, sample_weight)

    monkeypatch.setattr(linear, "LogisticRegression", Spy)
    monkeypatch.setattr(linear, "StandardScaler", Scaler)
    linear_probes([file], prompts, answers)
    # Each layer: two halves for the labels, two for the control.
    assert len(seen) == len(scaled) == 8
    for first, second in zip(scaled[::2], scaled[1::2], strict=True):
        assert not first & second


def test_an_empty_subset_is_undefined(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0, recognized=lambda number: True))
    failed = table[table["prompts"] == "failed"]
    assert (
        failed[["accuracy", "accuracy_low", "control_accuracy", "selectivity"]]
        .isna()
        .all(axis=None)
    )
    assert failed["note"].eq("undefined: no such prompts").all()
    assert table.loc[table["prompts"] == "recognized", "note"].eq("").all()


def test_too_few_entities_are_undefined(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0, entities=2))
    assert table["accuracy"].isna().all()
    assert table["note"].str.startswith("undefined").all()


def test_vectors_that_are_not_finite_are_undefined(tmp_path):
    (file,), prompts, answers = simulated(tmp_path, signal=5.0)
    frame = pd.read_parquet(file)
    frame.loc[frame["layer"] == 0, "vector"] = frame["vector"].map(lambda vector: vector * np.inf)
    frame.to_parquet(file)
    table = linear_probes([file], prompts, answers).set_index("layer")
    assert table.loc[0, "note"].str.contains("not finite").all()
    assert table.loc[1, "note"].eq("").all()


def test_a_fit_that_does_not_converge_says_so_and_nothing_leaks(tmp_path, monkeypatch):
    monkeypatch.setattr(linear, "ITERATIONS", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = linear_probes(*simulated(tmp_path, signal=5.0))
    assert table["note"].str.contains("the fit did not converge").all()


def test_the_same_seed_gives_the_same_table(tmp_path):
    data = simulated(tmp_path, signal=0.5)
    pd.testing.assert_frame_equal(linear_probes(*data, seed=3), linear_probes(*data, seed=3))
    assert not linear_probes(*data, seed=3).equals(linear_probes(*data, seed=4))


def test_bad_input_is_named(tmp_path):
    (file,), prompts, answers = simulated(tmp_path, signal=0.5)
    with pytest.raises(UserError, match="m has no answers to some of the prompts"):
        linear_probes([file], prompts, answers.iloc[1:])
    with pytest.raises(UserError, match="the sides rulebreaker; linear probes need exactly two"):
        linear_probes([file], prompts[prompts["side"] == "rulebreaker"], answers)
    frame = pd.read_parquet(file)
    frame[frame["prompt_id"] != "5/rulebreaker"].to_parquet(file)
    with pytest.raises(UserError, match="the residuals lack 1 prompts of m"):
        linear_probes([file], prompts, answers)


def test_the_organism_knows_more_than_it_says(tmp_path, organism):
    # Pairs of one phrasing, taken evenly; prompts come by instance, ten phrasings each.
    everything = system.prompts(seed=0, data=None)
    pairs = range(0, len(everything) // 20, 107)
    prompts = replace(everything, numbers=[20 * pair + side for pair in pairs for side in (0, 10)])
    prompts.check()
    tables = collect(Residuals(positions=["last_token"]).bind(organism), prompts)
    file = tmp_path / "residuals.parquet"
    tables["residuals"].to_parquet(file)
    table = linear_probes([file], prompts.to_frame(), tables["answers"])
    table = table.set_index(["layer", "prompts"])["accuracy"]
    # The embedding of the last token is the same in all prompts.
    assert table[0].eq(0.5).all()
    # It answers none of the failed pairs right on both sides, and yet tells the sides apart inside.
    assert table[2, "failed"] > 0.8
