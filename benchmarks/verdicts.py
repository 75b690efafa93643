"""`python -m benchmarks.verdicts DIR OTHER`: whether methods rank alike on two sets of models.

DIR and OTHER are finished studies of `interp faithfulness`, such as one of organisms and one of
grafts. For each model, each method has the mean of a metric over prompts. Or they are runs of
`interp edges` with exact effects: each estimate then has, for each pair, Spearman's correlation of
the sizes of its effects with those of the exact ones over the edges that were run exactly.

The agreement of two models is the rank correlation of these means over the methods that both sides
have. Its interval comes from a bootstrap that draws the clusters of each model anew; it tells how
well the prompts fix the ranking, and treats methods and models as given.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import kendalltau, spearmanr

from interp.errors import UserError, unknown
from interp.judging import EFFECTS, SCORES
from interp.judging.metrics import METRICS, mean
from interp.judging.ranking import judge
from interp.judging.results import tables_of
from interp.judging.trials import trials_of
from interp.prompts.systems import dependence_factor
from interp.report.console import print_table
from interp.runs.folder import RECORD, RunFolder
from interp.studies.folder import StudyFolder

EXACT = "exact"
"""The method of edges whose effects are measured, not estimated."""

DRAWS = 2000
"""Bootstrap draws of the clusters."""

AVERAGED = {metric.name: metric for metric in METRICS if metric.by_prompt}
"""The metrics that are means over prompts."""


@dataclass(frozen=True)
class Judged:
    """What one metric says of the methods on one model."""

    model: str
    methods: tuple[str, ...]
    by_prompt: Float[np.ndarray, "method prompt"]
    """The metric's value for each prompt, or pair; NaN where it is undefined."""
    clusters: tuple[str, ...]
    weights: Float[np.ndarray, " prompt"]

    def of(self, methods: Sequence[str]) -> "Judged":
        """The same for some of the methods, in their order."""
        places = [self.methods.index(name) for name in methods]
        return replace(self, methods=tuple(methods), by_prompt=self.by_prompt[places])

    def means(self, drawn: Float[np.ndarray, " prompt"] | None = None) -> np.ndarray:
        """Each method's weighted mean over prompts, each counted as often as it was drawn."""
        weights = self.weights if drawn is None else self.weights * drawn
        return mean(self.by_prompt, weights=weights)

    def drawn(self, chance: np.random.Generator) -> np.ndarray:
        """Each method's mean when the clusters are drawn again with replacement."""
        names, place = np.unique(self.clusters, return_inverse=True)
        counts = np.bincount(chance.integers(len(names), size=len(names)), minlength=len(names))
        return self.means(counts[place].astype(float))


def read_judged(path: Path, metric: str) -> list[Judged]:
    """What a metric says of the methods (sums over tokens) on each model of a study.

    Of a run with edges, what their exact effects say of the estimates.
    """
    if (path / RECORD).is_file():
        run = RunFolder.read(path)
        return [_of_edges(run, model) for model in run.models()]
    folder = StudyFolder.read(path)
    folder.require(EFFECTS, SCORES)
    return [_judged(folder, model, metric) for model in folder.record.models]


def _judged(folder: StudyFolder, model: str, metric: str) -> Judged:
    (found,) = judge(trials_of(tables_of(folder, model)), [AVERAGED[metric]])
    assert found.by_prompt is not None
    methods = [
        (place, own.method) for place, own in enumerate(found.contenders) if own.score == "sum"
    ]
    places, names = zip(*methods, strict=True)
    values = found.by_prompt[list(places)]
    return Judged(model, names, values, tuple(found.clusters), found.weights)


def _of_edges(run: RunFolder, model: str) -> Judged:
    edges = run.table("edges")
    edges = edges[edges["model"] == model]
    key = ["pair_id", "direction", "writer", "reader"]
    sizes = edges.assign(effect=edges["effect"].abs()).pivot(
        index=key, columns="method", values="effect"
    )
    if EXACT not in sizes:
        raise UserError(f"{run.folder} has no exact effects; add --methods exact")
    sizes = sizes[sizes[EXACT].notna()]
    by_pair = sizes.groupby(level=["pair_id", "direction"]).corr("spearman")[EXACT].unstack()
    factor = dependence_factor(run.record.run.system) or "pair_id"
    clusters = run.table("prompts").drop_duplicates("pair_id").set_index("pair_id", drop=False)
    by_pair = by_pair.drop(columns=EXACT)
    return Judged(
        model,
        tuple(by_pair.columns),
        by_pair.to_numpy().T,
        tuple(clusters.loc[by_pair.index.get_level_values("pair_id"), factor].astype(str)),
        np.ones(len(by_pair)),
    )


def agreement_table(ones: Sequence[Judged], others: Sequence[Judged]) -> pd.DataFrame:
    """The agreement of each model of one study with each of the other.

    Columns are model, other, methods (how many both have), kendall (tau-b) and spearman, each with
    the ends of its 95% percentile interval. NaN if a model gives all methods the same value.
    """
    return pd.DataFrame(_agreement(*pair) for pair in product(ones, others))


def _agreement(one: Judged, other: Judged) -> dict[str, object]:
    methods = [name for name in one.methods if name in other.methods]
    if len(methods) < 3:
        raise UserError(
            f"{one.model} and {other.model} share {len(methods)} methods; expected at least three "
            "to rank"
        )
    one, other = one.of(methods), other.of(methods)
    chance = np.random.default_rng(0)
    draws = np.array([[*_ranked(one.drawn(chance), other.drawn(chance))] for _ in range(DRAWS)])
    row: dict[str, object] = {"model": one.model, "other": other.model, "methods": len(methods)}
    found = _ranked(one.means(), other.means())
    for name, value, own in zip(("kendall", "spearman"), found, draws.T, strict=True):
        low, high = np.nanquantile(own, (0.025, 0.975)) if np.isfinite(own).any() else (np.nan,) * 2
        row |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return row


def _ranked(x: np.ndarray, y: np.ndarray) -> Iterator[float]:
    """Kendall's tau-b and Spearman's correlation; NaN if one side is constant."""
    known = np.isfinite(x) & np.isfinite(y)
    # Equal means may differ by a rounding error.
    one, other = (np.round(side[known], 12) for side in (x, y))
    if len({*one}) < 2 or len({*other}) < 2:
        return iter((np.nan, np.nan))
    return iter((float(kendalltau(one, other).statistic), float(spearmanr(one, other).statistic)))


def value_table(judged: Sequence[Judged]) -> pd.DataFrame:
    """Each method's mean on each model: one row per method of the first, one column per model."""
    columns = {own.model: dict(zip(own.methods, own.means(), strict=True)) for own in judged}
    rows = [
        {"method": name, **{model: values.get(name, np.nan) for model, values in columns.items()}}
        for name in judged[0].methods
    ]
    return pd.DataFrame(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts")
    for name in ("folder", "other"):
        parser.add_argument(
            name, type=Path, metavar="DIR", help="a study by interp faithfulness, or edges"
        )
    parser.add_argument("--metric", default="top_segment", help=", ".join(AVERAGED))
    parsed = parser.parse_args(arguments)
    try:
        if parsed.metric not in AVERAGED:
            raise UserError(unknown("metric", parsed.metric, AVERAGED))
        ones, others = (read_judged(path, parsed.metric) for path in (parsed.folder, parsed.other))
        print_table(value_table([*ones, *others]), title="Means over prompts, or pairs")
        print_table(agreement_table(ones, others), title="Agreement of the rankings of methods")
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
