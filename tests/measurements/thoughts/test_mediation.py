"""The mediated share of simulated studies with a planted one, and its intervals."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import mediation as benchmark
from benchmarks.mediation import coverage_rows, found, simulated, truth_of
from interp.measurements.thoughts.tables import effect_products, mediation_table
from interp.statistics.mediation import EFFECTS


def study(planted, **settings):
    return simulated(np.random.default_rng(0), planted, **{"entities": 2000} | settings)


@pytest.mark.quick(1)
@pytest.mark.parametrize("planted", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_large_study_finds_the_planted_share_in_both_orders(planted):
    shares = truth_of(study(planted, entities=20_000)[0])
    assert list(shares.values()) == pytest.approx([planted] * 3, abs=0.025)


def test_shares_along_the_total_effect_add_up_to_one():
    effects, _ = study(0.5)
    sums = effect_products(effects)[list(EFFECTS)].sum()
    assert sums["direct"] + sums["through_other"] == pytest.approx(sums["total"])
    assert sums["through"] + sums["direct_other"] == pytest.approx(sums["total"])


def test_the_table_of_a_study_and_of_groups_of_its_prompts():
    effects, prompts = study(0.5, entities=60)
    (row,) = found(effects, prompts)
    assert (row["prompts"], row["clusters"], row["note"]) == (120, 60, "")
    for end in ("", "_low", "_high"):
        mean = (row[f"share_own{end}"] + row[f"share_other{end}"]) / 2
        assert row[f"share{end}"] == pytest.approx(mean)
    assert row["share_low"] < row["share"] < row["share_high"]
    assert row["total_low"] < row["total"] < row["total_high"]
    (pairs,) = found(effects.assign(donor_kind="counterpart"), prompts)
    assert pairs["share_other"] == pytest.approx(row["share_other"])
    assert pairs["share_other_low"] != row["share_other_low"]  # clustered by the prompt's own
    prompts["side"] = np.where(prompts["entity"] % 2, "odd", "even")
    table = mediation_table(effect_products(effects), prompts, cluster="entity", by=["side"])
    assert set(table["side"]) == {"odd", "even"}
    assert table["clusters"].tolist() == [30, 30]


def test_the_total_effect_is_a_root_mean_square_in_nats():
    """Every answer is 3 with the own thought and prompt and -1 with the others."""
    ids = [f"prompt {i}" for i in range(12)]
    key = {"model": "m", "donor_kind": "instance", "donor": "d", "segment": "premise1"}
    values = {"own": 3.0, "changed": 0.0, "own_under_other": 2.0, "changed_under_other": -1.0}
    drawn = {name: [[value, value]] * 12 for name, value in values.items()}
    effects = pd.DataFrame({"prompt_id": ids, **key, "draws": 2, **drawn, "error": ""})
    prompts = pd.DataFrame({"prompt_id": ids, "entity": range(12), "weight": 1.0})
    (row,) = mediation_table(effect_products(effects), prompts, cluster="entity").to_dict("records")
    assert row["total"] == pytest.approx(4.0)
    assert (row["share_own"], row["share_other"]) == pytest.approx((0.25, 0.25))


def test_failed_rows_and_rows_without_draws_are_omitted():
    effects, _ = study(0.5, entities=10)
    effects.loc[3, "error"] = "no thought ended"
    effects.at[5, "draws"] = 0
    assert len(effect_products(effects)) == len(effects) - 2


def test_the_simulation_of_coverage_counts(monkeypatch):
    monkeypatch.setattr(benchmark, "DESIGNS", {"30 entities": {"entities": 30}})
    rows = pd.DataFrame(coverage_rows(2, 0, entities=500))
    assert rows[["coverage, share", "coverage, share_own"]].isin([0, 0.5, 1]).all(axis=None)
