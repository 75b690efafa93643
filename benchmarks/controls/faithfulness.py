"""False verdicts, coverage and power of `interp faithfulness`, on simulated studies.

    python -m benchmarks.controls.faithfulness --studies 500

No model is run. Each method has its own probability of finding a prompt's top segment (a hit); hits
are correlated within prompts and clusters. The functions that make the page's tables judge the
hits. The output gives, by setting and size, the shares of studies:

- worse: in which at least one of the best methods is judged weaker or refuted;
- above: in which at least one method that is no better than chance is shown to be above chance;
- best: whose interval for the method with the highest measured value contains its true value;
- all: whose intervals for all methods contain the methods' true values;
- ahead: whose intervals for the lead of the method with the highest measured value contain all true
  differences.

It also gives the mean bias of that method's value and of its corrected value; the mean number of
methods that may be the best; and, among the methods that are truly worse than the best (or above
chance), the share that is shown to be worse (or above chance).
"""

import argparse
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import ndtri

from interp.attribution.registry import find_method, method_names
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.judging.metrics import METRICS
from interp.judging.ranking import (
    check_table,
    difference_table,
    judge,
    metric_table,
)
from interp.judging.trials import CONTROL, Contender, Trials
from interp.judging.verdicts import REFUTED, WEAKER, verdict_table

SIZES = ((12, 2), (24, 2), (24, 8))
"""Number of clusters, and number of prompts in each."""

METHODS = (5, 20)

CHANCE = 0.5


class Setting(NamedTuple):
    """The methods' true values, and the correlation of their hits."""

    name: str
    values: tuple[float, ...]
    """True values; repeated in turn until every method has one."""
    prompt: float = 0.3
    """Share of a hit's variance that all methods have in common within a prompt."""
    cluster: tuple[float, ...] = (0.2,)
    """Each method's share of variance that a cluster has in common; repeated like `values`."""


SETTINGS = (
    Setting("all at chance", (CHANCE,)),
    Setting("all 0.8", (0.8,)),
    Setting("all 0.8, alike in prompts", (0.8,), prompt=0.7, cluster=(0.05,)),
    Setting("all 0.8, half alike in clusters", (0.8,), prompt=0.0, cluster=(0.9, 0.0)),
    Setting("0.95, 0.8, three of five at chance", (0.95, 0.8, CHANCE, CHANCE, CHANCE)),
)

NAMES = [name for name in method_names() if not find_method(name).reads_coalitions][:10]


def hits(
    rng: np.random.Generator, setting: Setting, methods: int, clusters: int, prompts: int
) -> Float[np.ndarray, "methods clusters prompts"]:
    """Whether each method finds the top segment of each prompt: 1 or 0."""
    shared = np.resize(setting.cluster, methods)[:, None, None]
    latent = (
        np.sqrt(setting.prompt) * rng.normal(size=(1, clusters, prompts))
        + np.sqrt(shared) * rng.normal(size=(methods, clusters, 1))
        + np.sqrt(1 - setting.prompt - shared) * rng.normal(size=(methods, clusters, prompts))
    )
    return (latent < ndtri(np.resize(setting.values, methods))[:, None, None]).astype(float)


def trials_of_hits(found: Float[np.ndarray, "methods clusters prompts"]) -> Trials:
    """Scores that give these hits on prompts of two segments, the first with the larger effect."""
    methods, clusters, prompts = found.shape
    number = clusters * prompts
    flat = found.reshape(methods, number)
    controls = (ORACLE, REVERSED, RANDOM, LENGTH, POSITION)
    own = [Contender(NAMES[place // 2], ("sum", "mean")[place % 2]) for place in range(methods)]
    return Trials(
        segments=("premise1", "premise2"),
        prompt_ids=tuple(f"p{place}" for place in range(number)),
        contenders=(*own, *(Contender(name, CONTROL) for name in controls)),
        has_sign=np.zeros(methods + len(controls), dtype=bool),
        scores=np.stack([flat, 1 - flat], axis=-1),
        tokens=np.ones((number, 2)),
        places=np.tile([1.0, 2.0], (number, 1)),
        values=np.tile([0.0, 2.0, 1.0, 3.0], (number, 1)),
        clusters=tuple(f"c{place // prompts}" for place in range(number)),
        weights=np.ones(number),
        ratio=None,
        planted=np.full(number, np.nan),
    )


def study(
    rng: np.random.Generator, setting: Setting, methods: int, clusters: int, prompts: int
) -> dict[str, float]:
    """The results of one study, compared with the truth."""
    trials = trials_of_hits(hits(rng, setting, methods, clusters, prompts))
    judgements = judge([trials], METRICS[:1])
    differences = difference_table(judgements)
    # Whether the metric ranks the controls correctly is not tested here.
    checks = check_table(judgements).assign(used=True)
    found = verdict_table(metric_table(judgements), checks, differences)
    values = np.resize(setting.values, methods)
    truth = pd.Series(
        values, index=pd.MultiIndex.from_tuples(trials.contenders[:methods])
    ).to_dict()
    true = np.array([truth[pair] for pair in zip(found["method"], found["score"], strict=True)])
    worse = found["verdict"].isin([WEAKER, REFUTED]).to_numpy()
    above = (found["low"] > found["chance"]).to_numpy()
    held = ((found["low"] <= true) & (found["high"] >= true)).to_numpy()
    first = int(found["corrected"].notna().argmax())
    return {
        "worse": float(worse[true == values.max()].any()),
        "above": float(above[true == CHANCE].any()),
        "best": float(held[first]),
        "all": float(held.all()),
        "ahead": _ahead(differences, truth, true[first]),
        "bias": found["value"][first] - true[first],
        "corrected": found["corrected"][first] - true[first],
        "set": float(found["may_be_best"].sum()),
        "power, worse": _share(worse[true < values.max()]),
        "power, above": _share(above[true > CHANCE]),
    }


def _ahead(differences: pd.DataFrame, truth: dict[tuple[str, str], float], best: float) -> float:
    """Whether all intervals contain the true lead of the method with the highest measured value."""
    rows = differences.dropna(subset=["low"])
    true = best - np.array(
        [truth[pair] for pair in zip(rows["method"], rows["score"], strict=True)]
    )
    return float(((rows["low"] <= true + 1e-9) & (rows["high"] >= true - 1e-9)).all())


def _share(judged: np.ndarray) -> float:
    return float(judged.mean()) if len(judged) else float("nan")


def rates(setting: Setting, methods: int, clusters: int, prompts: int, studies: int) -> pd.Series:
    """The means over studies; the random draws of a study depend only on its number."""
    drawn = (np.random.default_rng([0, number]) for number in range(studies))
    return pd.DataFrame([study(rng, setting, methods, clusters, prompts) for rng in drawn]).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=500)
    options = parser.parse_args()
    for setting in SETTINGS:
        print(f"\n{setting.name}\n")
        for number, (clusters, prompts) in enumerate(SIZES):
            for methods in METHODS:
                row = rates(setting, methods, clusters, prompts, options.studies)
                if number == 0 and methods == METHODS[0]:
                    print(f"| size | methods | {' | '.join(row.index)} |\n{'|---' * 12}|")
                cells = " | ".join("" if np.isnan(cell) else f"{cell:.3f}" for cell in row)
                print(f"| {clusters} x {prompts} | {methods} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
