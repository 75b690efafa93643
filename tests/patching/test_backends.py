"""The same cells on three libraries, layer by layer and site by site."""

import copy
import math
from collections import defaultdict

import pytest
import torch

import interp
from interp.models.families.modules import ARCHITECTURES, LLAMA_LIKE
from interp.models.sites import layer_count
from interp.patching.exact import Grid
from interp.reading.budget import CPU_BATCH_TOKENS, TokenBudget
from tests.patching.test_other_models import resid_mid_and_resid_post
from tests.support.other_models import other_model
from tests.support.pairs import EQUAL, UNEQUAL, cells, sites_of, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny
from tests.support.tokenizers import byte_level

TOLERANCE = 3e-6
"""Largest difference of a metric, in logits: TransformerLens computes attention eagerly."""

LIBRARIES = ("transformer-lens", "nnsight")


def other_backend(library, model):
    if library == "nnsight":
        pytest.importorskip("nnsight", reason="the extra nnsight is not installed")
        from interp.patching.nnsight import NnsightBackend

        return NnsightBackend(model)
    pytest.importorskip("transformer_lens", reason="the extra transformer-lens is not installed")
    from interp.patching.transformer_lens import TransformerLensBackend

    return TransformerLensBackend(model)


def compare(library, model, pair, chosen):
    """Largest difference and largest effect, by site and layer."""
    theirs = other_backend(library, model).patch(pair, chosen)
    ours = Grid(model, budget=TokenBudget(CPU_BATCH_TOKENS)).patch(pair, chosen)
    assert ours.base == pytest.approx(theirs.base, abs=TOLERANCE)
    assert ours.source == pytest.approx(theirs.source, abs=TOLERANCE)
    differences, effects = defaultdict(float), defaultdict(float)
    for cell, one, other in zip(chosen, ours.cells, theirs.cells, strict=True):
        assert math.isnan(one) == math.isnan(other)
        if not math.isnan(one):
            key = cell.site, cell.layer
            differences[key] = max(differences[key], abs(one - other))
            effects[key] = max(effects[key], abs(one - ours.base))
    return differences, effects


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_site_of_every_layer_agrees(library, kind):
    model = make_tiny(kind, byte_level())
    pair = some_pair(model, UNEQUAL if kind in ("llama", "gemma2") else EQUAL, policy="mean")
    sites = [s for s in sites_of(model) if not (library == "nnsight" and s == "pattern")]
    chosen = [
        cell
        for cell in cells(model, pair, sites)
        # A few roles and heads of each: a cell is a forward pass there.
        if cell.group.role in ("premise1_entity_a", "conclusion", "last") and cell.head in (None, 1)
    ]
    differences, effects = compare(library, model, pair, chosen)
    assert len(differences) == len(sites) * layer_count(model)
    for key, difference in differences.items():
        assert difference < TOLERANCE, key
    moved = [site for site in sites if max(effects[site, layer] for layer in range(2)) > 0]
    assert moved == sites


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_grid_by_position_agrees(library):
    model = make_tiny("llama", byte_level())
    pair = some_pair(model, EQUAL)
    chosen = cells(model, pair, ["resid_pre"], "position")[::2]
    differences, effects = compare(library, model, pair, chosen)
    assert max(differences.values()) < TOLERANCE < max(effects.values()) / 30


@pytest.mark.parametrize(("library", "tolerance"), [("transformer-lens", 5e-7), ("nnsight", 1e-12)])
def test_metrics_of_a_float64_model_are_not_rounded(library, tolerance):
    """TransformerLens itself computes its rotations in float32."""
    model = make_tiny("llama", byte_level(), dtype=torch.float64)
    pair = some_pair(model, UNEQUAL, policy="mean")  # means over several tokens are not rounded
    chosen = cells(model, pair, ["resid_pre"], layers=[1])
    theirs = other_backend(library, model).patch(pair, chosen)
    ours = Grid(model, budget=TokenBudget(CPU_BATCH_TOKENS)).patch(pair, chosen)
    assert theirs.cells == pytest.approx(ours.cells, abs=tolerance, rel=0)
    assert max(abs(cell - ours.base) for cell in ours.cells) > 1e-3
    assert torch.tensor(theirs.base, dtype=torch.float32).item() != theirs.base


@pytest.mark.parametrize("library", LIBRARIES)
def test_they_are_selectable_and_leave_the_model_alone(library):
    model = make_tiny("llama", copy.deepcopy(byte_level()))
    model.tokenizer.pad_token = None
    other_backend(library, model)
    assert model.tokenizer.pad_token is None
    before = {name: value.clone() for name, value in model.hf.state_dict().items()}
    native = interp.patch(model, some_prompts(1), layers=[1])
    theirs = interp.patch(model, some_prompts(1), layers=[1], backend=library)
    assert list(native.patches["role"]) == list(theirs.patches["role"])
    assert (native.patches["effect"] - theirs.patches["effect"]).abs().max() < TOLERANCE
    assert model.attn_implementation == "sdpa"
    after = model.hf.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert all(not module._forward_hooks for module in model.hf.modules())


def test_nnsight_refuses_what_it_cannot_do():
    pytest.importorskip("nnsight", reason="the extra nnsight is not installed")
    model = make_tiny("llama", byte_level())
    with pytest.raises(interp.UserError, match=r"backend nnsight.*site pattern.*--backend native"):
        interp.patch(model, some_prompts(1), sites=["pattern"], backend="nnsight")
    with pytest.raises(interp.UserError, match=r"tiny llama.*remote.*\bhub"):
        interp.patch(model, some_prompts(1), backend="nnsight", remote=True)


@pytest.mark.parametrize("kind", ["olmo2", "gemma3_text", "glm4", "granite"])
def test_nnsight_patches_the_stream_where_a_norm_or_factor_follows_the_attention(kind):
    pytest.importorskip("nnsight", reason="the extra nnsight is not installed")
    difference, effect = resid_mid_and_resid_post(other_model(kind), layers=[0], backend="nnsight")
    assert difference < TOLERANCE < effect / 30


def test_nnsight_refuses_a_stream_that_the_map_does_not_know(monkeypatch):
    pytest.importorskip("nnsight", reason="the extra nnsight is not installed")
    model = make_tiny("gemma2", byte_level())
    # Listed as Llama, whose attention has no norm after it.
    monkeypatch.setitem(ARCHITECTURES, "brand_new", LLAMA_LIKE)
    model.hf.config.model_type = "brand_new"
    new = interp.Model("new", model.hf, model.tokenizer)
    with pytest.raises(
        interp.UserError, match=r"\(brand_new\).*resid_mid.*--backend transformer-lens"
    ):
        interp.patch(new, some_prompts(1), sites=["resid_mid"], backend="nnsight")


def test_transformer_lens_takes_a_model_that_was_never_saved():
    pytest.importorskip("transformer_lens", reason="the extra transformer-lens is not installed")
    model = other_model("olmo2")
    assert model.hf.config.architectures is None
    options = {"layers": [1], "granularity": "segment"}
    native = interp.patch(model, some_prompts(1), **options)
    theirs = interp.patch(model, some_prompts(1), backend="transformer-lens", **options)
    assert (native.patches["effect"] - theirs.patches["effect"]).abs().max() < TOLERANCE


def test_transformer_lens_says_which_models_it_does_not_know():
    pytest.importorskip("transformer_lens", reason="the extra transformer-lens is not installed")
    with pytest.raises(
        interp.UserError, match=r"tiny diffllama \(DiffLlamaForCausalLM\).*--backend native"
    ):
        interp.patch(other_model("diffllama"), some_prompts(1), backend="transformer-lens")


def test_transformer_lens_resid_mid_alone_would_not_reach_the_stream():
    """Why its backend patches attn_out for resid_mid: the hook of that name feeds the MLP only."""
    pytest.importorskip("transformer_lens", reason="the extra transformer-lens is not installed")
    from interp.patching.transformer_lens import TransformerLensBackend, hook_name

    model = make_tiny("llama", byte_level())
    pair = some_pair(model)
    last = layer_count(model) - 1
    with torch.no_grad():
        model.hf.model.layers[last].mlp.down_proj.weight.zero_()
    bridge = TransformerLensBackend(model)._bridge
    ids = torch.tensor([pair.base.token_ids])

    def after_adding(name):
        kept = {}

        def add(tensor, hook):
            return tensor + 1.0

        def keep(tensor, hook):
            kept["resid_post"] = tensor

        hooks = [(name, add), (hook_name("resid_post", last), keep)]
        with torch.no_grad():
            bridge.run_with_hooks(ids, fwd_hooks=hooks)
        return kept["resid_post"]

    unpatched = after_adding(hook_name("mlp_out", last)) - 1.0
    assert torch.allclose(after_adding(hook_name("resid_mid", last)), unpatched, atol=1e-6)
    assert torch.allclose(after_adding(hook_name("attn_out", last)), unpatched + 1.0, atol=1e-6)
