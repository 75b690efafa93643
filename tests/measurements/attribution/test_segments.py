"""Tables of segments; rankings by hand, and the area under the curve by scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from interp.estimates.compute import estimate
from interp.measurements.attribution.segments import (
    LENGTH,
    MEAN,
    POSITION,
    SEGMENTS,
    SUM,
    decisive_table,
    finds,
    segment_ratios,
    segment_trials,
    token_shares,
)
from interp.prompts.prompt_set import Decisive

RATIO = ("premise2", "premise1")


def scores_of(prompt, segments, *, method="m", error=""):
    """Rows of the segment_scores table; `segments` is name to (tokens, share) or and score."""
    return [
        {
            "model": "model",
            "prompt_id": prompt,
            "method": method,
            "target": "predicted",
            "segment": name,
            "tokens": tokens,
            "score": score[0] if score else None if share is None else -2 * share,
            "share": share,
            "error": error,
        }
        for name, (tokens, share, *score) in segments.items()
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


def test_means_by_segment_by_hand():
    """Over the cities of prompts; a failed prompt has tokens and no score."""
    rows = [
        *scores_of("1", {"a": (2, 0.25), "b": (4, 0.75)}),
        *scores_of("2", {"a": (4, 0.75), "c": (1, 0.25)}),
        *scores_of("3", {"c": (3, 0.75)}),
        *scores_of("4", {"a": (9, None)}, error="non-finite"),
    ]
    prompts = pd.DataFrame({"prompt_id": list("1234"), "pair_id": "p", "city": list("xyyz")})
    table = estimate(SEGMENTS, segment_trials(pd.DataFrame(rows), prompts, "city"))
    assert table["segment"].tolist() == ["a", "b", "c"]
    assert table[["prompts", "clusters"]].to_numpy().tolist() == [[2, 2], [1, 1], [2, 1]]
    assert table["tokens"].tolist() == [3.0, 4.0, 2.0]
    assert table["share"].tolist() == [0.5, 0.75, 0.5]
    assert table["score"].tolist() == [-1.0, -1.5, -1.0]
    sd = np.std([0.25, 0.75], ddof=1)
    assert table["share_sd"].tolist() == pytest.approx([sd, np.nan, sd], nan_ok=True)


def test_shares_of_tokens_by_hand():
    key = {"model": "model", "prompt_id": "1"}
    values = [("m", 0, -1.0), ("m", 1, 3.0), ("n", 0, 0.5), ("n", 1, 0.5)]
    scores = pd.DataFrame(values, columns=["method", "position", "score"])
    tokens = pd.DataFrame({"position": [0, 1], "token": ["a", "b"], "segment": ["A", "B"]})
    table = token_shares(scores.assign(**key, target="predicted"), tokens.assign(**key, role="r"))
    assert table["share"].tolist() == [0.25, 0.75, 0.5, 0.5]
    assert table["token"].tolist() == ["a", "b", "a", "b"]
    assert table["segment"].tolist() == ["A", "B", "A", "B"]


DECISIVE = Decisive("golden_rule", ("golden", "noise"))
PROOF = Decisive("proof_set", ("fact", "rule"))


def scores(prompt, *, error="", **by_segment):
    """Rows of one prompt: (score, tokens) by segment."""
    own = {name: (tokens, None, score) for name, (score, tokens) in by_segment.items()}
    return pd.DataFrame(scores_of(prompt, own, error=error))


def found(*parts, decisive=DECISIVE, deciding=(), **starts):
    """Rankings; each prompt's segments start in the order of their scores, unless `starts` says."""
    rows = []
    for place, part in enumerate(parts):
        (name,) = part["prompt_id"].unique()
        own = starts.get(name) or {segment: at for at, segment in enumerate(part["segment"])}
        rows.append(
            {
                "prompt_id": name,
                decisive.factor: deciding[place] if deciding else "golden",
                **{f"{segment}_start": start for segment, start in own.items()},
            }
        )
    table = finds(pd.concat(parts, ignore_index=True), pd.DataFrame(rows), decisive)
    return table.set_index(["prompt_id", "method", "reading"])


def test_a_ranking_by_hand():
    table = found(
        scores("a", golden=(-6.0, 12), noise1=(2.0, 2), noise2=(-4.0, 16), question=(9.0, 1)),
        a={"golden": 40, "noise1": 0, "noise2": 20, "question": 90},
    )
    by_sum = table.loc[("a", "m", SUM)]
    assert by_sum[["hit", "auc", "share"]].tolist() == [1.0, 1.0, 0.5]
    assert by_sum["chance"] == pytest.approx(1 / 3)
    # Of a token: golden 0.5, noise1 1, noise2 0.25.
    by_mean = table.loc[("a", "m", MEAN)]
    assert by_mean[["hit", "auc"]].tolist() == [0.0, 0.5]
    assert table.loc[("a", LENGTH, ""), ["hit", "auc"]].tolist() == [0.0, 0.5]
    assert table.loc[("a", POSITION, ""), ["hit", "auc"]].tolist() == [1.0, 1.0]


def test_ties_count_as_the_mean_over_orders_and_what_has_no_ranking_is_left_out():
    table = found(
        scores("a", golden=(1.0, 1), noise1=(1.0, 1), noise2=(-1.0, 1)),
        scores("b", golden=(0.0, 1), noise1=(0.0, 1)),
        scores("alone", golden=(1.0, 1)),
        scores("broken", golden=(np.nan, 1), noise1=(np.nan, 1), error="non-finite"),
    )
    assert table.loc[("a", "m", SUM), ["hit", "auc"]].tolist() == pytest.approx([1 / 3, 0.5])
    nothing = table.loc[("b", "m", SUM)]
    assert nothing[["hit", "auc"]].tolist() == [0.5, 0.5] and np.isnan(nothing["share"])
    assert set(table.index.get_level_values("prompt_id")) == {"a", "b"}
    empty = found(scores("alone", golden=(1.0, 1)))
    assert empty.empty and "hit" in empty.columns


def test_several_segments_may_decide():
    table = found(
        scores("a", fact1=(3.0, 1), fact2=(5.0, 1), rule1=(-4.0, 1), rule2=(3.0, 1)),
        scores("tied", fact1=(2.0, 1), fact2=(2.0, 1), rule1=(2.0, 1)),
        scores("all", fact1=(1.0, 1), rule1=(2.0, 1)),
        scores("none", fact1=(1.0, 1), rule1=(2.0, 1)),
        decisive=PROOF,
        deciding=["fact1 rule1", "fact1 fact2", "fact1 rule1", ""],
    )
    first = table.loc[("a", "m", SUM)]
    # fact1 beats nothing and ties with rule2, rule1 beats rule2 alone: 1.5 of 4 pairs.
    assert first[["hit", "auc", "share", "chance"]].tolist() == [0.0, 0.375, 7 / 15, 0.5]
    tied = table.loc[("tied", "m", SUM)]
    assert tied[["hit", "auc", "chance"]].tolist() == pytest.approx([2 / 3, 0.5, 2 / 3])
    assert set(table.index.get_level_values("prompt_id")) == {"a", "tied"}


def test_the_area_over_several_segments_is_that_of_the_curve():
    rng = np.random.default_rng(1)
    parts, deciding, areas = [], [], []
    for number in range(20):
        names = [f"fact{n}" for n in range(8)]
        own = rng.permutation(names)[: rng.integers(1, 7)]
        sizes, signs = rng.integers(0, 6, 8).astype(float), rng.choice([-1, 1], 8)
        by_segment = {n: (s, 1) for n, s in zip(names, sizes * signs, strict=True)}
        parts.append(scores(f"p{number}", **by_segment))
        deciding.append(" ".join(own))
        areas.append(roc_auc_score(np.isin(names, own), sizes))
    table = found(*parts, decisive=PROOF, deciding=deciding).xs(SUM, level="reading")
    assert table["auc"].tolist() == pytest.approx(areas)


def test_the_table_has_a_row_of_each_kind_over_the_clusters_that_are_named():
    rows = found(
        *[scores(f"p{n}", golden=(float(n), 1), noise1=(1.5, 1)) for n in range(4)]
    ).reset_index()
    rows["outcome"] = rows["prompt_id"].isin(["p2", "p3"]).map({True: "right", False: "wrong"})
    table = decisive_table(rows.assign(theory="one"), "theory", ["outcome"])
    table = table[(table["method"] == "m") & (table["reading"] == SUM)].set_index("outcome")
    assert table["hit"].to_dict() == {"wrong": 0.0, "right": 1.0}
    assert table[["prompts", "clusters"]].to_numpy().tolist() == [[2, 1], [2, 1]]
    assert table.loc["right", "share"] == pytest.approx((2 / 3.5 + 3 / 4.5) / 2)
