"""The table of docs/models.md is whole, holds no wrong number, and is true of chosen types."""

from pathlib import Path

import pytest

from interp.models.tried import ABSENT, GIVEN, REFUSED, RIGHT, SOME, tried, tried_on
from tests.zoo.build import types
from tests.zoo.check import MEASUREMENTS
from tests.zoo.judge import judge
from tests.zoo.page import page

PAGE = Path(__file__).parents[2] / "docs" / "models.md"

CHOSEN = [
    "llama",
    "gemma4_text",  # reads its tokens again, and shares keys and values
    "qwen3_5",  # linear attention, and a gate in attention
    "falcon_h1",  # two mixers in parallel
    "nemotron_h",  # layers with one part
    "mamba2",
    "lfm2_moe",  # convolutions and experts
    "deepseek_v3",  # latent attention
    "deepseek_v4",  # several streams
    "longcat_flash",  # several mixers, one after another
    "granitemoehybrid",  # two parts of an MLP
    "opt",  # flat outputs
    "falcon",  # outputs that are changed in place
    "openai-gpt",  # norms on the stream
    "doge",  # factors by channel
    "zamba2",  # a part that several layers share
    "camembert",  # positions from its padding on
    "gpt_neox_japanese",  # cached keys that are viewed in another shape
]
"""A type for each kind of layer."""


def test_every_type_was_tried_and_no_number_is_wrong():
    assert list(tried()) == types()
    marks = {mark for row in tried().values() for mark in (row[name] for name in MEASUREMENTS)}
    assert marks <= {RIGHT, SOME, GIVEN, ABSENT, REFUSED, ""}


def test_the_page_shows_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(list(tried().values()))


def test_most_language_models_can_be_patched():
    text = [row for row in tried().values() if row["kind"] == "text"]
    sites = ("resid_pre", "resid_post", "attn_out", "mlp_out")
    for names, least in (((*sites, "input_gradient", "attention"), 0.95), (("edges",), 0.8)):
        given = [all(row[name] in (RIGHT, SOME, GIVEN, ABSENT) for name in names) for row in text]
        assert sum(given) >= least * len(given)


def test_a_class_with_images_has_a_row_of_its_own():
    assert tried_on("llama", "LlamaForCausalLM") is not None
    assert tried_on("brand_new", "BrandNewForCausalLM") is None
    with_images = tried_on("qwen3_5", "Qwen3_5ForConditionalGeneration")
    assert with_images == {name: tried()["qwen3_5:images"][name] for name in (*MEASUREMENTS,)}


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", CHOSEN)
def test_the_row_of_a_type_is_true(kind):
    row = judge(kind)
    assert {name: row[name] for name in MEASUREMENTS} == {
        name: tried()[kind][name] for name in MEASUREMENTS
    }
