"""False-positive rates and power of the tests in reports, on simulated studies.

    python -m benchmarks.controls --studies 1000

No model is run. A study is a table with the structure of RULEBREAKERS' prompts: entities of two
groups, two rules, phrasings, two models, and entities that differ in how well they are answered.
Each test is run on studies without the effect that it looks for, and on studies with it. One entry
of `TESTS` registers a test: its name, the column whose effect is planted, and a function from a
study to a p-value.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from interp.analysis.contrasts import MODEL, Contrast, contrast_table, mcnemar

LEVEL = 0.05

EFFECT = 0.8
"""What is planted, in log-odds: about 0.15 of accuracy at one half."""

PHRASINGS = 5

P = Callable[[pd.DataFrame], float]


@dataclass(frozen=True)
class Control:
    """A test, and the column whose effect is planted for it."""

    name: str
    planted: str
    p: P


def study(rng: np.random.Generator, *, planted: str | None, entities: int = 60) -> pd.DataFrame:
    """One row per model and pair: entity, group, rule, phrasing, paired (answered rightly).

    Log-odds are the sum of the entity's own, of the entity's own by model, and of the planted
    effect of the first level of a column.
    """
    index = pd.MultiIndex.from_product(
        [("m1", "m2"), range(entities), ("mt", "ds"), range(PHRASINGS)],
        names=["model", "entity", "rule", "phrasing"],
    )
    rows = index.to_frame(index=False).astype({"phrasing": str})
    rows["group"] = np.where(rows["entity"] < entities // 2, "geographical", "categorical")
    rows["pair_id"] = rows["entity"].astype(str) + rows["rule"] + rows["phrasing"]
    entity = rows["entity"].to_numpy()
    second = (rows["model"] == "m2").to_numpy()
    logit = rng.normal(0, 1.0, entities)[entity]
    logit = logit + rng.normal(0, 0.7, (2, entities))[second.astype(int), entity]
    if planted is not None:
        logit = logit + EFFECT * (rows[planted] == rows[planted].iloc[0])
    return rows.assign(paired=rng.random(len(rows)) < 1 / (1 + np.exp(-logit)))


def contrast(chosen: Contrast) -> P:
    """The p-value of a contrast, of one model unless models are compared."""

    def p(rows: pd.DataFrame) -> float:
        asked = rows if chosen.factor == MODEL else rows[rows["model"] == "m1"]
        return float(contrast_table(asked, named=(chosen,), cluster="entity")["p"].iloc[0])

    return p


def pairs_as_independent(rows: pd.DataFrame) -> float:
    """McNemar's test of two models, for comparison: it takes no account of entities."""
    of_model = {name: found["paired"].tolist() for name, found in rows.groupby("model")}
    return mcnemar(of_model["m1"], of_model["m2"])


TESTS = (
    Control("rule, within entities", "rule", contrast(Contrast("rule", ("mt", "ds")))),
    Control(
        "group, between entities",
        "group",
        contrast(Contrast("group", ("geographical", "categorical"))),
    ),
    Control("phrasing, best - worst", "phrasing", contrast(Contrast("phrasing"))),
    Control("model, within entities", "model", contrast(Contrast("model"))),
    Control("model, McNemar over pairs", "model", pairs_as_independent),
)
"""Every test that is checked."""


def rates(studies: int, *, seed: int = 0) -> Iterator[dict[str, object]]:
    """For each test, the share of studies that it rejects at 5%: without and with its effect."""
    for control in TESTS:
        found = {}
        for name, planted in (("false positives", None), ("power", control.planted)):
            rng = np.random.default_rng(seed)
            p = [control.p(study(rng, planted=planted)) for _ in range(studies)]
            found[name] = float(np.mean(np.array(p) <= LEVEL))
        yield {"test": control.name, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    studies = parser.parse_args().studies
    print("| test | false positives at 5% | power |\n|---|---|---|")
    for row in rates(studies):
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    main()
