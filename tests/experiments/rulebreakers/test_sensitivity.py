"""Concordance: its interval, its test, its note and its finding agree."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.controls.studies import few_resamples
from benchmarks.controls.tables import NOTHING, Effects, rulebreakers
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.sensitivity import sensitivity


@pytest.mark.parametrize("seed", range(6))
def test_an_interval_excludes_one_half_if_and_only_if_p_is_small(seed, tmp_path):
    with few_resamples():
        table = sensitivity(rulebreakers(np.random.default_rng(seed), Effects(sides=0.4), tmp_path))
    excluded = (table["low"] > 0.5) | (table["high"] < 0.5)
    assert ((table["p"] <= 0.05) == excluded).all()
    assert table["concordance"].between(table["low"], table["high"]).all()
    assert table[["low", "high"]].stack().between(0, 1).all()
    found = table["finding"] != "no difference shown"
    assert (found == (table["p_holm"] < 0.05)).all()


def test_pairs_that_are_all_in_order_have_an_interval(tmp_path):
    results = rulebreakers(np.random.default_rng(0), NOTHING, tmp_path)
    right = results.prompts.set_index("prompt_id")["side"] == SIDES[1]
    likely = results.options["prompt_id"].map(right) == (results.options["option"] == "Yes")
    ordered = results.options.assign(relative_probability=np.where(likely, 0.9, 0.1))
    with few_resamples():
        table = sensitivity(replace(results, options=ordered))
    assert (table["concordance"] == 1).all()
    assert ((table["low"] > 0.9) & (table["low"] < 1) & (table["high"] == 1)).all()
    assert set(table["note"]) == {""}
    assert (table["p_holm"] < 0.05).all()
    assert table["finding"].str.endswith("right order").all()
