import numpy as np
import pandas as pd

from interp.estimates.compute import estimate
from interp.measurements.edges.derive import edge_trials
from interp.measurements.edges.show import EDGES
from interp.statistics import means

PAIRS = [f"p{number}" for number in range(12)]
ROWS = pd.DataFrame(
    [("m", "noising", "gradient", pair, writer, "logits") for pair in PAIRS for writer in "abcde"],
    columns=["model", "direction", "method", "pair_id", "writer", "reader"],
).assign(effect=np.random.default_rng(0).normal(size=60))
TRIALS = edge_trials(ROWS.assign(cluster=ROWS["pair_id"]))


def test_intervals_do_not_depend_on_how_many_edges_are_resampled_at_once(monkeypatch):
    whole = estimate(EDGES, TRIALS)
    monkeypatch.setattr(means, "_HELD", 2000)
    pd.testing.assert_frame_equal(whole, estimate(EDGES, TRIALS), rtol=1e-12)
    assert whole["effect_low"].lt(whole["effect"]).all()
    assert whole["rank"].tolist() == [1, 2, 3, 4, 5]
    assert whole["effect"].abs().is_monotonic_decreasing


def test_few_clusters_have_neither_an_interval_nor_resamples(monkeypatch):
    monkeypatch.setattr(means, "bootstrap_counts", None)
    table = estimate(EDGES, TRIALS.assign(cluster="one"))
    assert table["effect_low"].isna().all()
    assert table["note"].str.contains("not tested").all()
