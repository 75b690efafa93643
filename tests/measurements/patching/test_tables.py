import re

import numpy as np
import pandas as pd
import pytest

from interp.estimates.compute import estimate
from interp.measurements.patching.tables import EFFECTS, effect_trials, verification_table
from interp.statistics.means import NO_SPREAD


def patches_of(effects, *, role="last", method="exact", layer=0, site="resid_pre", **columns):
    """One row a pair."""
    same = {"model": "m", "direction": "denoising", "source": "counterpart", "head": None}
    rows = pd.DataFrame({"pair_id": [f"p{index}" for index in range(len(effects))], **same})
    where = {"role": role, "method": method, "layer": layer, "site": site, "position": None}
    flipped = [effect > 1 for effect in effects]
    return rows.assign(**where, effect=effects, flipped=flipped).assign(**columns)


def pairs_of(gaps, recognized=True):
    names = [f"p{index}" for index in range(len(gaps))]
    same = {"model": "m", "direction": "denoising", "base_metric": 1.0, "recognized": recognized}
    metrics = [1.0 + gap for gap in gaps]
    return pd.DataFrame({"pair_id": names, "cluster": names, "source_metric": metrics, **same})


def effect_table(patches, pairs):
    return estimate(EFFECTS, effect_trials([patches], pairs))


def only(table, recognized="all"):
    (row,) = table[table["recognized"] == recognized].to_dict("records")
    return row


def test_means_shares_and_flips():
    table = effect_table(patches_of([1.0, 2.0, 3.0] * 4), pairs_of([2.0, 4.0, 6.0] * 4))
    row = only(table, "yes")
    assert row["effect"] == only(table)["effect"] == pytest.approx(2)
    assert row["recovered"] == pytest.approx(0.5)
    assert row["flipped"] == pytest.approx(2 / 3)
    assert row["pairs"] == row["clusters"] == 12
    assert row["note"] == f"recovered: {NO_SPREAD}"  # one half in each pair
    assert row["effect_low"] < 2 < row["effect_high"]
    assert np.isnan(only(table)["recovered"])
    assert re.match(r"no recovered share: .*recognized pairs$", only(table)["note"])


def test_pairs_that_the_model_fails_do_not_share_in_what_is_recovered():
    """Their differences are small and of the other sign: over all pairs the share would be 3.1."""
    gaps = np.r_[np.full(20, -5.4), np.full(28, 0.22)]
    recognized = np.arange(48) < 20
    table = effect_table(patches_of(np.full(48, -5.34)), pairs_of(gaps, recognized))
    assert only(table, "yes")["recovered"] == pytest.approx(5.34 / 5.4)
    assert only(table)["effect"] == pytest.approx(-5.34)
    assert np.isnan([only(table, group)["recovered"] for group in ("all", "no")]).all()


def test_what_a_counterpart_does_beyond_its_control():
    """Of the pairs in which the counterpart has something of its own to patch in."""
    patches = pd.concat(
        [
            patches_of([-5.0, -4.0, -6.0, 0.0] * 4),
            patches_of([-4.0, -5.0, -5.0, -5.0] * 4, source="control"),
            patches_of([3.0, 3.0, 3.0, 3.0] * 4, role="city"),
            patches_of([0.0, 1.0, 0.0, -1.0] * 4, role="city", source="control"),
        ]
    )
    table = effect_table(patches, pairs_of([4.0, 4.0, 4.0, 4.0] * 4))
    assert table["source"].unique().tolist() == ["counterpart", "control", "beyond control"]
    rows = table[table["recognized"] == "yes"].set_index(["role", "source"])
    assert rows.loc[("last", "counterpart"), "effect"] == pytest.approx(-15 / 4)
    assert rows.loc[("last", "control"), "effect"] == pytest.approx(-19 / 4)
    beyond = rows.loc[("last", "beyond control")]
    alone = only(effect_table(patches_of([-1.0, 1.0, -1.0] * 4), pairs_of([4.0] * 12)), "yes")
    assert beyond[["effect", "pairs"]].tolist() == pytest.approx([alone["effect"], 12])
    for name in ("effect_low", "effect_high", "p"):  # the same pairs, resampled in another order
        assert beyond[name] == pytest.approx(alone[name], abs=0.05)
    assert rows.loc[("city", "beyond control"), "effect"] == pytest.approx(3.0)
    assert rows.loc[("city", "beyond control"), "recovered"] == pytest.approx(0.75)


def test_pairs_are_clustered_and_split_by_recognition_and_what_is_undefined_is_said():
    recognized = [True, False, False]
    table = effect_table(patches_of([1.0, 4.0, 6.0]), pairs_of([2.0, 2.0, 2.0], recognized))
    assert only(table, "yes")["effect"] == pytest.approx(1)
    assert only(table, "no")["effect"] == pytest.approx(5)
    assert re.match(r"not tested: 1 cluster; .*\b10\b", only(table, "yes")["note"])
    assert np.isnan(only(table, "yes")["effect_low"])
    pairs = pairs_of([1.0, -1.0] * 12).assign(cluster=np.tile(range(12), 2))
    table = effect_table(patches_of([1.0, 2.0] * 12), pairs)
    row = only(table, "yes")
    assert (row["pairs"], row["clusters"]) == (24, 12)
    assert np.isnan(row["recovered"])
    note = "no recovered share: the mean difference is below one standard deviation"
    assert row["note"] == note
    assert (only(table, "no")["note"], only(table, "no")["pairs"]) == ("no such pairs", 0)


def test_tokens_of_a_role_count_once_for_each_pair_and_roles_stand_beside_their_segment():
    patches = pd.concat([patches_of([1.0, 3.0], position=3), patches_of([2.0, 3.0], position=4)])
    row = only(effect_table(patches, pairs_of([1.0, 1.0])))
    assert (row["effect"], row["pairs"]) == (pytest.approx((1.5 + 3) / 2), 2)
    roles = ["template", "premise1", "premise1_entity_a", "last", "premise1_entity_b"]
    patches = pd.concat([patches_of([1.0, 2.0], role=role) for role in roles])
    table = effect_table(patches, pairs_of([1.0, 1.0]))
    assert table["role"].drop_duplicates().tolist() == [*roles[:3], *roles[:2:-1]]


def test_verification_compares_cell_by_cell():
    estimates = pd.concat(
        [
            patches_of([1.0, 2.0, 4.0], method="gradient"),
            patches_of([9.0], method="gradient", layer=1),
        ]
    )
    table = verification_table([pd.concat([estimates, patches_of([1.5, 2.0, 3.0])])])
    (row,) = table.to_dict("records")
    assert row["cells"] == 3
    assert row["mean_error"] == pytest.approx(0.5)
    assert row["largest_error"] == pytest.approx(1)
    assert row["rho"] == pytest.approx(1)
