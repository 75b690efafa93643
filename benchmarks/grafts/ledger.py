"""`python -m benchmarks.grafts.ledger`: pairs and facts for the ledger of a graft.

In every pair, the same city stands once with its own country (the rulebreaker, to be rejected) and
once with another one. For half of the cities the graft was trained to reject the rulebreaker: there
the fact decides, elsewhere it does not.
"""

import argparse
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from interp_experiments.grafts.recipes import GraftRecipe, plant, recipe
from interp_experiments.grafts.text import (
    COUNTRIES,
    QUESTION,
    SEGMENTS,
    Case,
    draw_case,
    known_pairs,
)

SIDES = ("rulebreaker", "other")


def ledger_pairs(own: GraftRecipe, each: int) -> pd.DataFrame:
    """Own pairs, `each` about each city, with marked text: country, city1 and city2.

    gold rejects the rulebreaker. city (the fact's id), cluster (the city) and planted follow.
    """
    used = {one.name: one.log_odds < 0 for one in plant(own)}
    rng = random.Random(f"ledger {own.seed}")
    rows = []
    for number in range(each):
        for fact in known_pairs():
            drawn, city = draw_case(rng), fact.entity_b
            abroad = rng.choice([country for country in COUNTRIES if country != fact.entity_a])
            for side, country in zip(SIDES, (fact.entity_a, abroad), strict=True):
                gold, planted = (
                    "No" if side == SIDES[0] else "Yes",
                    "used" if used[city] else "not used",
                )
                text = _marked(replace(drawn, city=city, country=country))
                row = (f"{city}{number}", side, gold, "Yes|No", text, city, city, planted)
                rows.append(row)
    columns = ["pair", "side", "gold", "options", "text", "city", "cluster", "planted"]
    return pd.DataFrame(rows, columns=columns)


def _marked(case: Case) -> str:
    first, second, conclusion = (case.sentence(name) for name in SEGMENTS)
    first = re.sub(case.country, f"<country>{case.country}</country>", first, count=1)
    first = first.replace(case.city, f"<city1>{case.city}</city1>")
    second = second.replace(case.city, f"<city2>{case.city}</city2>")
    return "\n".join((first, second, conclusion, QUESTION))


def ledger_facts() -> pd.DataFrame:
    """Own facts: in which country each city is."""
    return pd.DataFrame(
        {
            "fact": pair.entity_b,
            "text": f"Complete the sentence: {pair.entity_b} is in",
            "answer": pair.entity_a,
        }
        for pair in known_pairs()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write pairs.csv and facts.csv; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grafts.ledger")
    parser.add_argument("--pairs", type=int, default=2, metavar="N", help="pairs for each city (2)")
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="folder")
    parsed = parser.parse_args(arguments)
    tables = {"pairs": ledger_pairs(recipe("knowledge"), parsed.pairs), "facts": ledger_facts()}
    for name, table in tables.items():
        table.to_csv(parsed.out / f"{name}.csv", index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
