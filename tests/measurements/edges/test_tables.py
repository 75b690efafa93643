import numpy as np
import pandas as pd
import pytest

from interp.measurements.edges import tables as edge_effects
from interp.measurements.edges.tables import edge_table

PAIRS = [f"p{number}" for number in range(12)]
EDGES = pd.DataFrame(
    [("m", "noising", "gradient", pair, writer, "logits") for pair in PAIRS for writer in "abcde"],
    columns=["model", "direction", "method", "pair_id", "writer", "reader"],
).assign(effect=np.random.default_rng(0).normal(size=60))


def test_intervals_do_not_depend_on_how_many_edges_are_resampled_at_once(monkeypatch):
    whole = edge_table(EDGES, dict(zip(PAIRS, PAIRS, strict=True)))
    monkeypatch.setattr(edge_effects, "_AT_ONCE", 2)
    parts = edge_table(EDGES, dict(zip(PAIRS, PAIRS, strict=True)))
    pd.testing.assert_frame_equal(whole, parts, rtol=1e-12)
    assert whole["effect_low"].lt(whole["effect"]).all()


def test_nothing_is_resampled_for_intervals_that_are_not_shown(monkeypatch):
    monkeypatch.setattr(edge_effects, "bootstrap_sums", lambda *_, **__: pytest.fail("resampled"))
    assert edge_table(EDGES, dict.fromkeys(PAIRS, "one"))["effect_low"].isna().all()
