"""Numbers of tables against second implementations, and what has no number or no interval."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from interp.estimates import compute
from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Median, Plain, Share, Table
from interp.measurements.circuits.tables import _HEIGHTS, _Curve
from interp.statistics import means
from interp.statistics.clusters import LEAST_ERROR
from interp.statistics.means import (
    FINE,
    NO_DIVISOR,
    NO_TRIALS,
    UNBOUNDED,
    ZERO,
    clusters_for,
    estimates,
    least_p,
)
from interp.statistics.proportions import difference_drawn, proportions
from interp.statistics.summaries import weighted_median, weighted_sd


def table_of(*numbers, resamples=199, family=("model",), **options):
    return Table(
        name="t",
        title="T",
        text="T.",
        by=["model", "row"],
        measured="edges",
        numbers=numbers,
        trials="pairs",
        family=family,
        resamples=resamples,
        **options,
    )


def trials_of(values, *, cluster=None, **columns):
    size = len(values)
    cluster = [f"c{number:03}" for number in range(size)] if cluster is None else cluster
    return pd.DataFrame({"model": "m", "row": 0, "x": values, "cluster": cluster, **columns})


def only(table, trials):
    (row,) = estimate(table, trials).to_dict("records")
    return row


RATIO = table_of(Mean("ratio", "of means", "share", of="x", over="gap"))


def test_the_interval_of_a_ratio_is_that_of_a_studentized_bootstrap_written_out():
    rng = np.random.default_rng(3)
    city = np.repeat(np.arange(14), rng.integers(1, 6, 14))
    gap = rng.uniform(1.0, 3.0, len(city))
    x = 0.6 * gap + rng.exponential(size=len(city)) - 1
    weight = rng.choice([1.0, 3.0], len(city))

    def ratio_and_error(cities):
        above = [sum(weight[city == c] * x[city == c]) for c in cities]
        below = [sum(weight[city == c] * gap[city == c]) for c in cities]
        ratio = sum(above) / sum(below)
        away = [a - ratio * b for a, b in zip(above, below, strict=True)]
        return ratio, np.sqrt(14 / 13 * sum(a**2 for a in away)) / sum(below)

    ratio, error = ratio_and_error(range(14))
    distances = []
    for counts in np.random.default_rng(0).multinomial(14, [1 / 14] * 14, size=199):
        own, its_error = ratio_and_error(np.repeat(np.arange(14), counts))
        distances.append((own - ratio) / max(its_error, LEAST_ERROR * error))
    low, high = ratio - np.sort(distances)[[-5, 4]] * error
    found = only(RATIO, trials_of(x, cluster=city, gap=gap, weight=weight))
    assert found["ratio"] == pytest.approx(sum(weight * x) / sum(weight * gap))
    assert (found["ratio_low"], found["ratio_high"]) == pytest.approx((low, high))


def test_a_geometric_mean_is_that_of_the_logarithms():
    values = np.random.default_rng(1).lognormal(size=20)
    logs = Mean("size", "size", "logits", of="x", logs=True, tested=0.0)
    plain = Mean("size", "size", "logits", of="x", tested=0.0)
    found, expected = (
        only(table_of(number), trials_of(own))
        for number, own in ((logs, values), (plain, np.log(values)))
    )
    names = ["size", "size_low", "size_high"]
    assert [found[name] for name in names] == pytest.approx(
        np.exp([expected[name] for name in names])
    )
    assert found["p"] == expected["p"]
    found = only(table_of(logs), trials_of([0.0, *values]))
    assert found["size"] == 0
    assert np.isnan([found["size_low"], found["p"]]).all()
    assert found["note"] == ZERO
    with pytest.raises(AssertionError, match="size: a geometric mean"):
        estimate(table_of(logs), trials_of([-1.0, *values]))


def test_a_median_has_the_interval_of_the_share_below_it_written_out():
    rng = np.random.default_rng(6)
    city, x = np.repeat(np.arange(12), 5), rng.lognormal(size=60)
    away = (x < np.median(x)) - 0.5
    sums = [away[city == one].sum() for one in range(12)]
    half = student.ppf(0.975, 11) * np.sqrt(12 / 11 * np.square(sums).sum()) / 60
    table = table_of(Median("x", "x", "logits"))
    assert not table.main.additive
    found = only(table, trials_of(x, cluster=city))
    ends = np.quantile(x, [0.5, 0.5 - half, 0.5 + half], method="hazen")
    assert [found["x"], found["x_low"], found["x_high"]] == pytest.approx(ends.tolist())
    few = only(table, trials_of(x, cluster=city // 2))
    assert np.isnan(few["x_low"]) and few["note"].startswith("not tested: 6 clusters")


@pytest.mark.parametrize(
    ("clusters", "continuous"), [(1, False), (5, False), (12, False), (12, True)]
)
def test_shares_have_the_interval_of_proportions(clusters, continuous):
    rng = np.random.default_rng(2)
    values = rng.uniform(0.05, 0.09, 40) if continuous else rng.random(40) < 0.3
    weight = rng.choice([1.0, 4.0], 40)
    trials = trials_of(values, cluster=np.arange(40) % clusters, weight=weight)
    share = Share("turned", "turned", "share", of="x", continuous=continuous)
    found = only(table_of(share), trials)
    (expected,) = proportions(
        trials.sort_values(["cluster", "weight", "x"]),
        values=["x"],
        by=["row"],
        cluster="cluster",
        weight="weight",
        continuous=continuous,
    ).to_dict("records")
    names = ["share", "low", "high", "note"]
    ours = [found[name] for name in ("turned", "turned_low", "turned_high", "note")]
    assert ours[:3] == pytest.approx([expected[name] for name in names[:3]], nan_ok=True)
    assert ours[3] == expected["note"]
    assert (found["pairs"], found["clusters"]) == (40, clusters)


def test_a_ratio_whose_divisor_may_be_zero_has_no_interval():
    rng = np.random.default_rng(4)
    gap = np.tile([1.0, -1.0], 10)
    x = rng.normal(size=20)
    found = only(RATIO, trials_of(x, gap=gap))
    assert np.isnan(found["ratio"]) and found["note"] == NO_DIVISOR
    found = only(RATIO, trials_of(x, gap=gap + 0.05))
    assert found["ratio"] == pytest.approx(x.sum() / (gap + 0.05).sum())
    assert np.isnan([found["ratio_low"], found["ratio_high"]]).all()
    assert found["note"] == UNBOUNDED
    # Of 20 gaps, three in a hundred resamples have a mean below 0: an interval remains.
    found = only(RATIO, trials_of(x, gap=gap + 0.6))
    assert np.isfinite([found["ratio_low"], found["ratio_high"]]).all()
    tested = table_of(Mean("ratio", "of means", "share", of="x", over="gap", tested=0.0))
    found = only(tested, trials_of(x, gap=gap + 0.05))
    assert np.isnan([found["p"], found["p_holm"]]).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_leaves_no_interval(value):
    found = only(table_of(Mean("x", "x", "logits", tested=0.0)), trials_of([value, *range(12)]))
    assert found["x"] == value
    assert np.isnan([found["x_low"], found["x_high"], found["p"]]).all()
    assert found["note"] == UNBOUNDED


def test_weights_that_are_missing_are_one_and_those_of_zero_count_nothing():
    table = table_of(Mean("x", "x", "logits"), Plain("y", "y", "share", of="x", why="x"))
    weights = np.array([np.nan, 1.0, 0.0] * 4)
    values = np.arange(12.0)
    found = only(table, trials_of(values, weight=weights))
    assert found["x"] == found["y"] == pytest.approx(values[weights != 0].mean())
    found = only(table, trials_of(values, weight=0.0))
    assert np.isnan(found["x"]) and found["note"] == NO_DIVISOR


def test_what_only_some_rows_lack_is_noted_and_what_none_has_is_not():
    table = table_of(
        Mean("x", "x", "logits"), Mean("y", "y", "logits"), Plain("z", "z", "share", why="x")
    )
    rng = np.random.default_rng(0)
    one = trials_of(rng.normal(size=12), y=rng.normal(size=12), z=np.nan)
    both = pd.concat([one, one.assign(row=1, y=np.nan)])
    assert estimate(table, both)["note"].tolist() == ["", f"y: {NO_TRIALS}"]
    given = both.assign(why=np.where(both["row"] == 1, "not asked", ""))
    assert estimate(table, given)["note"].tolist() == ["", "not asked"]


def test_a_row_without_a_cluster_only_makes_sure_of_its_combination():
    table = table_of(Mean("x", "x", "logits", tested=0.0))
    trials = pd.concat(
        [trials_of(np.arange(12.0)), pd.DataFrame({"model": ["m"], "row": [9], "x": [7.0]})]
    )
    frame = estimate(table, trials)
    assert frame["row"].tolist() == [0, 9]
    assert frame["pairs"].tolist() == frame["clusters"].tolist() == [12, 0]
    assert frame["note"].tolist() == ["", NO_TRIALS]
    assert estimate(table, trials[:0]).empty


def test_sizes_of_parts_do_not_matter(monkeypatch):
    table = table_of(Mean("x", "x", "logits", tested=0.0))
    rng = np.random.default_rng(0)
    trials = pd.concat([trials_of(rng.normal(size=12)).assign(row=row) for row in range(7)])
    whole = estimate(table, trials)
    monkeypatch.setattr(compute, "_AT_ONCE", 30)
    monkeypatch.setattr(means, "_HELD", 400)
    pd.testing.assert_frame_equal(whole, estimate(table, trials), rtol=1e-12)


def test_rows_are_ranked_by_size_within_their_part():
    table = table_of(Mean("x", "x", "logits"), family=(), split=["model"], ranked="x")
    means_of = {0: 0.1, 1: -3.0, 2: 2.0}
    trials = pd.concat([trials_of([mean] * 3).assign(row=row) for row, mean in means_of.items()])
    frame = estimate(table, pd.concat([trials, trials.assign(model="n")]))
    assert frame["row"].tolist() == [1, 2, 0] * 2
    assert frame["rank"].tolist() == [1, 2, 3] * 2


@pytest.mark.parametrize("tests", [1, 2, 7, 40, 140, 900, 999, 1000, 5000])
def test_so_many_clusters_are_needed_and_no_fewer(tests):
    needed = clusters_for(tests)
    if tests >= 0.05 / (2 / (1 + FINE)):
        assert needed is None
        return
    assert tests * least_p(needed) < 0.05
    assert needed == 10 or tests * least_p(needed - 1) >= 0.05


@pytest.mark.parametrize("clusters", [10, 11, 13, 30])
def test_the_least_p_is_reached_where_all_clusters_agree_and_nowhere_undercut(clusters):
    rng = np.random.default_rng(0)
    sums = np.vstack(
        [np.ones(clusters), rng.uniform(5, 6, (3, clusters)), rng.normal(size=(3, clusters))]
    )
    found = estimates(sums, np.ones_like(sums), np.ones(sums.shape, dtype=bool))
    assert found.p[0] == found.least[0]
    assert found.p[1:4] == pytest.approx(least_p(clusters))
    assert (found.p >= found.least).all()
    assert found.flat.tolist() == [True] + [False] * 6


@pytest.mark.parametrize("height", _HEIGHTS)
def test_the_error_of_a_circuits_area_is_that_of_leaving_clusters_out(height):
    rng = np.random.default_rng(5)
    clusters, shares = 300, np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    gaps = rng.normal(3.0, 0.5, clusters)
    kept = gaps[:, None, None] * np.array([0.1, 0.4, 0.8, 1.2, 0.9])
    kept = kept + rng.normal(0, 0.4, (clusters, 2, 5))
    curve = _Curve({}, shares, kept, gaps, clusters)
    (area,), (error,) = curve._area_and_error(_HEIGHTS[height], np.ones((1, clusters)))
    without = np.ones((clusters, clusters)) - np.eye(clusters)
    left, _ = curve._area_and_error(_HEIGHTS[height], without)
    jackknife = np.sqrt((clusters - 1) / clusters * ((left - left.mean()) ** 2).sum())
    assert error == pytest.approx(jackknife, rel=0.03)

    f = kept.sum(axis=0) / gaps.sum()
    heights = np.abs(1 - f) if height == "cmd" else np.minimum(f, 1)
    by_hand = np.mean(
        [
            sum((one[i] + one[i + 1]) / 2 * (shares[i + 1] - shares[i]) for i in range(4))
            for one in heights
        ]
    )
    assert area == pytest.approx(by_hand)
    found, low, high = curve.area(_HEIGHTS[height])
    assert found == area and low < area < high
    assert (high - low) / (2 * 1.96) == pytest.approx(error, rel=0.1)


def test_a_difference_of_two_shares_of_the_same_trials_has_the_interval_of_two():
    rng = np.random.default_rng(4)
    trials = trials_of(rng.random(30) < 0.7, y=rng.random(30) < 0.4, cluster=np.arange(30) % 11)
    trials["y"] = trials["y"].astype(float).mask(trials.index == 3)
    found = only(table_of(Share("beyond", "d", "share", of="x", minus="y")), trials)
    known = trials.dropna(subset="y").assign(trials=1.0)
    one, other = (
        known.assign(hits=known[name].astype(float)).groupby("cluster")[["hits", "trials"]].sum()
        for name in "xy"
    )
    assert found["beyond"] == pytest.approx(known["x"].mean() - known["y"].astype(float).mean())
    ends = found["beyond_low"], found["beyond_high"]
    assert ends == pytest.approx(difference_drawn(one, other, paired=True).ends())
    alone = only(table_of(Share("b", "d", "share", of="x", minus="y")), trials.assign(cluster="c"))
    assert np.isnan([alone["b_low"], alone["b_high"]]).all() and alone["note"]


def test_trials_are_described_and_counted_under_other_names_and_in_another_order():
    table = table_of(
        Mean("x", "x", "logits"),
        Plain("sd", "sd", "logits", of="x", how=weighted_sd, why="x"),
        Plain("middle", "median", "logits", of="x", how=weighted_median, why="x"),
        Mean("y", "of some rows", "logits", some=True),
        counted="n",
        clusters="rules",
        order=["n", "sd"],
        family=(),
    )
    trials = trials_of([1.0, 2.0, 4.0], cluster=["a", "a", "b"], y=np.nan)
    alone = trials_of([3.0], y=1.0).assign(row=1)
    first, second = estimate(table, pd.concat([trials, alone])).to_dict("records")
    assert [*first][:4] == ["model", "row", "n", "sd"]
    assert (first["n"], first["sd"], first["middle"]) == (3, pytest.approx(1.5275252), 2.0)
    assert (first["rules"], second["rules"]) == (2, 1)
    assert np.isnan(second["sd"]) and "sd: " in second["note"]
    assert "y: " not in first["note"]


def test_rows_without_the_main_number_count_the_clusters_of_another():
    numbers = (Mean(name, name, "logits", some=True) for name in ("x", "y"))
    one = trials_of([1.0, 2.0, 4.0], cluster=["a", "a", "b"], y=np.nan)
    other = trials_of([np.nan] * 3, y=[1.0, 3.0, 2.0]).assign(row=1)
    table = estimate(table_of(*numbers, family=()), pd.concat([one, other]))
    assert table["clusters"].tolist() == [2, 3]
