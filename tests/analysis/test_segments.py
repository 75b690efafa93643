import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interp.analysis.segments import segment_ratios, segment_table, token_shares

RATIO = ("premise2", "premise1")


def scores_of(prompt, segments, *, method="m", error=""):
    """Rows of the segment_scores table; `segments` is name to (tokens, share)."""
    return [
        {
            "model": "model",
            "prompt_id": prompt,
            "method": method,
            "target": "predicted",
            "segment": name,
            "tokens": tokens,
            "score": None if share is None else -2 * share,
            "share": share,
            "error": error,
        }
        for name, (tokens, share) in segments.items()
    ]


def test_ratios_by_hand():
    rows = [
        *scores_of("1", {"template": (9, 0.4), "premise1": (4, 0.4), "premise2": (2, 0.2)}),
        *scores_of("1", {"premise1": (4, 0.25), "premise2": (2, 0.75)}, method="n"),
    ]
    table = segment_ratios(pd.DataFrame(rows), RATIO)
    assert table["method"].tolist() == ["m", "n"]
    assert table["ratio_unnormalized"].tolist() == [0.5, 3.0]
    assert table["ratio"].tolist() == [1.0, 6.0]
    assert table["error"].tolist() == ["", ""]
    other = segment_ratios(pd.DataFrame(rows), RATIO[::-1])
    assert other["ratio"].tolist() == [1.0, pytest.approx(1 / 6)]


@pytest.mark.parametrize(
    ("segments", "error", "reason"),
    [
        ({"premise1": (4, 0.0), "premise2": (2, 0.2)}, "", "premise1 has no score"),
        ({"premise1": (4, None), "premise2": (2, None)}, "non-finite", "non-finite"),
        ({"premise1": (4, None), "premise2": (2, None)}, "", "premise1 has no score"),
        ({"premise1": (4, 0.5)}, "", "the prompt has no segment premise2"),
        ({"premise2": (4, 0.5)}, "", "the prompt has no segment premise1"),
        ({"question": (4, 0.5)}, "", "the prompt has no segment premise2"),
    ],
)
def test_a_ratio_that_is_missing_has_a_reason(segments, error, reason):
    whole = scores_of("2", {"premise1": (1, 0.5), "premise2": (1, 0.25)})
    rows = pd.DataFrame([*scores_of("1", segments, error=error), *whole])
    table = segment_ratios(rows.astype({"share": float}), RATIO)
    assert table["error"].tolist() == [reason, ""]
    np.testing.assert_array_equal(table["ratio"], [np.nan, 0.5])
    np.testing.assert_array_equal(table["ratio_unnormalized"], [np.nan, 0.5])


@settings(max_examples=60, deadline=None)
@given(
    shares=st.lists(st.floats(2**-6, 1.0), min_size=2, max_size=2),
    tokens=st.lists(st.integers(1, 50), min_size=2, max_size=2),
    factor=st.sampled_from([0.25, 2.0, 1024.0]),
)
def test_ratios_do_not_depend_on_a_common_factor(shares, tokens, factor):
    names = ("premise1", "premise2")
    one, other = (
        segment_ratios(
            pd.DataFrame(
                scores_of("1", dict(zip(names, zip(tokens, scaled, strict=True), strict=True)))
            ),
            RATIO,
        )
        for scaled in (shares, [share * factor for share in shares])
    )
    assert one["ratio"].tolist() == other["ratio"].tolist()
    means = [share / count for share, count in zip(shares, tokens, strict=True)]
    assert one["ratio"].iloc[0] == pytest.approx(means[1] / means[0])


def test_means_by_segment_by_hand():
    rows = [
        *scores_of("1", {"a": (2, 0.25), "b": (4, 0.75)}),
        *scores_of("2", {"a": (4, 0.75), "c": (1, 0.25)}),
    ]
    table = segment_table(pd.DataFrame(rows)).set_index("segment")
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["prompts"].tolist() == [2, 1, 1]
    assert table["tokens"].tolist() == [3.0, 4.0, 1.0]
    assert table["share"].tolist() == [0.5, 0.75, 0.25]
    assert table["score"].tolist() == [-1.0, -1.5, -0.5]
    assert table.loc["a", "share_sd"] == pytest.approx(np.std([0.25, 0.75], ddof=1))
    assert np.isnan(table.loc["b", "share_sd"])


def test_shares_of_tokens_by_hand():
    key = {"model": "model", "prompt_id": "1", "target": "predicted"}
    scores = pd.DataFrame(
        [
            {**key, "method": method, "position": position, "score": score}
            for method, values in {"m": (-1.0, 3.0), "n": (0.5, 0.5)}.items()
            for position, score in enumerate(values)
        ]
    )
    tokens = pd.DataFrame(
        [
            {**key, "position": position, "token": text, "segment": text.upper(), "role": "r"}
            for position, text in enumerate("ab")
        ]
    ).drop(columns="target")
    table = token_shares(scores, tokens)
    assert table["share"].tolist() == [0.25, 0.75, 0.5, 0.5]
    assert table["token"].tolist() == ["a", "b", "a", "b"]
    assert table["segment"].tolist() == ["A", "B", "A", "B"]
