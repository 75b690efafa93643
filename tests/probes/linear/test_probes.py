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


def simulated(*, signal, entities=60, recognized=lambda number: number % 3 > 0, seed=1):
    """Residuals of two layers: the side shifts one coordinate of layer 1 by `signal`."""
    n = entities
    prompts = pairs_table([(f"A{i}", f"A{(i + 1) % n}", f"B{i}") for i in range(n)])
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(2, len(prompts), SIZE)).astype(np.float32)
    noise[1, :, 3] += signal * np.where(prompts["side"] == "rulebreaker", 1, -1)
    read = prompts[["prompt_id"]].assign(model="m", position="last_token")
    layers = (read.assign(layer=n, vector=list(vectors)) for n, vectors in enumerate(noise))
    right = prompts["pair_id"].astype(int).map(recognized) | (prompts["side"] != "rulebreaker")
    answers = prompts[["prompt_id"]].assign(model="m", error="", correct=right)
    return pd.concat(layers, ignore_index=True), prompts, answers


def by_layer(table):
    return table.set_index(["layer", "prompts"])


@pytest.fixture(scope="module")
def clear():
    """A planted direction."""
    return simulated(signal=5.0)


@pytest.fixture(scope="module")
def table(clear):
    return linear_probes(*clear)


def test_pairs_without_entities_are_read_too(clear):
    """The same numbers as with an entity of its own for each pair."""
    residuals, prompts, answers = clear
    own = prompts[["prompt_id", "pair_id", "side"]]
    table = linear_probes(residuals, own, answers)
    assert by_layer(table).loc[(1, "all"), "accuracy"] > 0.98
    assert table.loc[0, ["n_prompts", "n_clusters", "n_dropped"]].tolist() == [120, 60, 0]
    named = prompts.assign(entity_a=prompts["pair_id"], entity_b=prompts["pair_id"])
    pd.testing.assert_frame_equal(table, linear_probes(residuals, named, answers))


def test_a_pair_that_failed_is_left_out(clear):
    residuals, prompts, answers = clear
    failed = answers["prompt_id"] == "5/rulebreaker"
    correct = answers["correct"].astype(object).mask(failed, None)
    answers = answers.assign(error=np.where(failed, "too long", ""), correct=correct)
    table = linear_probes(residuals[residuals["prompt_id"] != "5/rulebreaker"], prompts, answers)
    assert table.loc[0, ["n_prompts", "n_dropped"]].tolist() == [114, 6]


def test_a_planted_direction_is_found_and_noise_is_not(clear, table):
    rows = by_layer(table)
    assert rows.loc[1, "accuracy"].min() > 0.98
    assert rows.loc[1, "selectivity"].min() > 0.3
    assert rows.loc[0, "accuracy"].between(0.3, 0.7).all()
    assert rows["accuracy"].between(rows["accuracy_low"], rows["accuracy_high"]).all()
    # The control is the mean of many draws.
    assert rows.loc[1, "control_accuracy"].between(0.48, 0.52).all()
    assert rows.loc[1, "control_sd"].between(0.02, 0.2).all()
    assert rows.loc[(1, "all"), "p_family"] == 1 / (1 + linear.CONTROLS)
    # One draw lies within three standard deviations of the mean of all.
    apart = (table["control_accuracy"] - linear_probes(*clear, seed=8)["control_accuracy"]).abs()
    assert (apart < 5 * table["control_sd"] / np.sqrt(linear.CONTROLS / 2)).all()
    counts = rows.loc[0]
    assert counts["n_dropped"].eq(4).all()
    assert counts.loc["all", "n_prompts"] == 116
    assert counts.loc["recognized", "n_prompts"] + counts.loc["failed", "n_prompts"] == 116
    assert (counts["n_prompts"] == 2 * counts["n_clusters"]).all()


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
def test_p_is_uniform_where_nothing_is_read_and_small_where_something_is(monkeypatch):
    monkeypatch.setattr(linear, "CONTROLS", 99)
    found = []
    for seed in range(40):
        table = linear_probes(*simulated(signal=0.0, entities=24, seed=seed))
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


def test_files_give_what_the_table_gives_whatever_their_order_and_address(
    clear, table, tmp_path, monkeypatch
):
    residuals, *others = clear
    file = tmp_path / "http:" / "localhost" / "residuals.parquet"
    file.parent.mkdir(parents=True)
    residuals.sort_values("layer", ascending=False, kind="stable").to_parquet(file)
    monkeypatch.chdir(tmp_path)
    read = linear_probes([file.relative_to(tmp_path)], *others)
    pd.testing.assert_frame_equal(read, table)


def test_probes_agree_with_a_logistic_regression():
    """Ridge regression is its first Newton step; accuracies differ by a few prompts."""
    residuals, prompts, answers = simulated(signal=0.5)
    table = by_layer(linear_probes(residuals, prompts, answers))
    halves = linear.entity_halves(prompts)
    kept = halves[halves != linear.DROPPED].index
    half, label = halves[kept].to_numpy(), prompts.set_index("prompt_id").loc[kept, "side"]
    for layer, rows in residuals.groupby("layer"):
        vectors = np.array(rows.set_index("prompt_id").loc[kept, "vector"].tolist())
        right = np.empty(len(kept))
        for side in (0, 1):
            probe = make_pipeline(
                StandardScaler(), LogisticRegression(C=4 / linear.RIDGE, tol=1e-8, max_iter=5000)
            ).fit(vectors[half == side], label[half == side])
            right[half != side] = probe.predict(vectors[half != side]) == label[half != side]
        assert table.loc[(layer, "all"), "accuracy"] == pytest.approx(right.mean(), abs=0.03)


def test_groups_of_entities_are_told_apart(clear):
    residuals, prompts, answers = clear
    number = prompts["pair_id"].astype(int)
    grouped = prompts.assign(entity_group=np.where(number < 20, "few", "many"))
    table = by_layer(linear_probes(residuals, grouped, answers))
    assert table.index.unique("prompts").tolist() == ["all", "recognized", "failed", "few", "many"]
    counts = table.loc[1, "n_prompts"]
    assert counts["few"] + counts["many"] == counts["all"]


def test_a_probe_never_sees_the_entities_it_is_tested_on(clear, monkeypatch):
    residuals, prompts, _ = clear
    names = prompts.set_index("prompt_id")[["entity_a", "entity_b"]]
    of_vector = {
        row.vector.tobytes(): set(names.loc[row.prompt_id]) for row in residuals.itertuples()
    }
    scaled = []

    class Scaler(linear.StandardScaler):
        def fit(self, vectors, y=None, sample_weight=None):
            rows = vectors.astype(np.float32)
            scaled.append(set().union(*(of_vector[row.tobytes()] for row in rows)))
            return super().fit(vectors, y, sample_weight)

    monkeypatch.setattr(linear, "StandardScaler", Scaler)
    linear_probes(*clear)
    # Each layer: two halves.
    assert len(scaled) == 4
    for first, second in zip(scaled[::2], scaled[1::2], strict=True):
        assert not first & second


def test_an_empty_subset_is_undefined():
    table = linear_probes(*simulated(signal=5.0, recognized=lambda number: True))
    failed = table[table["prompts"] == "failed"]
    numbers = ["accuracy", "accuracy_low", "control_accuracy", "selectivity"]
    assert failed[numbers].isna().all(axis=None)
    assert failed["note"].str.match(r"undefined: .*prompts").all()
    assert table.loc[table["prompts"] == "recognized", "note"].eq("").all()


def test_nothing_is_tested_below_ten_clusters(monkeypatch):
    monkeypatch.setattr(linear, "CONTROLS", 19)
    data = simulated(signal=5.0, recognized=lambda number: number >= 9)
    table = linear_probes(*data).set_index("prompts")
    few = table.loc["failed"]
    assert (few["n_clusters"] < 10).all()
    assert few["accuracy"].notna().all()
    assert few[["p", "p_family"]].isna().all(axis=None)
    assert few["note"].str.startswith("not tested: ").all()
    assert table.loc[["all", "recognized"], ["p", "p_family"]].notna().all(axis=None)


def test_too_few_entities_and_vectors_that_are_not_finite_are_undefined(clear):
    few = linear_probes(*simulated(signal=5.0, entities=2))
    assert few["accuracy"].isna().all()
    assert few["note"].str.startswith("undefined").all()
    residuals, *others = clear
    endless = residuals["vector"].map(lambda vector: vector * np.inf)
    vectors = residuals["vector"].where(residuals["layer"] == 1, endless)
    table = linear_probes(residuals.assign(vector=vectors), *others).set_index("layer")
    assert table.loc[0, "note"].str.contains("not finite").all()
    assert table.loc[1, "note"].eq("").all()


def test_the_same_seed_gives_the_same_table():
    data = simulated(signal=0.5)
    first, again, other = (linear_probes(*data, seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_bad_input_is_named(clear):
    residuals, prompts, answers = clear
    lacking = residuals[residuals["prompt_id"] != "5/rulebreaker"]
    for given, message in (
        ((residuals, prompts, answers.iloc[1:]), r"^m\b.*answers.*prompts"),
        ((residuals, prompts.iloc[::2], answers), r"sides rulebreaker; .*exactly two"),
        ((lacking, prompts, answers), r"residuals.*\b1 prompts.*\bm\b"),
    ):
        with pytest.raises(UserError, match=message):
            linear_probes(*given)


def test_the_organism_knows_more_than_it_says(organism):
    # Pairs of one phrasing, taken evenly; prompts come by instance, ten phrasings each.
    everything = system.prompts(seed=0, data=None)
    pairs = range(0, len(everything) // 20, 107)
    prompts = replace(everything, numbers=[20 * pair + side for pair in pairs for side in (0, 10)])
    prompts.check()
    tables = collect(bind(Residuals(positions=["last_token"]), organism), prompts)
    table = linear_probes(tables["residuals"], prompts.to_frame(), tables["answers"])
    table = by_layer(table)["accuracy"]
    # The embedding of the last token is the same in all prompts.
    assert table[0].eq(0.5).all()
    # It answers none of the failed pairs right on both sides, and yet tells the sides apart inside.
    assert table[2, "failed"] > 0.8
