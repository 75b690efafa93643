import pytest
import torch

import interp
from benchmarks.memory import VOCABULARY, Shape, kept_per_layer, needs


def test_weights_of_the_shapes_are_counted_and_what_is_kept_is_measured():
    prompts = interp.load_prompts(limit=6)
    found = needs(Shape(hidden=64, mlp=128, layers=3, heads=4, kv_heads=2), prompts)
    in_layers = 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)
    outside = 2 * VOCABULARY * 64 + 7 * 64
    assert found["parameters"] == in_layers + outside
    assert found["gb_bf16"] == pytest.approx(2 * (in_layers + outside) / 1e9)
    assert found["gb_4bit"] == pytest.approx((0.5625 * in_layers + 2 * outside) / 1e9)
    assert 0 < found["kept_plain"] < found["kept_padded"]


def test_what_a_layer_keeps_follows_from_its_sizes():
    prompts = interp.load_prompts(limit=6)
    narrow, wide = (
        kept_per_layer(Shape(hidden=64, mlp=mlp, layers=1, heads=4, kv_heads=2), prompts)[0]
        for mlp in (128, 256)
    )
    # Gate, its activation, and up: bf16 each; their product is kept by nothing.
    assert wide - narrow == pytest.approx(3 * 128 * torch.bfloat16.itemsize)
