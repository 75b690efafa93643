"""How often bounds on estimated effects hold, checked against the exact effects.

    python -m benchmarks.guarantee --pairs 96 --splits 60

All cells of the pairs are both patched exactly and estimated (`resid_pre`, by role, denoising).
Then checked pairs are drawn many times, and the guarantee is computed as if nothing were known
about the other pairs. Over the draws, the columns are:

- coverage: the mean share of unchecked pairs in which no effect exceeds its bound;
- covered_low holds: the share of draws in which at least `covered_low` of the unchecked pairs are
  covered;
- coverage by stratum: the mean share of unchecked pairs in which no effect exceeds the bound of its
  layer and role;
- bound: the median of the site's bound, and the median of the bound that checked pairs give without
  estimates;
- strata below 1 logit: the mean share of layers and roles whose separate bound is below 1 logit.

With `--edges`, all edges are run and estimated instead. The bounds are for the edges into one kind
of reader, either for all of these edges or for 20 drawn at random in each pair.
"""

import argparse
from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
import torch

import interp
from benchmarks.side_by_side import machine
from interp.measurements.edges.show import edges_as_cells
from interp.measurements.patching.guarantee import conformal_limit, guarantee_tables
from interp.patching.pairs import is_checked

ESTIMATES = ("gradient", "integrated")
LEVELS = (0.8, 0.95)
SHARE = 0.4
"""Share of the pairs that are checked, large enough for a bound at each level."""

SAMPLE = 20
"""Number of sampled edges into each kind of reader."""

_CELL = ["pair_id", "site", "layer", "head", "role"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["phi3-deep", "llama-shallow"])
    parser.add_argument("--pairs", type=int, default=96)
    parser.add_argument("--splits", type=int, default=60)
    parser.add_argument("--edges", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    for name in options.models:
        model = interp.load_model(f"organism/{name}", device="cpu")
        if options.edges:
            print(f"\n{name}, {options.pairs} pairs, {options.splits} draws of {SHARE:.0%} of them")
            print(edge_coverage_table(model, options.pairs, options.splits).to_string(index=False))
            continue
        patches, pairs = measured(model, options.pairs)
        print(f"\n{name}, {len(pairs)} pairs, {options.splits} draws of {SHARE:.0%} of them")
        print(coverage_table(patches, pairs, splits=options.splits).to_string(index=False))


def measured(model: interp.Model, pairs: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The patches of all cells, exact and by both estimates, and the pairs table."""
    prompts = interp.load_prompts(limit=pairs)
    results = [interp.patch(model, prompts, estimate=estimate) for estimate in (None, *ESTIMATES)]
    return pd.concat([result.patches for result in results]), results[0].pairs


def coverage_table(patches: pd.DataFrame, pairs: pd.DataFrame, *, splits: int) -> pd.DataFrame:
    """One row per estimate and level."""
    exact = patches[patches["method"] == "exact"]
    rows = []
    for estimate in ESTIMATES:
        estimated = patches[patches["method"] == estimate]
        for level in LEVELS:
            draws = pd.DataFrame(_draws(exact, estimated, pairs, level, splits))
            known = draws.dropna()
            rows.append(
                {
                    "estimate": estimate,
                    "level": level,
                    "draws with a bound": len(known),
                    "checked": round(draws["checked"].mean(), 1),
                    "coverage": round(known["coverage"].mean(), 3),
                    "covered_low holds": round((known["coverage"] >= known["low"]).mean(), 3),
                    "coverage by stratum": round(known["by_stratum"].mean(), 3),
                    "bound": round(known["bound"].median(), 2),
                    "without estimates": round(known["effect_limit"].median(), 2),
                    "strata below 1 logit": round(known["small"].mean(), 2),
                }
            )
    return pd.DataFrame(rows)


def edge_coverage_table(model: interp.Model, pairs: int, splits: int) -> pd.DataFrame:
    """One row per estimate, level and sample: the mean coverage over draws and kinds of readers."""
    methods = (*ESTIMATES, "exact")
    result = interp.edges(model, interp.load_prompts(limit=pairs), methods=methods)
    cells = edges_as_cells(result.edges, result.pairs.assign(checked=True))
    key = ["pair_id", "site", "writer", "reader"]
    exact = cells[cells["method"] == "exact"]
    rows = []
    for estimate, level, sample in product(ESTIMATES, LEVELS, (None, SAMPLE)):
        both = cells[cells["method"] == estimate].merge(exact[[*key, "effect"]], on=key)
        excess = both.assign(excess=both["effect_y"].abs() - both["effect_x"].abs())
        covered, margins = [], []
        for split in range(splits):
            order = np.random.default_rng(split).permutation(len(excess))
            drawn = excess.iloc[order].groupby(["pair_id", "site"], sort=False)
            own = excess if sample is None else drawn.head(sample)
            largest = own.groupby(["pair_id", "site"])["excess"].max().unstack("site")
            checked = np.array([is_checked(f"{split} {name}", SHARE) for name in largest.index])
            for scores in largest.to_numpy().T:
                margins.append(conformal_limit(scores[checked], level))
                covered.append((scores[~checked] <= margins[-1]).mean())
        known = {"estimate": estimate, "level": level, "edges": sample or "all"}
        finite = np.isfinite(margins)
        bounds = pd.DataFrame({"coverage": covered, "margin": margins})[finite]
        numbers = {
            "draws with a bound": finite.mean(),
            "coverage": bounds["coverage"].mean(),
            "margin": bounds["margin"].median(),
        }
        rows.append({**known, **numbers})
    return pd.DataFrame(rows).round(3)


def _draws(
    exact: pd.DataFrame, estimated: pd.DataFrame, pairs: pd.DataFrame, level: float, splits: int
) -> Iterator[dict[str, float]]:
    both = estimated.merge(exact[[*_CELL, "effect"]], on=_CELL, suffixes=("", "_exact"))
    excess = both["effect_exact"].abs() - both["effect"].abs()
    largest = both.assign(excess=excess).groupby(_CELL, dropna=False)["excess"].max().reset_index()
    for split in range(splits):
        drawn = {name: is_checked(f"{split} {name}", SHARE) for name in pairs["pair_id"]}
        known = pd.concat([estimated, exact[exact["pair_id"].map(drawn)]])
        uses = pairs.assign(checked=pairs["pair_id"].map(drawn))
        sites, strata = guarantee_tables([known], uses, level=level)
        (site,) = sites.to_dict("records")
        unchecked = largest[~largest["pair_id"].map(drawn)]
        of_stratum = unchecked.merge(strata.dropna(subset=["bound"]), on=_CELL[1:])
        of_pair = unchecked.groupby("pair_id")["excess"].max()
        yield {
            "checked": sum(drawn.values()),
            "coverage": (of_pair <= site["margin"]).mean(),
            "low": site["covered_low"],
            "by_stratum": (of_stratum["excess"] <= of_stratum["margin"]).mean(),
            "bound": site["bound"],
            "effect_limit": site["effect_limit"],
            "small": (strata["bound"].dropna() < 1).mean(),
        }


if __name__ == "__main__":
    main()
