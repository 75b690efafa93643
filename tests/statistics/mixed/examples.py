"""Data that the mixed models are fitted to in several tests."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

# Contagious bovine pleuropneumonia (lme4's cbpp): herd, cases, animals, period.
CBPP = """
1 2 14 1 1 3 12 2 1 4 9 3 1 0 5 4 2 3 22 1 2 1 18 2 2 1 21 3 3 8 22 1 3 2 16 2 3 0 16 3 3 2 20 4
4 2 10 1 4 0 10 2 4 2 9 3 4 0 6 4 5 5 18 1 5 0 25 2 5 0 24 3 5 1 4 4 6 3 17 1 6 0 17 2 6 0 18 3
6 1 20 4 7 8 16 1 7 1 10 2 7 3 9 3 7 0 5 4 8 12 34 1 9 2 9 1 9 0 6 2 9 0 8 3 9 0 6 4 10 1 22 1
10 1 22 2 10 0 18 3 10 2 22 4 11 0 25 1 11 5 27 2 11 3 22 3 11 1 22 4 12 2 10 1 12 1 8 2 12 0 6 3
12 0 5 4 13 1 21 1 13 2 24 2 13 0 19 3 13 0 23 4 14 11 19 1 14 0 2 2 14 0 3 3 14 0 2 4 15 1 19 1
15 1 15 2 15 1 15 3 15 0 15 4
"""


def cbpp():
    """Design, outcomes and levels with one row an animal."""
    herd, cases, animals, period = np.array(CBPP.split(), dtype=int).reshape(-1, 4).T
    outcomes = np.concatenate(
        [np.arange(n) < hits for hits, n in zip(cases, animals, strict=True)]
    ).astype(float)
    period = np.repeat(period, animals)
    design = np.column_stack([period > 0, *(period == k for k in (2, 3, 4))]).astype(float)
    return design, outcomes, np.repeat(herd - 1, animals)[:, None]


def crossed():
    """600 rows of a formula that R evaluates too: 12 levels crossed with 5."""
    i = np.arange(600)
    levels = np.column_stack([i % 12, i // 12 % 5])
    x, f = np.sin(i * 1.7), np.cos(levels[:, 0] * 2.3)
    chance = np.sin(i * 12.9898) * 43758.5453
    log_odds = 0.4 + 0.8 * x - 0.7 * f + 0.5 * x * f
    log_odds += 0.9 * np.sin(levels[:, 0] * 5.1) + 0.6 * np.cos(levels[:, 1] * 2.7)
    outcomes = (chance - np.floor(chance) < expit(log_odds)).astype(float)
    xs, fs = ((column - column.mean()) / column.std(ddof=1) for column in (x, f))
    return np.column_stack([np.ones(600), xs, fs, xs * fs]), outcomes, levels


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
    return pd.DataFrame(
        {
            "y": y,
            "one": np.array(list("abc"))[one],
            "two": np.array(list("tu"))[two],
            "x": x,
            "model": [f"model {g}" for g in group],
        }
    )
