import numpy as np
import pytest

from interp.attribution.method import SegmentScores, TokenScores
from interp.measurements.attribution.measure import segment_score_rows, token_score_rows
from interp.reading.tokens import token_segments, tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


@pytest.fixture(scope="module")
def prompt():
    return tokenize(tiny_model("llama"), some_prompts(1)[:1])[0]


def rows_of(prompt, attribution):
    rows = segment_score_rows(tiny_model("llama"), prompt, {"m": attribution}, target="gold")
    return {row["segment"]: row for row in rows}


def of_tokens(values, gap=None):
    scores = np.array(values, dtype=np.float32)
    return TokenScores(scores, float(np.abs(scores).sum()), gap)


def test_signed_scores_are_summed_and_shares_are_of_their_sizes(prompt):
    signs = np.where(np.arange(len(prompt)) % 2, 1.0, -1.0)
    rows = rows_of(prompt, of_tokens(signs, gap=0.25))
    segments = np.array(token_segments(prompt))
    assert list(rows) == list(dict.fromkeys(segments))
    for segment, row in rows.items():
        own = segments == segment
        assert row["score"] == signs[own].sum()
        assert row["share"] == pytest.approx(own.mean(), rel=1e-6)
        assert row["tokens"] == own.sum()
        assert (row["total"], row["completeness_gap"]) == (len(prompt), 0.25)
        assert (row["method"], row["target"], row["error"]) == ("m", "gold", "")


@pytest.mark.parametrize("bad", [[np.nan], [np.inf], [np.inf, -np.inf]])
def test_scores_that_are_no_numbers_have_an_error_in_every_segment(prompt, bad):
    values = np.ones(len(prompt), dtype=np.float32)
    start = prompt.segments["premise1"][0]
    values[start : start + len(bad)] = bad
    rows = rows_of(prompt, of_tokens(values))
    assert len(rows) == 5
    for row in rows.values():
        assert row["error"] == "non-finite"
        assert not {"score", "share", "total"} & set(row)
    for row in rows_of(prompt, of_tokens([0.0] * len(prompt))).values():
        assert (row["score"], row["share"], row["error"]) == (0, None, "")


def test_scores_of_segments_are_kept_as_they_are(prompt):
    scores = {"premise1": -1.0, "premise2": 3.0}
    attribution = SegmentScores(scores, completeness_gap=0.5)
    rows = rows_of(prompt, attribution)
    assert {segment: row["score"] for segment, row in rows.items()} == scores
    assert [row["share"] for row in rows.values()] == [0.25, 0.75]
    start, end = prompt.segments["premise1"]
    assert rows["premise1"]["tokens"] == end - start
    assert token_score_rows(tiny_model("llama"), prompt, {"m": attribution}, target="gold") == []
