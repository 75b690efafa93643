"""Agreement of scores with effects, by hand and against scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from interp.judging import metrics

SEEDS = st.integers(0, 10_000)


def test_the_top_segment_is_that_of_the_largest_size():
    effects = np.array([[-3.0, 1.0, 2.0]])
    scores = np.array(
        [[[5.0, 1.0, 2.0]], [[1.0, -7.0, 2.0]], [[-2.0, 0.0, 2.0]], [[1.0, 1.0, 1.0]]]
    )
    np.testing.assert_allclose(metrics.top_segment(scores, effects)[:, 0], [1, 0, 1 / 2, 1 / 3])


def test_a_prompt_in_which_nothing_matters_has_no_top_segment():
    effects = np.array([[0.09, -0.05, 0.0], [0.11, -0.05, 0.0]])
    hits = metrics.top_segment(np.array([[1.0, 0, 0], [1.0, 0, 0]]), effects)
    assert np.isnan(hits[0])
    assert hits[1] == 1


def test_signs_count_where_an_effect_is_not_nil():
    effects = np.array([[4.0, -2.0, 0.15], [0.01, 0.02, 0.0]])
    # 0.15 is below 5% of 4; the second prompt has no effect at all.
    scores = np.array([[[1.0, 1.0, -1.0], [1.0, 1.0, 1.0]], [[0.0, -3.0, 0.0], [1.0, 1.0, 1.0]]])
    found = metrics.sign_agreement(scores, effects)
    np.testing.assert_allclose(found[:, 0], [1 / 2, 3 / 4])
    assert np.isnan(found[:, 1]).all()


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, segments=st.integers(3, 6))
def test_tau_is_scipys(seed, segments):
    chance = np.random.default_rng(seed)
    # Few values, so that many tie.
    scores = chance.integers(-3, 4, (2, 4, segments)).astype(float)
    effects = chance.integers(-3, 4, (4, segments)).astype(float)
    found = metrics.kendall_tau(scores, effects)
    for (method, prompt), value in np.ndenumerate(found):
        expected = stats.kendalltau(
            np.abs(scores[method, prompt]), np.abs(effects[prompt])
        ).statistic
        assert value == pytest.approx(expected, nan_ok=True)


def test_two_segments_have_no_tau():
    assert np.isnan(metrics.kendall_tau(np.ones((2, 3, 2)), np.ones((3, 2)))).all()


def test_a_share_is_the_part_of_the_second_segment():
    scores = np.array([[1.0, 9.0, -3.0], [0.0, 9.0, 0.0]])
    found = metrics.share(scores, 0, 2)
    assert found[0] == 0.75
    assert np.isnan(found[1])


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_rank_correlation_is_scipys(seed):
    chance = np.random.default_rng(seed)
    x = chance.integers(0, 5, (2, 12)).astype(float)
    y = chance.integers(0, 5, (2, 12)).astype(float)
    x[0, 3] = y[0, 5] = np.nan
    found = metrics.rank_correlation(x, y, np.ones(12))
    for own, other, value in zip(x, y, found, strict=True):
        expected = stats.spearmanr(own, other, nan_policy="omit").statistic
        assert value == pytest.approx(float(expected), nan_ok=True, abs=1e-9)


def test_a_prompt_of_weight_two_counts_as_two():
    # Ranks are those of the prompts as they are, so a repeated prompt must not change them.
    x, y = np.array([[1.0, 2, 3, 4]]), np.array([[2.0, 1, 4, 3]])
    ranks = np.array([1.0, 2, 3, 4, 4]), np.array([2.0, 1, 4, 3, 3])
    expected = np.corrcoef(*ranks)[0, 1]
    found = metrics.rank_correlation(x, y, np.array([1.0, 1, 1, 2]))
    assert found[0] == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, segments=st.integers(1, 4))
def test_the_linear_datamodeling_score_is_scipys_over_all_coalitions(seed, segments):
    chance = np.random.default_rng(seed)
    scores = chance.normal(size=(2, 3, segments))
    values = chance.normal(size=(3, 2**segments))
    found = metrics.linear_datamodeling(scores, values)
    for (method, prompt), value in np.ndenumerate(found):
        sums = [
            sum(scores[method, prompt, i] for i in range(segments) if coalition >> i & 1)
            for coalition in range(2**segments)
        ]
        assert value == pytest.approx(stats.spearmanr(sums, values[prompt]).statistic)


def test_a_game_without_interaction_is_predicted_perfectly():
    effects = np.array([0.1, 0.2, -0.4])
    values = np.array([[sum(e for i, e in enumerate(effects) if c >> i & 1) for c in range(8)]])
    assert metrics.linear_datamodeling(effects[None], values) == pytest.approx(1)
    assert metrics.linear_datamodeling(-effects[None], values) == pytest.approx(-1)
    assert np.isnan(metrics.linear_datamodeling(np.zeros((1, 3)), values))
