"""Gaps of scores that should add up: on networks whose integrals are known, and from tables."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import interp
from interp.analysis.cautions.caution import GAP
from interp.analysis.cautions.models import adds_up, completeness_table, gap_cautions
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

IG = "integrated_gradients"


def some_scores(*rows):
    names = ["model", "prompt_id", "method", "target", "score", "completeness_gap"]
    return pd.DataFrame(rows, columns=names)


def test_the_table_by_hand():
    table = completeness_table(
        [
            some_scores(
                ("m", "p", IG, "margin", 3.0, 0.5),
                ("m", "p", IG, "margin", -1.0, 0.5),  # 2 instead of 1.5
                ("m", "p", "captum:occlusion", "margin", 3.0, 9.0),  # promises nothing
                ("m", "p", "gone", "margin", 3.0, 9.0),  # is no longer installed
            ),
            some_scores(
                ("m", "q", IG, "margin", -1.0, -0.5),  # -1 instead of -0.5
                ("m", "r", IG, "margin", np.nan, np.nan),  # failed
            ),
        ]
    )
    (row,) = table.to_dict("records")
    assert row == {
        **{"model": "m", "method": IG, "target": "margin", "prompts": 2},
        **{"difference": 0.5, "gap": 0.0, "difference_size": 1.0, "gap_size": 0.5},
        **{"largest_gap": 0.5, "relative_gap": 0.5},
    }
    (caution,) = gap_cautions(table)
    assert (caution.kind, caution.model, caution.voids) == (GAP, "m", False)
    assert caution.numbers["relative_gap"] == 0.5
    assert f"{IG}:steps=100" in caution.text
    assert not list(gap_cautions(table.assign(relative_gap=0.04)))
    assert not list(gap_cautions(table.assign(relative_gap=np.nan)))


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        (f"{IG}:steps=7", f"{IG}:steps=35"),
        ("captum:integrated_gradients", "captum:integrated_gradients:steps=1000"),
        ("captum:integrated_gradients:steps=201", "add up to f(e) - f(b)"),
        ("captum:deep_lift", "only activation functions are nonlinear"),
    ],
)
def test_a_caution_proposes_what_brings_scores_nearer(label, hint):
    scores = some_scores(("m", "p", label, "margin", 2.0, 1.0))
    (caution,) = gap_cautions(completeness_table([scores]))
    assert hint in caution.text


def test_methods_that_promise_nothing_have_no_gap():
    empty = completeness_table([some_scores(("m", "p", "attention", "margin", 2.0, np.nan))])
    assert empty.empty
    assert "relative_gap" in empty
    assert adds_up("shapley")
    assert not any(map(adds_up, ("captum:occlusion", "gim", "attention", "gone:steps=3")))


@pytest.fixture(scope="module")
def linear():
    """A model whose logits are linear in the embeddings: no norm, attention or activation."""
    model = make_tiny("gpt2", byte_level())
    for block in model.hf.transformer.h:
        block.mlp.act = nn.Identity()
        with torch.no_grad():
            block.attn.c_attn.weight.zero_()
            # Each token's value then reaches the last token with equal weights.
            block.attn.c_attn.weight[:, -model.hf.config.n_embd :].normal_(0, 0.1)
    for module in model.hf.modules():
        if isinstance(module, nn.LayerNorm):
            module.forward = lambda hidden_states: hidden_states
    return model


def gaps_of(model, methods):
    result = interp.attribute(
        model, some_prompts(1), methods=methods, target="contrast", keep_tokens=True
    )
    return result.derived()["completeness_table"].set_index("method"), result


def test_one_point_is_enough_for_a_linear_model(linear):
    methods = [f"{IG}:steps=1", f"captum:{IG}:steps=1"]
    table, result = gaps_of(linear, methods)
    assert list(table.index) == methods
    assert (table["gap_size"] < 1e-4 * table["difference_size"].clip(lower=0.1)).all()
    assert not [caution for caution in result.cautions if caution.kind == GAP]
