"""A share of benchmarks/controls: rates.md there has those of 1,000 studies."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from benchmarks.controls.rates import families_of, rates, table_of
from benchmarks.controls.rulebreakers import of_contrasts
from benchmarks.controls.studies import KINDS, few_resamples, kept, simulated
from benchmarks.controls.tables import NOTHING, rulebreakers

MOST = 1e-4
"""How likely a test at its level is to fail here."""


def most(studies):
    """The share of studies that a test at 5% exceeds with a chance of `MOST`."""
    return binom.ppf(1 - MOST, studies, 0.05) / studies


@pytest.mark.parametrize("kind", KINDS)
def test_every_test_of_a_report_is_run_without_and_with_its_effect(kind):
    null, planted = (simulated(kind, [0], planted=planted) for planted in (False, True))
    assert null["p"].dropna().between(0, 1).all()
    assert null["test"].tolist() == planted["test"].tolist()
    printed = table_of(null, planted) + families_of(null)
    assert all(name.partition("@")[0] in printed for name in rates(null).index)


def test_nothing_is_found_more_often_than_stated_and_naive_tests_find_it():
    shares = rates(simulated("RULEBREAKERS, across models", range(200), planted=False))
    assert (shares["rejected"] <= most(200)).all()
    assert (shares["naive"] > 0.5).all()


def test_contrasts_pooled_over_models_keep_their_level_and_cover_the_next_model():
    shares = rates(simulated("LogicalForms, contrasts pooled", range(200), planted=False))
    pooled = shares[shares.index.str.startswith("pooled, ")]
    further = shares[shares.index.str.startswith("true next, ")]
    # Six numbers of models, five spreads, two shapes: none of them may exceed its share.
    assert len(pooled) == len(further) == 60
    limit = binom.ppf(1 - MOST / 60, 200, 0.05) / 200
    assert (pooled["rejected"] <= limit).all()
    assert (1 - pooled["covered"]).to_numpy() == pytest.approx(pooled["rejected"].to_numpy())
    assert (1 - further["covered"] <= limit).all()
    # A fixed effect takes the models' true values as one.
    assert (pooled["naive"][pooled.index.str.contains("spread (?:2|5)")] > 0.3).all()


def test_tests_of_one_model_over_interpretations_keep_their_level():
    null = simulated("LogicalForms, one model", range(60), planted=False)
    shares = rates(null)["rejected"].dropna()
    # Several tests of each study: none of them may exceed its share.
    assert (shares <= binom.ppf(1 - MOST / len(shares), 60, 0.05) / 60).all()


def test_over_entities_a_test_keeps_its_level_and_over_pairs_it_does_not(tmp_path):
    """Two models compared: the quickest test of a study of RULEBREAKERS."""
    p = []
    with few_resamples():
        for number in range(100):
            results = rulebreakers(np.random.default_rng([1, number]), NOTHING, tmp_path)
            (test,) = (one for one in of_contrasts(results) if one.test == "contrast, model@")
            p.append((test.p, test.naive))
    ours, naive = (np.array(p) <= 0.05).mean(axis=0)
    assert ours <= most(100) < naive


def test_studies_in_parts_are_those_of_one_run(tmp_path, monkeypatch):
    kind = "RULEBREAKERS, across models"
    whole = simulated(kind, range(45), planted=False)
    kept(tmp_path, kind, range(25, 45), planted=False)
    pd.testing.assert_frame_equal(kept(tmp_path, kind, range(30), planted=False), whole)
    assert len(list(tmp_path.iterdir())) == 3  # 20, 20 and 5 studies

    def again(*_, **__):
        raise AssertionError("simulated again")

    monkeypatch.setattr("benchmarks.controls.studies.simulated", again)
    pd.testing.assert_frame_equal(kept(tmp_path, kind, range(45), planted=False), whole)
    with pytest.raises(AssertionError, match="simulated again"):
        kept(tmp_path, kind, range(45), planted=True)
