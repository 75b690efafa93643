import numpy as np
import pandas as pd
import pytest

from interp.report.figures.points import point_cloud


def test_points_of_one_place_are_told_apart_and_none_moves_far():
    table = pd.DataFrame({"x": np.full(30, 0.5), "y": np.ones(30), "n": range(1, 31)})
    (cloud,) = point_cloud(table, x="x", y="y", size="n").collections
    up = np.asarray(cloud.get_offsets())[:, 1]
    assert len(set(up)) == 30
    assert np.abs(up - 1).max() <= 0.02
    assert (np.diff(cloud.get_sizes()) > 0).all()


@pytest.mark.parametrize(("rows", "dense"), [(50, False), (600, True)])
def test_many_points_become_a_density(rows, dense):
    values = np.random.default_rng(0).normal(size=(rows, 2))
    table = pd.DataFrame(values, columns=["familiarity", "ratio"])
    table.loc[0, "ratio"] = np.nan
    ax = point_cloud(table, x="familiarity", y="ratio")
    assert ax.get_xlabel() == f"familiarity (n = {rows - 1}; undefined: 1)"
    assert (len(ax.get_figure().axes) == 2) == dense
