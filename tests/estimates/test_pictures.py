"""What the browser shows of declared tables: grids and bars of each pair."""

import numpy as np
import pandas as pd
import pytest

from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Plain
from interp.estimates.pictures import bars, curve, grids
from interp.estimates.shown import Estimated
from tests.estimates.test_compute import table_of, trials_of


def test_a_grid_has_the_numbers_of_its_pair_alone():
    rng = np.random.default_rng(0)
    table = table_of(
        Mean("x", "x", "logits"),
        Mean("ratio", "of means", "share", of="x", over="gap"),
        Mean("none", "not measured", "logits"),
        Plain("y", "y", "share", of="x", why="x"),
    )
    parts = [
        trials_of(
            rng.normal(size=4), gap=rng.uniform(1, 2, 4), none=np.nan, weight=[1, 3, 1, 1]
        ).assign(row=row, model=model, pair_id=["a", "a", "b", "c"])
        for row in (1.0, 2.0)
        for model in "mn"
    ]
    trials = pd.concat(parts)
    prompts = pd.DataFrame({"pair_id": ["a", "b"]})
    found = [*grids(Estimated(table, trials), prompts, "T", rows="row", columns="model")]
    assert [(pair, grid.of["number"]) for pair, grid in found] == [
        (pair, number) for pair in "ab" for number in ("x", "ratio")
    ]
    for pair, grid in found:
        assert (list(grid.rows), list(grid.columns)) == (["row 1", "row 2"], ["m", "n"])
        for i, row in enumerate((1.0, 2.0)):
            for j, model in enumerate("mn"):
                same = (trials["row"] == row) & (trials["model"] == model)
                own = trials[same & (trials["pair_id"] == pair)]
                above = (own["x"] * own["weight"]).sum()
                below = own["weight"] * (own["gap"] if grid.of["number"] == "ratio" else 1.0)
                assert grid.values[i][j] == pytest.approx(above / below.sum())


def test_bars_are_the_largest_of_each_pair_and_part():
    trials = trials_of([1.0, -5.0, 3.0, 2.0], pair_id="a", name=["p", "q", "r", "s"])
    table = table_of(Mean("x", "x", "logits"), family=(), split=["model"], most=2)
    ((pair, panel),) = bars(trials, table, value="x", note="N")
    assert (pair, panel.of) == ("a", {"model": "m"})
    assert panel.groups == {"": [("q", -5.0), ("r", 3.0)]}


def test_a_curve_has_a_line_for_each_number_and_label_and_a_band_for_each_interval():
    table = table_of(Mean("x", "x", "logits"), Plain("y", "y", "logits", why="x"), family=())
    rng = np.random.default_rng(0)
    parts = [
        trials_of(rng.normal(size=12), y=row).assign(row=row, model=model)
        for row in (1.0, 2.0)
        for model in "mn"
    ]
    frame = estimate(table, pd.concat(parts))
    axes = curve(table, frame, x="row", lines={"x": "{model}", "y": "{model}, plain"})
    drawn = {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()}
    assert drawn.keys() == {"m", "n", "m, plain", "n, plain"}
    assert drawn["n"] == frame.loc[frame["model"] == "n", "x"].tolist()
    assert drawn["m, plain"] == [1.0, 2.0]
    assert [len(band.get_paths()) for band in axes.collections] == [1, 1, 0, 0]
    nothing = frame.assign(x=np.nan, y=np.nan, x_low=np.nan, x_high=np.nan)
    axes = curve(table, nothing, x="row", lines={"x": "x"})
    assert np.isnan(axes.get_lines()[0].get_ydata()).all()
