"""Coverage of the mediated share's interval in simulated studies.

    python -m benchmarks.mediation --studies 200

No model is run. The entities of a simulated study lean to yes or no with some strength. For a
planted share of the entities, answers follow the thought (in the design "by degree", they follow it
to some degree for every entity, and the mean degree equals that share). Each prompt has a donor, a
prompt about another entity of the study, for which thoughts are drawn as well.
`interp.measurements.thoughts.tables` computes the table, as in a report. The columns are:

- truth: the mediated share in a study of 20,000 entities, as the mean of both orders;
- mean: the mean of the estimates over studies;
- coverage: the share of studies whose 95% interval contains the truth, for the mean of both orders
  and for each order;
- width: the median width of the interval;
- undefined: the share of studies without an interval because the total effect may be zero.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.controls.studies import few_resamples
from interp.measurements.thoughts.tables import SHARES, effect_products, mediation_table
from interp.statistics.mediation import EFFECTS

SHARES_PLANTED = (0.0, 0.25, 0.5, 0.75, 1.0)
FAITHFUL = 0.9
"""Share of thoughts whose verdict agrees with the leaning of the entity."""
NOISE = 0.3
"""Standard deviation of answers to the same prompt after the same thought, in nats."""
TRUTH_ENTITIES = 20_000

DESIGNS = {
    "30 entities": {"entities": 30},
    "100 entities": {"entities": 100},
    "30 entities, two draws": {"entities": 30, "draws": 2},
    "30 entities, by degree, unequal strengths": {"entities": 30, "graded": True, "spread": 0.5},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with few_resamples():  # The bootstrapped totals are not used.
        table = pd.DataFrame(coverage_rows(options.studies, options.seed))
    print(table.round(3).to_string(index=False))


def coverage_rows(
    studies: int, seed: int, *, entities: int = TRUTH_ENTITIES
) -> Iterator[dict[str, object]]:
    """One row per design and planted share."""
    for design, settings in DESIGNS.items():
        for number, planted in enumerate(SHARES_PLANTED):
            rng = np.random.default_rng([seed, number])
            truth = truth_of(simulated(rng, planted, **settings | {"entities": entities})[0])
            tables = [found(*simulated(rng, planted, **settings)) for _ in range(studies)]
            rows = pd.DataFrame([row for table in tables for row in table])
            yield {
                "design": design,
                "planted": planted,
                "truth": truth["share"],
                "mean": rows["share"].mean(),
                **{f"coverage, {name}": _covered(rows, name, truth) for name in SHARES},
                "width": (rows["share_high"] - rows["share_low"]).median(),
                "undefined": rows["share_low"].isna().mean(),
            }


def truth_of(effects: pd.DataFrame) -> dict[str, float]:
    """The mediated shares of a study, without intervals."""
    sums = effect_products(effects)[list(EFFECTS)].sum()
    own, changed = (sums[name] / sums["total"] for name in ("through", "through_other"))
    return dict(zip(SHARES, ((own + changed) / 2, own, changed), strict=True))


def _covered(rows: pd.DataFrame, name: str, truth: dict[str, float]) -> float:
    """The share of intervals that contain the truth, with a tolerance for rounding."""
    known = rows.dropna(subset=[f"{name}_low"])
    low, high = known[f"{name}_low"] - 1e-9, known[f"{name}_high"] + 1e-9
    return float(((low <= truth[name]) & (truth[name] <= high)).mean())


def found(effects: pd.DataFrame, prompts: pd.DataFrame) -> list[dict[str, float]]:
    """The rows of the report's table."""
    table = mediation_table(effect_products(effects), prompts, cluster="entity")
    return table.to_dict("records")


def simulated(
    rng: np.random.Generator,
    planted: float,
    *,
    entities: int,
    draws: int = 4,
    prompts: int = 2,
    graded: bool = False,
    spread: float = 0.0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The thought_effects table and the prompts table of one study.

    Args:
        rng: source of all random draws.
        planted: the share of the entities that follow the thought.
        entities: number of entities; each is a cluster.
        draws: thoughts per prompt.
        prompts: prompts about each entity; the donor of each is a prompt about another entity.
        graded: whether each entity follows the thought to some degree, on average `planted`.
        spread: standard deviation of the logarithm of the entities' strengths.
    """
    leaning = rng.choice([-1.0, 1.0], entities)
    strength = 2 * np.exp(rng.normal(0, spread, entities))
    follows = (
        rng.beta(2 * planted + 1e-3, 2 * (1 - planted) + 1e-3, entities)
        if graded
        else (rng.random(entities) < planted).astype(float)
    )
    own = np.repeat(np.arange(entities), prompts)
    other = (own + rng.integers(1, entities, len(own))) % entities

    def thoughts(of: np.ndarray) -> np.ndarray:
        agrees = rng.random((len(of), draws)) < FAITHFUL
        return np.where(agrees, 1, -1) * leaning[of][:, None]

    def answers(of: np.ndarray, verdicts: np.ndarray) -> np.ndarray:
        followed = follows[of][:, None]
        direct = (2 * FAITHFUL - 1) * leaning[of][:, None]
        values = strength[of][:, None] * (followed * verdicts + (1 - followed) * direct)
        return values + rng.normal(0, NOISE, values.shape)

    t, t_other = thoughts(own), thoughts(other)
    ids = [f"prompt {number}" for number in range(len(own))]
    effects = pd.DataFrame(
        {
            "model": "simulated",
            "prompt_id": ids,
            "donor_kind": "instance",
            "donor": other,
            "segment": "premise2",
            "draws": draws,
            "own": list(answers(own, t)),
            "changed": list(answers(other, t)),
            "own_under_other": list(answers(own, t_other)),
            "changed_under_other": list(answers(other, t_other)),
            "error": "",
        }
    )
    return effects, pd.DataFrame({"prompt_id": ids, "entity": own, "weight": 1.0})


if __name__ == "__main__":
    main()
