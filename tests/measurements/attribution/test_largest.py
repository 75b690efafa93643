"""Which segment has the largest effect or score: by hand, and by other code on real tables."""

import itertools
import math
import re

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import interp
from interp.choices import TEMPLATE
from interp.measurements.attribution.largest import (
    LARGEST,
    NOISE,
    SIDES,
    TIE,
    largest_effects,
    largest_scores,
    largest_table,
    sentence,
)
from tests.support.prompts import some_prompts


def coalition_values(prompt_id, by_donor, segments=("a", "b"), kind="instance"):
    """The rows of a prompt from one array (2^k) for each donor."""
    return [
        ("m", prompt_id, kind, list(segments), coalition, list(values))
        for coalition, values in enumerate(np.transpose(by_donor))
    ]


def effects_of(*rows):
    names = ["model", "prompt_id", "donor_kind", "segments", "coalition", "values"]
    found = largest_effects(pd.DataFrame(list(itertools.chain(*rows)), columns=names))
    return found.set_index("prompt_id")[["segment", "outcome", "alone"]]


def additive(*effects):
    """The values of a game in which each segment adds its effect."""
    k = len(effects)
    return [sum(e for i, e in enumerate(effects) if s >> i & 1) for s in range(2**k)]


def test_the_largest_effect_leads_beyond_the_spread_over_donors():
    found = effects_of(
        coalition_values("clear", [additive(1.0, -3.0), additive(1.1, -3.2), additive(0.9, -2.9)]),
        coalition_values("noisy", [additive(1.0, 2.0), additive(5.0, -1.0), additive(-2.0, 4.0)]),
        coalition_values("equal", [additive(2.0, -2.0), additive(2.0, -2.0)]),
        coalition_values("nothing", [additive(0.0, 0.0)]),
        coalition_values("single", [additive(1.0, 1.5)], kind="counterpart"),
        coalition_values("alone", [additive(0.0, 1.5), additive(0.0, 1.4)]),
    )
    assert found["outcome"].to_dict() == {
        **{"clear": LARGEST, "noisy": NOISE, "equal": TIE, "nothing": TIE},
        **{"single": LARGEST, "alone": LARGEST},
    }
    assert found["segment"].tolist() == ["b", "", "", "", "b", "b"]
    assert found["alone"].tolist() == [False] * 5 + [True]


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 4))
def test_leads_are_those_of_scipys_paired_test(seed, donors, k):
    """Each donor's effects by the order of joining, and the lead by `ttest_rel`."""
    chance = np.random.default_rng(seed)
    values = chance.normal(size=(donors, 2**k)).cumsum(1)
    orders = list(itertools.permutations(range(k)))
    effects = np.zeros((donors, k))
    for order in orders:
        for place, player in enumerate(order):
            before = sum(1 << other for other in order[:place])
            effects[:, player] += values[:, before | 1 << player] - values[:, before]
    effects /= len(orders)
    means = effects.mean(0)
    top = int(np.abs(means).argmax())
    own = effects * np.sign(means)
    leads = [
        stats.ttest_rel(own[:, top], own[:, other], alternative="greater").pvalue < 0.025
        for other in range(k)
        if other != top
    ]
    names = [f"s{place}" for place in range(k)]
    (found,) = effects_of(coalition_values("p", values, names)).to_dict("records")
    assert found["outcome"] == (LARGEST if all(leads) else NOISE)
    assert found["segment"] == (names[top] if all(leads) else "")


def scores_of(*rows):
    names = ["model", "method", "target", "prompt_id", "segment", "score"]
    table = pd.DataFrame([("m", "x", "gold", *row) for row in rows], columns=names)
    table = table.assign(tokens=1, share=np.nan)
    return largest_scores(table).set_index("prompt_id")[["segment", "outcome", "alone"]]


def test_the_largest_score_is_that_of_a_named_segment():
    found = scores_of(
        *(("p", "a", 1.0), ("p", "b", -2.0), ("p", TEMPLATE, 9.0)),
        *(("q", "a", 1.0), ("q", "b", -1.0)),
        *(("r", "b", 0.5),),
        *(("s", "a", 0.0), ("s", "b", 0.0)),
        *(("t", "a", 1.0), ("t", "thought1", 0.6), ("t", "thought2", 0.7)),
        *(("u", "a", math.nan), ("u", "b", math.nan)),  # failed
    )
    assert found.index.tolist() == ["p", "q", "r", "s", "t"]
    assert found["segment"].tolist() == ["b", "", "b", "", "thought"]
    assert found["outcome"].tolist() == [LARGEST, TIE, LARGEST, TIE, LARGEST]
    assert found["alone"].tolist() == [False, False, True, False, False]


def counted(outcomes, prompts=None):
    """The table from (prompt, segment, outcome); prompts 1a and 1b are the sides of pair 1."""
    found = pd.DataFrame(outcomes, columns=["prompt_id", "segment", "outcome"])
    ids = list(found["prompt_id"]) if prompts is None else prompts
    sides = pd.DataFrame({"prompt_id": ids, "pair_id": [name[:-1] for name in ids]})
    sides["city"] = "one"
    found = found.assign(model="m", alone=False)
    return largest_table(found, sides, by=["model"], cluster="pair_id"), sides


def test_a_pair_counts_for_a_segment_if_all_of_its_sides_do():
    outcomes = [
        *(("1a", "x", LARGEST), ("1b", "x", LARGEST)),
        *(("2a", "x", LARGEST), ("2b", "y", LARGEST)),
        *(("3a", "x", LARGEST), ("3b", "", NOISE)),
        *(("4a", "", TIE), ("4b", "", NOISE)),
        *(("5a", "y", LARGEST),),  # 5b failed
    ]
    table, prompts = counted(outcomes, [f"{pair}{side}" for pair in range(1, 6) for side in "ab"])
    rows = table.set_index(["outcome", "segment"])
    places = [(LARGEST, "x"), (LARGEST, "y"), (SIDES, ""), (NOISE, ""), (TIE, "")]
    assert rows["pairs"].to_dict() == dict(zip(places, [1, 0, 1, 1, 1], strict=True))
    assert rows["prompts"].to_dict() == dict(zip(places, [4, 2, 0, 2, 1], strict=True))
    assert (rows["of_pairs"] == 4).all() and (rows["of_prompts"] == 9).all()
    np.testing.assert_allclose(rows["share"], rows["pairs"] / 4)
    assert ((rows["low"] <= rows["share"]) & (rows["high"] >= rows["share"])).all()
    said = sentence(table, "m", "effect", prompts)
    assert re.search(r"\bx .*effect.*\b1 of 4 pairs", said)
    assert re.search(r"\b1, .*sides", said)
    # Prompts without a counterpart count by themselves.
    table, prompts = counted([("1a", "x", LARGEST), ("2a", "x", LARGEST), ("3a", "", TIE)])
    assert table["pairs"].tolist() == table["prompts"].tolist() == [2, 1]
    assert "in 2 of 3 prompts" in sentence(table, "m", "score", prompts)
    assert SIDES not in set(table["outcome"])
    none, prompts = counted([("1a", "", TIE)])
    assert re.search(r"\bno segment.*largest score", sentence(none, "m", "score", prompts))


def test_pages_of_effects_and_attributions_say_which_segment_is_the_largest(model):
    prompts = some_prompts(4)
    effects = interp.effects(model, prompts, donors=3)
    table = effects.derived()["largest_table"]
    own = effects.table("segment_effects")
    own = own[own["other_segment"].isna() & (own["donor_kind"] == "counterpart")]
    top = own.loc[own["shapley"].abs().groupby(own["prompt_id"]).idxmax()]
    counts = table[table["donor_kind"] == "counterpart"].set_index("segment")["prompts"]
    assert counts.to_dict() == top["segment"].value_counts().to_dict()
    assert "largest effect in" in effects.glance().sentences[0]

    methods = ["input_gradient", "leave_one_out:deletion"]
    scored = interp.attribute(model, prompts, methods=methods)
    table = scored.derived()["largest_table"]
    rows = scored.segment_scores
    rows = rows[rows["segment"] != TEMPLATE]
    rows = rows.assign(size=rows["score"].abs()).sort_values("size")
    top = rows.drop_duplicates(["method", "prompt_id"], keep="last")
    for method, named in top.groupby("method"):
        counts = table[(table["method"] == method) & (table["prompts"] > 0)]
        assert counts.set_index("segment")["prompts"].to_dict() == (
            named["segment"].value_counts().to_dict()
        )
    assert "tiny llama, input_gradient: " in scored.glance().sentences[0]
    for result in (effects, scored):
        assert all(len(said.split()) <= 25 for said in result.glance().sentences)
