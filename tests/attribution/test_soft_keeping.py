"""Keeping tokens by their scores, by hand, at its limits, and against plain passes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from interp.attribution.attributor import Attributor
from interp.attribution.counterfactual import counterfactual_tokens
from interp.attribution.games import shapley_values
from interp.attribution.method import SegmentScores, TokenScores
from interp.attribution.soft_keeping import (
    MASKS,
    SHARES,
    TokenGame,
    controls,
    keeping_probabilities,
    player_scores,
    soft_masks,
)
from interp.choices import LENGTH, ORACLE, POSITION, RANDOM, REVERSED
from interp.prompts.mixing import donors_of, with_donors
from interp.reading.tokens import pad, tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

numbers = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=12)


@given(numbers, st.sampled_from(SHARES), st.floats(0, 50))
def test_the_mean_probability_is_the_share_and_follows_the_scores(scores, share, sharpness):
    scores = np.array(scores)
    q = keeping_probabilities(scores, share, sharpness=sharpness)
    assert q.mean() == pytest.approx(share, abs=1e-9)
    assert ((q >= 0) & (q <= 1)).all()
    order = scores.argsort(kind="stable")
    assert (np.diff(q[order]) >= 0).all()


@given(st.floats(-1e30, 1e30), st.integers(1, 9), st.sampled_from(SHARES))
def test_equal_scores_keep_at_random(score, tokens, share):
    q = keeping_probabilities(np.full(tokens, score), share)
    np.testing.assert_allclose(q, share, rtol=1e-9)


def test_probabilities_by_hand():
    # z = (-1, 1): of two tokens half are kept at a = 0, where q = 1 / (1 + e) and e / (1 + e).
    q = keeping_probabilities(np.array([3.0, 7.0]), 0.5)
    np.testing.assert_allclose(q, [1 / (1 + np.e), np.e / (1 + np.e)], atol=1e-12)
    # At sharpness ln 2 and a = ln 2, q = (1/2, 4/5), whose mean is 0.65.
    q = keeping_probabilities(np.array([-5.0, 5.0]), 0.65, sharpness=np.log(2))
    np.testing.assert_allclose(q, [0.5, 0.8], atol=1e-12)


@pytest.mark.parametrize("kept", [1, 3, 4])
def test_the_sharpest_keeps_the_top_tokens(kept):
    scores = np.array([0.3, -2.0, 5.0, 1.0, 0.31])
    q = keeping_probabilities(scores, kept / 5, sharpness=1e6)
    top = scores.argsort()[::-1][:kept]
    np.testing.assert_allclose(q, np.isin(np.arange(5), top), atol=1e-6)


def test_masks_grow_with_the_share():
    uniforms = np.random.default_rng(0).random((MASKS, 6))
    masks = soft_masks(np.arange(6.0), uniforms)
    assert masks.shape == (9, MASKS, 6)
    assert (masks[1:] >= masks[:-1]).all()
    # Over many numbers the share of tokens that are kept is the one that is expected.
    many = np.random.default_rng(1).random((20_000, 6))
    kept = soft_masks(np.arange(6.0), many).mean((1, 2))
    np.testing.assert_allclose(kept, SHARES, atol=0.005)


@pytest.fixture(scope="module")
def game():
    """The prompt with the fewest tokens that its donor changes, three at least."""
    model = make_tiny("llama", byte_level(), dtype=torch.float64)
    segments = ("premise1", "premise2")
    prompts = with_donors(some_prompts(8), count=8, segments=segments)
    changed = {}
    for tokenized in tokenize(model, list(prompts)):
        donated = counterfactual_tokens(model, tokenized)
        count = sum(a != b for a, b in zip(tokenized.token_ids, donated, strict=True))
        changed.setdefault(count, tokenized)
    tokenized = changed[min(count for count in changed if count > 2)]
    return TokenGame(explained_of(model, tokenized)), explained_of(model, tokenized)


def explained_of(model, tokenized):
    attribute = Attributor(model, methods=["attention"], target="margin", batch_tokens=None)
    batch = pad(model, [tokenized])
    predictions, _ = attribute(batch)
    (explained,) = attribute.explained(batch, predictions)
    return explained


def by_hand(explained, token_ids):
    """The margin of one text by a plain pass."""
    with torch.no_grad():
        logits = explained.model.hf(torch.tensor([token_ids])).logits[0, -1]
    own, other = (list(tokens) for tokens in (explained.attributed.own, explained.attributed.other))
    return float(logits[own].logsumexp(0) - logits[other].logsumexp(0))


def mixed_ids(explained, places, mask):
    ids = list(explained.prompt.token_ids)
    donated = counterfactual_tokens(explained.model, explained.prompt)
    for place, kept in zip(places, mask, strict=True):
        ids[place] = ids[place] if kept else donated[place]
    return ids


def test_values_and_what_is_left_are_those_of_plain_passes(game):
    game, explained = game
    places, model = game.places, explained.model
    names = donors_of(explained.prompt.prompt, "instance")[0].segments
    inside = {p for name in names for p in range(*explained.prompt.segments[name])}
    assert set(places) <= inside
    scores = np.random.default_rng(3).normal(size=len(places))
    chance = game._uniforms("masks")
    expected = []
    for share in SHARES:
        q = keeping_probabilities(scores, share)
        own = [mixed_ids(explained, places, row < q) for row in chance]
        with model.measuring():
            expected.append(np.mean([by_hand(explained, ids) for ids in own]))
    with model.measuring():
        np.testing.assert_allclose(game.left(scores), expected, atol=1e-5)
        everything = game.values(np.ones(len(places), bool))
        assert float(everything) == pytest.approx(
            by_hand(explained, explained.prompt.token_ids), abs=1e-5
        )


def test_methods_with_equal_scores_are_the_random_control(game):
    game, explained = game
    with explained.model.measuring():
        known = controls(explained.prompt, game)
        random = game.left(known[RANDOM])
        np.testing.assert_array_equal(game.left(np.full(len(game.places), 7.5)), random)
        at_random = game.values(game._uniforms("masks")[None] < np.array(SHARES)[:, None, None])
        np.testing.assert_array_equal(at_random.mean(-1), random)
        # To second order in the scores, who knows the tokens' effects gains what the reverse loses.
        assert game.left(known[ORACLE]).mean() > random.mean() > game.left(known[REVERSED]).mean()


def test_the_oracle_has_the_shapley_values_of_tokens(game):
    game, explained = game
    players = len(game.places)
    with explained.model.measuring():
        found = game.shapley()
        ends = game.values(np.array([[False] * players, [True] * players]))
        assert found.sum() == pytest.approx(ends[1] - ends[0], abs=1e-9)
        masks = np.array([row[::-1] for row in product([False, True], repeat=players)])
        exact = shapley_values(game.values(masks))
    # Orders and their reverses: what is left of the error is that of three tokens together.
    np.testing.assert_allclose(found, exact, atol=0.2 * np.abs(exact).max())


def test_the_oracle_is_exact_where_no_three_tokens_interact(game, monkeypatch):
    game, explained = game
    players = len(game.places)
    chance = np.random.default_rng(0)
    alone, pairs = chance.normal(size=players), chance.normal(size=(players, players))

    def values(masks):
        return masks @ alone + np.einsum("...i,ij,...j->...", masks, np.triu(pairs, 1), masks)

    own = TokenGame(explained)
    monkeypatch.setattr(own, "values", lambda masks: values(masks.astype(float)))
    both = np.triu(pairs, 1) + np.triu(pairs, 1).T
    np.testing.assert_allclose(own.shapley(), alone + both.sum(1) / 2, atol=1e-12)


def test_scores_of_the_players(game):
    game, explained = game
    prompt, places = explained.prompt, game.places
    scores = np.arange(len(prompt), dtype=np.float32)
    found = player_scores(prompt, TokenScores(scores, 1.0), places)
    np.testing.assert_array_equal(found, places)
    spans = {name: range(*prompt.segments[name]) for name in ("premise1", "premise2")}
    within = {name: sum(place in span for place in places) for name, span in spans.items()}
    shared = player_scores(prompt, SegmentScores({"premise1": 3.0, "premise2": -1.0}), places)
    totals = [sum(s for s, p in zip(shared, places, strict=True) if p in spans[n]) for n in spans]
    expected = [3.0 * bool(within["premise1"]), -1.0 * bool(within["premise2"])]
    assert totals == pytest.approx(expected)
    # A segment that a method does not score has none.
    assert np.isnan(player_scores(prompt, SegmentScores({"premise1": 3.0}), places)).any()
    with explained.model.measuring():
        known = controls(prompt, game)
    assert known[POSITION].tolist() == places
    lengths = {name: len(span) for name, span in spans.items()}
    assert known[LENGTH].tolist() == [
        next(lengths[name] for name in spans if place in spans[name]) for place in places
    ]


def test_random_numbers_are_of_the_prompt(game):
    game, explained = game
    again = TokenGame(explained)
    np.testing.assert_array_equal(again._uniforms("masks"), game._uniforms("masks"))
    other = replace(explained.prompt.prompt, id="another")
    alike = explained_of(explained.model, tokenize(explained.model, [other])[0])
    assert (TokenGame(alike)._uniforms("masks") != game._uniforms("masks")).all()
    assert (game._uniforms("orders") != game._uniforms("masks")).all()
