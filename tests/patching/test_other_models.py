"""Models beyond the packaged architectures: every site is right or refused."""

import numpy as np
import pytest

import interp
from interp.models.families.modules import ARCHITECTURES, LLAMA_LIKE
from interp.models.sites import layer_count
from interp.patching.cells import patched_positions
from interp.patching.exact import Grid
from interp.patching.pairs import contrast_of
from interp.reading.budget import CPU_BATCH_TOKENS, TokenBudget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.other_models import other_model
from tests.support.pairs import by_hook, cells, plain_metric, some_pair
from tests.support.prompts import some_prompts

TOLERANCE = 5e-6
"""Largest difference of a metric, in logits, that the order of fp32 sums explains here."""

KINDS = [
    "olmo2",
    "olmo3",
    "gemma3_text",
    "glm4",
    "exaone4",
    "granite",
    "cohere",
    "nanochat",
    "minicpm3",
    "bitnet",
    "deepseek_v3",
    "gpt_oss",
]


def patched(model, pair, chosen):
    return Grid(model, budget=TokenBudget(CPU_BATCH_TOKENS)).patch(pair, chosen)


def some_cells(model, pair, sites):
    """A few cells that are really run, the last token among them."""
    chosen = cells(model, pair, sites, "position")
    run = [c for c in chosen if patched_positions(pair, c, layers=layer_count(model))]
    return run[:: max(1, len(run) // 8)] + run[-1:]


@pytest.mark.quick(6)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("site", ["resid_pre", "resid_post"])
def test_the_residual_stream_is_patched_as_by_a_plain_hook(kind, site):
    model = other_model(kind)
    pair = some_pair(model)
    chosen = some_cells(model, pair, [site])
    metrics = patched(model, pair, chosen)
    expected = [by_hook(model, pair, site, c.layer, *c.group.positions) for c in chosen]
    assert list(metrics.cells) == pytest.approx(expected, abs=TOLERANCE)
    assert max(abs(metric - metrics.base) for metric in metrics.cells) > 30 * TOLERANCE
    assert not interp.patch(model, some_prompts(1), sites=[site], layers=[1]).patches.empty


def resid_mid_and_resid_post(model, **options):
    """Largest difference between the effects of the two, token by token, and the largest effect."""
    sites = ["resid_mid", "resid_post"]
    found = interp.patch(model, some_prompts(1), sites=sites, granularity="position", **options)
    mid, post = (found.patches[found.patches["site"] == s]["effect"].to_numpy() for s in sites)
    assert (np.isnan(mid) == np.isnan(post)).all()  # tokens without a counterpart
    return np.nanmax(abs(mid - post)), np.nanmax(abs(post))


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cohere"])
def test_before_the_mlp_is_as_good_as_after_it(kind):
    """The MLP reads one token: to patch its stream before or after the MLP is the same."""
    difference, effect = resid_mid_and_resid_post(other_model(kind))
    assert difference < TOLERANCE < effect / 30


def test_only_the_site_that_would_be_wrong_is_refused(monkeypatch):
    model = other_model("glm4")
    # Listed as Llama, whose attention has no norm after it.
    monkeypatch.setitem(ARCHITECTURES, "brand_new", LLAMA_LIKE)
    monkeypatch.setattr(model.hf.config, "model_type", "brand_new")
    new = interp.Model("new", model.hf, model.tokenizer)
    for site in ("resid_mid", "attn_out", "mlp_out"):
        refused = rf"\(brand_new\).*\b{site}\b.*--backend transformer-lens"
        for options in ({}, {"estimate": "gradient"}):
            with pytest.raises(interp.UserError, match=refused):
                interp.patch(new, some_prompts(1), sites=[site], **options)
    result = interp.patch(new, some_prompts(1), sites=["resid_pre", "z"], layers=[1])
    assert result.patches["effect"].abs().max() > 1e-3


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("bitnet", {}),
        ("diffllama", {}),
        ("deepseek_v3", {}),  # latents in the cache, as large as values ...
        ("deepseek_v3", {"kv_lora_rank": 24}),  # ... or not
    ],
)
def test_patterns_are_refused_where_heads_give_something_else(kind, changes):
    model = other_model(kind, **changes)
    with pytest.raises(interp.UserError, match=rf"tiny {kind} .*site pattern.*\bz\b"):
        interp.patch(model, some_prompts(1), sites=["pattern"])
    assert not interp.patch(model, some_prompts(1), sites=["z"], layers=[1]).patches.empty


@pytest.mark.parametrize("kind", ["gpt_oss", "gemma3_text", "nanochat"])
def test_patterns_with_sinks_windows_and_norms_are_taken(kind):
    result = interp.patch(other_model(kind), some_prompts(4), sites=["pattern"], layers=[1])
    assert result.patches["effect"].abs().max() > 30 * TOLERANCE


@pytest.fixture
def long_pair():
    """A pair on which long RoPE takes its long frequencies."""
    model = other_model("phi3")
    prompts = some_prompts(12)
    lengths = {p.pair_id: 1000 for p in prompts}
    for prompt, tokens in zip(prompts, tokenize(model, list(prompts)), strict=True):
        lengths[prompt.pair_id] = min(lengths[prompt.pair_id], len(tokens))
    longest = max(lengths, key=lengths.__getitem__)
    assert lengths[longest] > 80
    return model, [p for p in prompts if p.pair_id == longest]


@pytest.mark.parametrize("options", [{}, {"estimate": "gradient"}])
def test_prompts_read_with_long_frequencies_are_read_whole(long_pair, options):
    model, prompts = long_pair
    result = interp.patch(model, prompts, granularity="position", **options)
    (row,) = result.pairs.to_dict("records")
    assert row["first_difference"] > 0
    ids = {t.prompt.id: t for t in tokenize(model, prompts)}
    for metric, side in (("base_metric", "corrupt"), ("source_metric", "clean")):
        tokenized = ids[row[f"{side}_prompt_id"]]
        answers = AnswerTokenizer(model)(tokenized).contrast(*contrast_of(*prompts))
        plain = plain_metric(model, tokenized.token_ids, answers)
        assert row[metric] == pytest.approx(plain, abs=TOLERANCE)
    before = result.patches["position"] < row["first_difference"]
    assert result.patches["effect"][before].abs().max() < TOLERANCE
    assert result.patches["effect"].abs().max() > 1e-3
