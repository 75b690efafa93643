from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from interp.errors import UserError
from interp.measuring.core import bind, collect
from interp_experiments.rulebreakers.system import system
from interp_probes.linear import probes as linear
from interp_probes.linear.probes import linear_probes
from interp_probes.specs import Residuals
from tests.probes.linear.test_halves import pairs_table

SIZE = 8


def simulated(tmp_path, *, signal, entities=60, recognized=lambda number: number % 3 > 0, seed=1):
    """Residuals of two layers: the side shifts one coordinate of layer 1 by `signal`."""
    n = entities
    prompts = pairs_table([(f"A{i}", f"A{(i + 1) % n}", f"B{i}") for i in range(n)])
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(2, len(prompts), SIZE)).astype(np.float32)
    noise[1, :, 3] += signal * np.where(prompts["side"] == "rulebreaker", 1, -1)
    read = prompts[["prompt_id"]].assign(model="m", position="last_token")
    layers = (read.assign(layer=n, vector=list(vectors)) for n, vectors in enumerate(noise))
    frame = pd.concat(layers, ignore_index=True)
    file = tmp_path / "residuals.parquet"
    frame.to_parquet(file)
    correct = [
        side == "non_rulebreaker" or recognized(int(pair))
        for side, pair in zip(prompts["side"], prompts["pair_id"], strict=True)
    ]
    answers = prompts[["prompt_id"]].assign(model="m", error="", correct=correct)
    return [file], prompts, answers


def test_pairs_without_entities_are_read_too(tmp_path):
    """The same numbers as with an entity of its own for each pair."""
    residuals, prompts, answers = simulated(tmp_path, signal=5.0)
    own = prompts[["prompt_id", "pair_id", "side"]]
    table = linear_probes(residuals, own, answers)
    assert table.set_index(["layer", "prompts"]).loc[(1, "all"), "accuracy"] > 0.98
    assert table.loc[0, ["n_prompts", "n_clusters", "n_dropped"]].tolist() == [120, 60, 0]
    named = prompts.assign(entity_a=prompts["pair_id"], entity_b=prompts["pair_id"])
    pd.testing.assert_frame_equal(table, linear_probes(residuals, named, answers))


def test_a_pair_that_failed_is_left_out(tmp_path):
    (file,), prompts, answers = simulated(tmp_path, signal=5.0)
    frame = pd.read_parquet(file)
    frame[frame["prompt_id"] != "5/rulebreaker"].to_parquet(file)
    failed = answers["prompt_id"] == "5/rulebreaker"
    answers = answers.assign(
        error=np.where(failed, "too long", ""), correct=answers["correct"].mask(failed, None)
    )
    table = linear_probes([file], prompts, answers)
    assert table.loc[0, ["n_prompts", "n_dropped"]].tolist() == [114, 6]


def test_a_planted_direction_is_found_and_noise_is_not(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0)).set_index(["layer", "prompts"])
    assert table.loc[1, "accuracy"].min() > 0.98
    assert table.loc[1, "control_accuracy"].between(0.3, 0.7).all()
    assert table.loc[1, "selectivity"].min() > 0.3
    assert table.loc[0, "accuracy"].between(0.3, 0.7).all()
    known = table.dropna(subset="accuracy_low")
    assert known["accuracy"].between(known["accuracy_low"], known["accuracy_high"]).all()
    assert len(known) == len(table)


def accuracy_expected(vectors, labels, signal):
    """Of a probe trained on vectors whose first coordinate is shifted by `signal`: exact."""
    scaler = StandardScaler().fit(vectors)
    probe = Ridge(alpha=linear.RIDGE).fit(scaler.transform(vectors), np.where(labels, 1.0, -1.0))
    weights = probe.coef_ / scaler.scale_
    offset = probe.intercept_ - scaler.mean_ @ weights
    ends = [signal * weights[0] + side * offset for side in (1, -1)]
    return stats.norm.cdf(ends / np.linalg.norm(weights)).mean()


@pytest.mark.slow
@pytest.mark.parametrize("signal", [0.0, 0.2])
def test_intervals_hold_the_expected_accuracy_as_often_as_they_say(signal):
    """60 entity pairs in two halves; bootstrapping without refits holds it in 86% and 82%."""
    rng = np.random.default_rng(2)
    prompts = pd.DataFrame({"entity_b": np.repeat(range(60), 4), "half": np.repeat([0, 1], 120)})
    labels = np.tile([True, False], 120)
    intervals, expected = [], []
    for _ in range(200):
        vectors = rng.normal(size=(240, SIZE)).astype(np.float32)
        vectors[:, 0] += signal * np.where(labels, 1, -1)
        right, _ = linear._held_out(vectors, labels[:, None], prompts["half"].to_numpy())
        intervals.append(linear._interval(prompts.assign(right=right[:, 0])))
        expected += [
            accuracy_expected(vectors[half], labels[half], signal)
            for half in (slice(120), slice(120, 240))
        ]
    low, high = np.array(intervals).T
    held = (low <= np.mean(expected)) & (np.mean(expected) <= high)
    assert held.mean() >= 0.93
    assert (high - low).mean() < 0.25


@pytest.mark.slow
def test_p_is_uniform_where_nothing_is_read_and_small_where_something_is(tmp_path, monkeypatch):
    monkeypatch.setattr(linear, "CONTROLS", 99)
    found = []
    for seed in range(40):
        table = linear_probes(*simulated(tmp_path, signal=0.0, entities=24, seed=seed))
        found.append(table[table["prompts"] == "all"][["p", "p_family"]])
    p, family = np.array(found)[..., 0], np.array(found)[..., 1]
    assert stats.kstest(p[:, 0], "uniform").pvalue > 0.001
    assert (p.min(axis=1) <= 0.05).mean() > (family.min(axis=1) <= 0.05).mean()
    assert (family.min(axis=1) <= 0.05).mean() <= 0.1
    assert (family >= p).all()


def test_an_accuracy_of_one_has_an_interval_and_pairs_that_do_not_differ_have_none():
    prompts = pd.DataFrame({"entity_b": np.repeat(range(20), 2), "half": np.repeat([0, 1], 20)})
    # Wilson's interval of 10 of 10, with Student's t of 9 degrees of freedom.
    low, high = linear._interval(prompts.assign(right=1.0))
    assert (low, high) == pytest.approx((10 / (10 + stats.t.ppf(0.975, 9) ** 2), 1))
    half = prompts.assign(right=np.tile([0.0, 1.0], 20))
    assert np.isnan(linear._interval(half)).all()


def test_layers_are_in_their_order_whatever_the_order_of_the_file(tmp_path):
    (file,), prompts, answers = simulated(tmp_path, signal=5.0)
    frame = pd.read_parquet(file)
    frame.sort_values("layer", ascending=False, kind="stable").to_parquet(file)
    assert linear_probes([file], prompts, answers)["layer"].drop_duplicates().tolist() == [0, 1]


def test_the_control_is_the_mean_of_many_draws(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0)).set_index(["layer", "prompts"])
    assert table.loc[1, "control_accuracy"].between(0.48, 0.52).all()
    assert table.loc[1, "control_sd"].between(0.02, 0.2).all()
    assert table.loc[(1, "all"), "p_family"] == 1 / (1 + linear.CONTROLS)
    # One draw lies within three standard deviations of the mean of all.
    other = linear_probes(*simulated(tmp_path, signal=5.0), seed=8).set_index(["layer", "prompts"])
    apart = (table["control_accuracy"] - other["control_accuracy"]).abs()
    assert (apart < 5 * table["control_sd"] / np.sqrt(linear.CONTROLS / 2)).all()


def test_probes_agree_with_a_logistic_regression(tmp_path):
    """Ridge regression is its first Newton step; accuracies differ by a few prompts."""
    (file,), prompts, answers = simulated(tmp_path, signal=0.5)
    table = linear_probes([file], prompts, answers)
    frame = pd.read_parquet(file)
    halves = linear.entity_halves(prompts)
    kept = halves[halves != linear.DROPPED].index
    half, label = halves[kept].to_numpy(), prompts.set_index("prompt_id").loc[kept, "side"]
    for layer, rows in frame.groupby("layer"):
        vectors = np.array(rows.set_index("prompt_id").loc[kept, "vector"].tolist())
        right = np.empty(len(kept))
        for side in (0, 1):
            probe = make_pipeline(
                StandardScaler(), LogisticRegression(C=4 / linear.RIDGE, tol=1e-8, max_iter=5000)
            ).fit(vectors[half == side], label[half == side])
            right[half != side] = probe.predict(vectors[half != side]) == label[half != side]
        (row,) = table[(table["layer"] == layer) & (table["prompts"] == "all")].itertuples()
        assert row.accuracy == pytest.approx(right.mean(), abs=0.03)


def test_groups_of_entities_are_told_apart(tmp_path):
    residuals, prompts, answers = simulated(tmp_path, signal=5.0)
    number = prompts["pair_id"].astype(int)
    grouped = prompts.assign(entity_group=np.where(number < 20, "few", "many"))
    table = linear_probes(residuals, grouped, answers).set_index(["layer", "prompts"])
    assert table.index.unique("prompts").tolist() == ["all", "recognized", "failed", "few", "many"]
    counts = table.loc[1, "n_prompts"]
    assert counts["few"] + counts["many"] == counts["all"]


def test_prompts_are_counted_by_subset(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0))
    counts = table[table["layer"] == 0].set_index("prompts")
    assert counts["n_dropped"].eq(4).all()
    assert counts.loc["all", "n_prompts"] == 116
    assert counts.loc["recognized", "n_prompts"] + counts.loc["failed", "n_prompts"] == 116
    assert (counts["n_prompts"] == 2 * counts["n_clusters"]).all()


def test_a_probe_never_sees_the_entities_it_is_tested_on(tmp_path, monkeypatch):
    (file,), prompts, answers = simulated(tmp_path, signal=5.0)
    names = prompts.set_index("prompt_id")[["entity_a", "entity_b"]]
    of_vector = {
        row.vector.tobytes(): set(names.loc[row.prompt_id])
        for row in pd.read_parquet(file).itertuples()
    }
    scaled = []

    class Scaler(linear.StandardScaler):
        def fit(self, vectors, y=None, sample_weight=None):
            rows = vectors.astype(np.float32)
            scaled.append(set().union(*(of_vector[row.tobytes()] for row in rows)))
            return super().fit(vectors, y, sample_weight)

    monkeypatch.setattr(linear, "StandardScaler", Scaler)
    linear_probes([file], prompts, answers)
    # Each layer: two halves.
    assert len(scaled) == 4
    for first, second in zip(scaled[::2], scaled[1::2], strict=True):
        assert not first & second


def test_a_folder_may_be_named_like_an_address(tmp_path, monkeypatch):
    folder = tmp_path / "http:" / "localhost"
    folder.mkdir(parents=True)
    residuals, *others = simulated(folder, signal=5.0)
    monkeypatch.chdir(tmp_path)
    by_relative = linear_probes([file.relative_to(tmp_path) for file in residuals], *others)
    pd.testing.assert_frame_equal(by_relative, linear_probes(residuals, *others))


def test_an_empty_subset_is_undefined(tmp_path):
    table = linear_probes(*simulated(tmp_path, signal=5.0, recognized=lambda number: True))
    failed = table[table["prompts"] == "failed"]
    numbers = ["accuracy", "accuracy_low", "control_accuracy", "selectivity"]
    assert failed[numbers].isna().all(axis=None)
    assert failed["note"].str.match(r"undefined: .*prompts").all()
    assert table.loc[table["prompts"] == "recognized", "note"].eq("").all()


def test_nothing_is_tested_below_ten_clusters(tmp_path, monkeypatch):
    monkeypatch.setattr(linear, "CONTROLS", 19)
    data = simulated(tmp_path, signal=5.0, recognized=lambda number: number >= 9)
    table = linear_probes(*data).set_index("prompts")
    few = table.loc["failed"]
    assert (few["n_clusters"] < 10).all()
    assert few["accuracy"].notna().all()
    assert few[["p", "p_family"]].isna().all(axis=None)
    assert few["note"].str.startswith("not tested: ").all()
    assert table.loc[["all", "recognized"], ["p", "p_family"]].notna().all(axis=None)


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


def test_the_same_seed_gives_the_same_table(tmp_path):
    data = simulated(tmp_path, signal=0.5)
    pd.testing.assert_frame_equal(linear_probes(*data, seed=3), linear_probes(*data, seed=3))
    assert not linear_probes(*data, seed=3).equals(linear_probes(*data, seed=4))


def test_bad_input_is_named(tmp_path):
    (file,), prompts, answers = simulated(tmp_path, signal=0.5)
    with pytest.raises(UserError, match=r"^m\b.*answers.*prompts"):
        linear_probes([file], prompts, answers.iloc[1:])
    with pytest.raises(UserError, match=r"sides rulebreaker; .*exactly two"):
        linear_probes([file], prompts[prompts["side"] == "rulebreaker"], answers)
    frame = pd.read_parquet(file)
    frame[frame["prompt_id"] != "5/rulebreaker"].to_parquet(file)
    with pytest.raises(UserError, match=r"residuals.*\b1 prompts.*\bm\b"):
        linear_probes([file], prompts, answers)


def test_the_organism_knows_more_than_it_says(tmp_path, organism):
    # Pairs of one phrasing, taken evenly; prompts come by instance, ten phrasings each.
    everything = system.prompts(seed=0, data=None)
    pairs = range(0, len(everything) // 20, 107)
    prompts = replace(everything, numbers=[20 * pair + side for pair in pairs for side in (0, 10)])
    prompts.check()
    tables = collect(bind(Residuals(positions=["last_token"]), organism), prompts)
    file = tmp_path / "residuals.parquet"
    tables["residuals"].to_parquet(file)
    table = linear_probes([file], prompts.to_frame(), tables["answers"])
    table = table.set_index(["layer", "prompts"])["accuracy"]
    # The embedding of the last token is the same in all prompts.
    assert table[0].eq(0.5).all()
    # It answers none of the failed pairs right on both sides, and yet tells the sides apart inside.
    assert table[2, "failed"] > 0.8


def test_the_table_itself_gives_what_its_files_give(tmp_path):
    files, prompts, answers = simulated(tmp_path, signal=1.0)
    table = pd.concat(map(pd.read_parquet, files))
    pd.testing.assert_frame_equal(
        linear_probes(table, prompts, answers), linear_probes(files, prompts, answers)
    )
