"""Simulated studies of several kinds: drawn, tested, and kept in a folder."""

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.controls.ledger import of_ledger
from benchmarks.controls.logical_forms import (
    of_one_model,
    of_skewed_answers,
    of_ten_models,
    of_three_models,
    pooled_models,
)
from benchmarks.controls.rates import Tested
from benchmarks.controls.robustlr import of_robustlr
from benchmarks.controls.rulebench import of_rulebench
from benchmarks.controls.rulebreakers import across_models, of_rulebreakers
from benchmarks.controls.shares import of_concordance, of_shares
from benchmarks.controls.unlike import of_unlike
from interp.files import write_whole
from interp.statistics import clusters, contrasts, discrimination
from interp_probes.linear import probes as linear

RESAMPLES = 199
"""Number of resamples per test. Reports use up to 9,999, which changes the rates only a little."""


BLOCK = 20
"""Number of studies that are written to disk at a time."""

KINDS: dict[str, Callable[[np.random.Generator, bool], list[Tested]]] = {
    "RULEBREAKERS": of_rulebreakers,
    "RULEBREAKERS, across models": across_models,
    "Unlike clusters": of_unlike,
    "Continuous shares": of_shares,
    "Concordance": of_concordance,
    "Ledger of facts": of_ledger,
    "LogicalForms, one model": of_one_model,
    "LogicalForms, one model, skewed": of_skewed_answers,
    "LogicalForms, three models": of_three_models,
    "LogicalForms, ten models": of_ten_models,
    "LogicalForms, contrasts pooled": pooled_models,
    "RobustLR": of_robustlr,
    "RuleBench": of_rulebench,
}
"""The function that simulates and tests a study of each kind, by name."""


def kept(
    folder: Path, kind: str, studies: Iterable[int], *, planted: bool, seed: int = 0, jobs: int = 1
) -> pd.DataFrame:
    """The rows of `simulated` for these studies and for all other studies in the folder.

    Studies that are in the folder are not simulated again; all others are simulated and written to
    the folder, `BLOCK` at a time.
    """
    effects = "effects" if planted else "nothing"
    stem = f"{re.sub('[^a-z]+', '-', kind.lower())}-{effects}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    parts = [pd.read_parquet(file) for file in sorted(folder.glob(f"{stem}-*.parquet"))]
    there = {int(number) for part in parts for number in part["study"].unique()}
    missing = [number for number in studies if number not in there]
    for block in (missing[start : start + BLOCK] for start in range(0, len(missing), BLOCK)):
        parts.append(simulated(kind, block, planted=planted, seed=seed, jobs=jobs))
        file = folder / f"{stem}-{block[0]:06}-{block[-1]:06}.parquet"
        write_whole(file, partial(parts[-1].to_parquet, index=False))
    whole = pd.concat(parts).sort_values("study", kind="stable", ignore_index=True)
    # Files with overlapping ranges agree, because a study's draws depend only on its number.
    return whole.drop_duplicates(["study", "test"], ignore_index=True)


def simulated(
    kind: str, studies: Iterable[int], *, planted: bool, seed: int = 0, jobs: int = 1
) -> pd.DataFrame:
    """One row per study and test: study, and the fields of Tested.

    Args:
        kind: a name from `KINDS`.
        studies: the numbers of the studies; a study's draws depend on its number and on `seed`.
        planted: whether there are effects.
        seed: the seed of the random draws.
        jobs: number of processes.
    """
    measure = partial(_study, kind, planted, seed)
    if jobs == 1:
        parts = map(measure, studies)
        return pd.concat(parts, ignore_index=True)
    # statsmodels runs the garbage collector at every correction; skip the imported modules.
    with ProcessPoolExecutor(jobs, initializer=gc.freeze) as pool:
        return pd.concat(pool.map(measure, studies, chunksize=5), ignore_index=True)


def _study(kind: str, planted: bool, seed: int, number: int) -> pd.DataFrame:
    rng = np.random.default_rng([seed, planted, number])
    with few_resamples():
        return pd.DataFrame(KINDS[kind](rng, planted)).assign(study=number)


@contextmanager
def few_resamples() -> Iterator[None]:
    """Within the block, tests by resampling use `RESAMPLES` resamples."""
    names = {
        clusters: ("RESAMPLES",),
        discrimination: ("RESAMPLES",),
        contrasts: ("RESAMPLES", "SHUFFLES"),
        linear: ("CONTROLS",),
    }
    former = {(module, name): getattr(module, name) for module in names for name in names[module]}
    for module, name in former:
        setattr(module, name, RESAMPLES)
    try:
        yield
    finally:
        for (module, name), number in former.items():
            setattr(module, name, number)
