"""What is said first if most effects lie within the donors' spread."""

import numpy as np
import pandas as pd

from interp.analysis.cautions.caution import SPREAD
from interp.judging.deciding import _agreement, spread_cautions
from interp.measurements.attribution.largest import LARGEST, NOISE
from interp.report.page import MOST_WORDS


def deciding(within):
    """Of 8 pairs of model m, `within` lie within the donors' spread; of model n, none."""
    known = {"agreement": np.nan, "low": np.nan, "high": np.nan, "prompts": 16, "clusters": 8}
    rows = [
        {"model": "m", "source": "effects", "premise 1": 8 - within, NOISE: within},
        {"model": "m", "source": "attention", "premise 1": 8},
        {"model": "n", "source": "effects", "premise 1": 8},
    ]
    return pd.DataFrame([row | known for row in rows])


def test_most_pairs_within_the_donors_spread_are_counted_in_a_caution():
    (caution,) = spread_cautions(deciding(5))
    assert (caution.kind, caution.model, caution.voids) == (SPREAD, "m", False)
    assert caution.numbers == {"within": 5, "pairs": 8}
    assert "5 of 8 pairs" in caution.said
    assert len(caution.said.split()) <= MOST_WORDS


def test_half_of_the_pairs_or_none_are_no_caution():
    assert not [*spread_cautions(deciding(4))]
    assert not [*spread_cautions(deciding(5).drop(columns=NOISE))]


def test_agreement_is_with_effects_that_lead_alone():
    rows = [
        ("effects", "p", "premise1", LARGEST),
        ("effects", "q", "premise2", NOISE),
        ("attention", "p", "premise1", LARGEST),
        ("attention", "q", "premise1", LARGEST),
    ]
    largest = pd.DataFrame(rows, columns=["method", "prompt_id", "segment", "outcome"])
    prompts = pd.DataFrame({"prompt_id": ["p", "q"], "pair_id": ["p", "q"]})
    found = _agreement(largest, prompts, "pair_id").loc["attention"]
    assert found[["agreement", "prompts"]].tolist() == [1, 1]
