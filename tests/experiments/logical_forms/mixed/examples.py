"""Data that the mixed models are fitted to in several tests."""

from pathlib import Path

import numpy as np
import pandas as pd


def sleepstudy():
    file = Path(__file__).parent / "data" / "sleepstudy.csv"
    frame = pd.read_csv(file, comment="#", dtype={"subject": str})
    frame["phase"] = pd.cut(frame["days"], [-1, 2, 5, 9], labels=["early", "middle", "late"])
    return frame


def simulated(seed, *, groups, rows, sds=(0.3, 0.1), residual=0.2, correlation=0.4):
    """y = 0.5 + 0.2 [b] - 0.1 [c] + 0.15 [u] - 0.05 x, with random intercepts and slopes."""
    rng = np.random.default_rng(seed)
    cross = sds[0] * sds[1] * correlation
    random = rng.multivariate_normal([0, 0], [[sds[0] ** 2, cross], [cross, sds[1] ** 2]], groups)
    group = np.repeat(np.arange(groups), rows)
    one, two = rng.integers(3, size=groups * rows), rng.integers(2, size=groups * rows)
    x = rng.normal(size=groups * rows)
    y = 0.5 + np.array([0.0, 0.2, -0.1])[one] + 0.15 * two - 0.05 * x
    y += random[group, 0] + random[group, 1] * x + residual * rng.normal(size=groups * rows)
    letters = {"one": np.array(list("abc"))[one], "two": np.array(list("tu"))[two]}
    return pd.DataFrame({"y": y, **letters, "x": x, "model": [f"model {g}" for g in group]})


def between_models(seed, *, models=10, rows=120, sd=0.05):
    """No factor has an effect on average; each level of `one` deviates in each model."""
    rng = np.random.default_rng(seed)
    model = np.repeat(np.arange(models), rows)
    one, two = rng.integers(3, size=models * rows), rng.integers(2, size=models * rows)
    y = 0.6 + rng.normal(0, 0.1, models)[model] + rng.normal(0, sd, (models, 3))[model, one]
    letters = {"one": np.array(list("abc"))[one], "two": np.array(list("tu"))[two]}
    y += 0.15 * rng.normal(size=models * rows)
    return pd.DataFrame({"y": y, **letters, "model": [f"model {g}" for g in model]})
