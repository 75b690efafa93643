"""Data that the mixed models are fitted to in several tests."""

from pathlib import Path

import numpy as np
import pandas as pd


def sleepstudy():
    file = Path(__file__).parent / "data" / "sleepstudy.csv"
    frame = pd.read_csv(file, comment="#", dtype={"subject": str})
    frame["phase"] = pd.cut(frame["days"], [-1, 2, 5, 9], labels=["early", "middle", "late"])
    return frame


def between_models(seed, *, models=10, rows=120, sd=0.05):
    """Nothing has an effect on average; each level of `one` deviates in each model; x is noise."""
    rng = np.random.default_rng(seed)
    model = np.repeat(np.arange(models), rows)
    one, two = rng.integers(3, size=models * rows), rng.integers(2, size=models * rows)
    y = 0.6 + rng.normal(0, 0.1, models)[model] + rng.normal(0, sd, (models, 3))[model, one]
    letters = {"one": np.array(list("abc"))[one], "two": np.array(list("tu"))[two]}
    y += 0.15 * rng.normal(size=models * rows)
    x = rng.normal(size=models * rows)
    return pd.DataFrame({"y": y, **letters, "x": x, "model": [f"model {g}" for g in model]})
