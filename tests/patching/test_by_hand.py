"""A model whose paths can be followed with pencil and paper.

One layer, one head; no norm, no MLP; attention is uniform over the tokens so far. The answer's
logit difference is the first coordinate of the last token's residual stream: its own embedding plus
the mean of all values, and values are twice the embedding.
"""

from dataclasses import replace

import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.patching.tables import node_set_table
from interp.prompts.prompt import Donor, Prompt, compose
from tests.support.answers import yes_no
from tests.support.by_hand import zeroed_gpt2

WORDS = ["<pad>", "x1", "x4", "x10", "Yes", "No"]
NUMBER = {"x1": 1.0, "x4": 4.0, "x10": 10.0}


@pytest.fixture
def model():
    hf, tokenizer = zeroed_gpt2(WORDS)
    with torch.no_grad():
        for word, number in NUMBER.items():
            hf.transformer.wte.weight[WORDS.index(word), 0] = number
        hf.transformer.h[0].attn.c_attn.weight[0, 4] = 2.0
        hf.transformer.h[0].attn.c_proj.weight.copy_(torch.eye(2))
        hf.lm_head.weight[WORDS.index("Yes"), 0] = 1.0
    for module in hf.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.forward = lambda hidden_states: hidden_states
    return interp.Model("by hand", hf, tokenizer)


def prompt(side, *words):
    text, segments = compose(
        [("first", words[0]), (None, " "), ("second", words[1]), (None, " "), ("third", words[2])]
    )
    return Prompt(f"{side}", text, segments, yes_no(), "pair", side, {})


PAIR = [prompt("clean", "x10", "x4", "x1"), prompt("corrupt", "x1", "x1", "x1")]
"""Metrics by hand: clean 1 + 2 (10 + 4 + 1) / 3 = 11, corrupt 1 + 2 (1 + 1 + 1) / 3 = 3."""


def effects(model, site, **options):
    rows = interp.patch(model, PAIR, sites=[site], granularity="position", **options)
    return rows.patches["effect"].tolist(), rows


def test_the_metrics_are_those_worked_out(model):
    _, result = effects(model, "resid_pre")
    (pair,) = result.pairs.to_dict("records")
    assert pair["base_metric"] == pytest.approx(3)
    assert pair["source_metric"] == pytest.approx(11)
    assert pair["recognized"]


@pytest.mark.quick(8)
@pytest.mark.parametrize(
    ("site", "expected"),
    [
        ("resid_pre", [6, 2, 0]),  # a third of twice the difference of 9, of 3, of none
        ("v", [6, 2, 0]),
        ("z", [0, 0, 8]),  # the last token's mean of values: 10 instead of 2
        ("attn_out", [0, 0, 8]),
        ("resid_mid", [0, 0, 8]),
        ("resid_post", [0, 0, 8]),
        ("mlp_out", [0, 0, 0]),
        ("q", [0, 0, 0]),
        ("k", [0, 0, 0]),
        ("pattern", [0, 0, 0]),
    ],
)
@pytest.mark.parametrize("estimate", [None, "gradient", "integrated"])
def test_each_path_carries_what_it_should(model, site, expected, estimate):
    found, result = effects(model, site, estimate=estimate)
    assert found == pytest.approx(expected, abs=1e-6)
    shares = result.patches["normalized"].tolist()
    assert shares == pytest.approx([effect / 8 for effect in expected], abs=1e-6)


def test_noising_is_the_way_back(model):
    found, result = effects(model, "resid_pre", direction="noising")
    assert found == pytest.approx([-6, -2, 0])
    assert result.patches["normalized"].tolist() == pytest.approx([6 / 8, 2 / 8, 0])
    assert not result.patches["flipped"].any()


def test_tokens_together_add_up_on_a_linear_path(model):
    result = interp.patch(model, PAIR, granularity="all")
    assert result.patches["effect"].tolist() == pytest.approx([8])
    assert result.patches["normalized"].tolist() == pytest.approx([1])
    assert result.patches["tokens"].tolist() == [3]


def test_growing_sets_of_tokens(model):
    """The first token alone gives 6 of 8 logits, with the second all: NS = 0, 6/8, 1, 1.

    Areas by trapezoids of a third: (0 + 6/8) / 6 + (6/8 + 1) / 6 + 2 / 6, and the same of |1 - NS|.
    """
    _, result = effects(model, "resid_pre", sets=True)
    sets = result.node_sets
    ranked = sets[sets["ranking"] == "exact"]
    assert ranked["cells"].tolist() == [1, 2, 3]
    assert ranked["of_cells"].unique().tolist() == [3]
    assert ranked["metric"].tolist() == pytest.approx([9, 11, 11])
    assert ranked["normalized"].tolist() == pytest.approx([6 / 8, 1, 1])
    pairs = result.pairs.assign(cluster=result.pairs["pair_id"])
    table = node_set_table(sets, pairs).set_index(["ranking", "recognized"])
    for group in ("yes", "all"):
        assert table.loc[("exact", group), "cpr"] == pytest.approx(0.75)
        assert table.loc[("exact", group), "cmd"] == pytest.approx(0.25)
    assert len(table) == 4 and table["note"].str.fullmatch(r"not tested: 1 cluster;.* 10\b.*").all()
    assert sets.loc[sets["ranking"] == "random", "metric"].iloc[-1] == pytest.approx(11)


def test_a_control_is_patched_like_the_counterpart(model):
    """The corrupt prompt with x4 in the place of its first word: metric 1 + 2 (4 + 1 + 1) / 3 = 5.

    In the place of the first word the counterpart has x10: 9 - 3; in that of the second x4: 5 - 3,
    where the control has what the corrupt prompt has.
    """
    donor = Donor("four", "instance", {"first": "x4"})
    pair = [replace(one, donors=(donor,)) for one in PAIR]
    result = interp.patch(model, pair, sites=["resid_pre"], granularity="position", control=True)
    by_source = result.patches.groupby("source", sort=False)["effect"].agg(list)
    assert by_source["counterpart"] == pytest.approx([6, 2, 0])
    assert by_source["control"] == pytest.approx([2, 0, 0])
    assert result.pairs["control"].tolist() == ["four"]
    assert result.pairs["control_metric"].tolist() == pytest.approx([5])
    assert result.patches.set_index("source")["normalized"].loc["control"].isna().all()
    noising = interp.patch(model, pair, granularity="position", direction="noising", control=True)
    assert noising.pairs["control_metric"].tolist() == pytest.approx([1 + 2 * (4 + 4 + 1) / 3])


def test_without_donors_there_is_no_control(model):
    with pytest.raises(UserError, match=r"prompt corrupt.*donors"):
        interp.patch(model, PAIR, control=True)
