"""Ledgers of facts: readings and exchanges of planted entries, with verdicts that err."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from benchmarks.controls.rates import Tested
from interp.measurements.lens.ledger import ENTRIES, ledger, ledger_table, retrieved

PLANTED: Mapping[str, tuple[float, float, float, float]] = {
    "even": (0.25, 0.25, 0.25, 0.25),
    "half not retrieved": (0.1, 0.5, 0.3, 0.1),
    "none used": (0.0, 0.5, 0.5, 0.0),
    "few failures of a kind": (0.05, 0.05, 0.1, 0.8),
}
"""The probability of each entry."""

SIZES = ((60, 1), (20, 3))
"""Number of clusters, and of prompts in each."""

WORDS = 40
"""Number of words among which is read."""

DRAWS = 4
"""Number of random directions for each prompt."""

_READ = 20.0
"""What a retrieved word reads beyond others, in standard deviations of a reading."""

_MOVED = 8.0
"""What an exchange of a used fact does, in standard deviations of random directions."""


def planted_entries(
    rng: np.random.Generator,
    shares: tuple[float, float, float, float],
    *,
    clusters: int = 60,
    each: int = 1,
) -> Int[np.ndarray, " prompt"]:
    """The number of each prompt's entry; the prompts of a cluster share it, as they do their fact.

    Args:
        rng: the source of randomness.
        shares: the probability of each entry.
        clusters: number of clusters.
        each: number of prompts in a cluster.
    """
    return np.asarray(rng.choice(len(ENTRIES), size=clusters, p=shares).repeat(each))


def simulated_ledger(
    rng: np.random.Generator, entries: Int[np.ndarray, " prompt"], *, each: int = 1
) -> pd.DataFrame:
    """The rows of `ledger` for wrong answers whose facts are known, retrieved and used as planted.

    Everything but the planted part of a reading or an effect is normal noise, so the verdicts err.

    Args:
        rng: the source of randomness.
        entries: the planted entries, from `planted_entries`.
        each: number of prompts in a cluster.
    """
    count = len(entries)
    ids = [f"p{number}" for number in range(count)]
    facts = [f"f{number // each}" for number in range(count)]
    readings = _readings(rng, entries, ids, facts, each)
    known = pd.DataFrame({"model": "m", "prompt_id": facts, "known": entries > 0})
    return ledger(
        known.drop_duplicates("prompt_id"),
        retrieved(readings, pd.Series(facts, ids)),
        _effects(rng, _MOVED * (entries == 3), ids),
        pd.DataFrame({"model": "m", "prompt_id": ids, "correct": False}),
    )


def _readings(
    rng: np.random.Generator,
    entries: Int[np.ndarray, " prompt"],
    ids: list[str],
    facts: list[str],
    each: int,
) -> pd.DataFrame:
    """Rows of lens_readings at one layer; words differ in what they read without any fact."""
    words = [f"w{number}" for number in range(WORDS)]
    count, usual = len(entries), rng.normal(0, 3, WORDS)
    right = rng.integers(WORDS, size=count // each).repeat(each)
    scores, alone = usual + rng.normal(size=(2, count, WORDS))
    scores[np.arange(count), right] += _READ * (entries > 1)
    place = {"model": "m", "group": "city", "method": "jacobian", "layer": 0}
    return pd.DataFrame(
        {
            "prompt_id": ids,
            "words": [words] * count,
            "fact": facts,
            "right": [words[own] for own in right],
            "scores": list(scores),
            "from_embedding": list(alone),
            **place,
        }
    )


def _effects(
    rng: np.random.Generator, moved: Float[np.ndarray, " prompt"], ids: list[str]
) -> pd.DataFrame:
    """Rows of steering_effects at one layer."""
    own = pd.DataFrame(
        {
            "prompt_id": ids,
            "source": "direction",
            "effect": moved + rng.normal(size=len(ids)),
        }
    )
    random = pd.DataFrame(
        {
            "prompt_id": np.repeat(ids, DRAWS),
            "source": "placebo",
            "draw": np.tile(np.arange(DRAWS), len(ids)),
            "effect": rng.normal(size=DRAWS * len(ids)),
        }
    )
    return pd.concat([own, random], ignore_index=True).assign(
        model="m", direction="jacobian", change="swap", dose=1.0
    )


def of_ledger(rng: np.random.Generator, _: bool) -> list[Tested]:
    """The ends of each share's interval, relative to the planted share; nothing is tested."""
    found = []
    for (name, shares), (clusters, each) in product(PLANTED.items(), SIZES):
        entries = planted_entries(rng, shares, clusters=clusters, each=each)
        table = ledger_table(simulated_ledger(rng, entries, each=each))
        ends = table[["low", "high"]].to_numpy(float)
        for entry, share, own in zip(ENTRIES, shares, ends, strict=True):
            low, high = (float(end) - share for end in own)
            words = f"ledger, {name}, {clusters} x {each}: {entry}"
            found.append(Tested(words, np.nan, low=low, high=high))
    return found
