"""The map of every architecture, tried by interventions on a random model."""

import pytest
import torch

import interp
from interp.choices import SITES
from interp.errors import UserError
from interp.models.families.modules import ARCHITECTURES
from interp.models.sites import edited, head_count, layer_count, locate, recorded
from tests.support.other_models import other_model
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, tiny_model

IDS = torch.tensor([[9, 30, 12, 77, 41, 8]])
PARALLEL = ("gpt_neox", "gptj", "phi")


def mapped(kind):
    return tiny_model(kind) if kind in CONFIGS else other_model(kind)


@torch.no_grad()
def heads_outputs(model, layer, *edits):
    """The outputs of a layer's heads, (head, token, size)."""
    z = locate(model, "z", layer)
    with recorded({"z": z}) as found, edited(*edits):
        model.hf(input_ids=IDS, use_cache=False)
    return z.view(found["z"])[0].transpose(0, 1)


@pytest.mark.parametrize("site", ["q", "k", "v"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_changed_head_changes_the_outputs_of_its_own_query_heads_alone(kind, site):
    model = mapped(kind)
    heads, layer = head_count(model, site), layer_count(model) - 1
    group = head_count(model, "q") // heads
    location = locate(model, site, layer)
    plain = heads_outputs(model, layer)
    # The norms of whole layers in OLMo 2 and 3 mix the queries, and the keys, of all heads.
    mixes = site != "v" and kind in ("olmo2", "olmo3")
    for head in range(heads):

        def change(tensor, head=head):
            changed = tensor.clone()
            # Keys that all change alike would leave attention as it is.
            own = location.view(changed)[:, 2, head]
            own += torch.linspace(1, 2, own.shape[-1])
            return changed

        difference = (heads_outputs(model, layer, (location, change)) - plain).abs().amax((1, 2))
        own = torch.zeros_like(difference, dtype=torch.bool)
        own[head * group : (head + 1) * group] = True
        assert (difference[own] > 1e-5).all()
        assert mixes or (difference[~own] == 0).all()


@pytest.mark.quick("llama")
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_site_is_patched_or_missing_for_a_reason(kind):
    model = mapped(kind)
    prompts = some_prompts(1)
    sites = [site for site in SITES if site != "resid_mid" or kind not in PARALLEL]
    effects = interp.patch(model, prompts, sites=sites).patches
    assert set(effects["site"]) == set(sites)
    if kind in PARALLEL:
        with pytest.raises(UserError, match=r"layer 0\b.*site resid_mid.*parallel"):
            interp.patch(model, prompts, sites=["resid_mid"])


def test_a_scaled_site_is_what_is_added_and_what_an_edit_leaves_keeps_its_digits():
    model = other_model("granite", dtype=torch.bfloat16)
    ids, layer = torch.tensor([[5, 9, 17, 23]]), model.layers[1]
    place = locate(model, "attn_out", 1)
    (part,) = layer.mixer
    assert part.scale == place.scale == 3.0
    seen = []
    handle = part.module.register_forward_hook(lambda *call: seen.append(call[2]))
    with torch.no_grad():
        plain = model.hf(ids).logits
        with recorded({0: place}) as values:
            assert torch.equal(model.hf(ids).logits, plain)
    handle.remove()
    raw = seen[0][0] if isinstance(seen[0], tuple) else seen[0]
    assert torch.equal(values[0], 3.0 * raw)
    wide = other_model("granite", dtype=torch.float64)
    at = locate(wide, "attn_out", 1)
    with recorded({0: at}) as values:
        contrast = wide.hf(ids).logits[0, -1, :2].diff()
    (gradient,) = torch.autograd.grad(contrast, values[0])
    # The norms compute in float32, so steps must not be tiny.
    step = 1e-3 * torch.randn(gradient.shape, dtype=torch.float64)
    moved = []
    for sign in (1, -1):
        with torch.no_grad(), edited((at, lambda tensor, sign=sign: tensor + sign * step)):
            moved.append(float(wide.hf(ids).logits[0, -1, :2].diff()))
    slope = float((gradient * step).sum())
    assert (moved[0] - moved[1]) / 2 == pytest.approx(slope, rel=5e-3)
