"""Parallel streams (DeepSeek-V4), mixers in turn (LongCat), layers that do not run (Llama 3.2)."""

from functools import cache

import pytest
import torch

import interp
from interp.errors import UserError
from interp.models.sites import edited, layers_with, locate, recorded
from tests.zoo.build import build, tokenizer
from tests.zoo.material import ids_of, options, prompts

PARALLEL = ["deepseek_v4", "hy_v4", "qwen4_exp_text"]


@cache
def model(kind):
    return interp.Model(kind, build(kind).hf, tokenizer())


def ids(prompt_id):
    return next(ids_of(prompt) for prompt in prompts() if prompt.id == prompt_id)


@torch.no_grad()
def contrast(hf, prompt_id, *hooks):
    """The difference of the options' logits in a pass with hooks, which then are removed."""
    logits = hf(input_ids=torch.tensor([ids(prompt_id)]), use_cache=False).logits[0, -1].double()
    for hook in hooks:
        hook.remove()
    first, second = options()
    return float(logits[first] - logits[second])


def patched_by_hand(hf, modules, position):
    """The effect of outputs of modules at a token, taken from the other prompt."""
    taken = []
    keep = [
        own.register_forward_hook(lambda module, inputs, output: taken.append(first(output)))
        for own in modules
    ]
    contrast(hf, "long/clean", *keep)

    def put(tensor):
        new = tensor.clone()
        new[:, position] = taken.pop(0)[:, position]
        return new

    def change(module, inputs, output):
        return put(output) if torch.is_tensor(output) else (put(output[0]), *output[1:])

    hooks = [own.register_forward_hook(change) for own in modules]
    return contrast(hf, "long/corrupt", *hooks) - contrast(hf, "long/corrupt")


def first(output):
    return output.clone() if torch.is_tensor(output) else output[0].clone()


def patched(kind, site, layer, position):
    pair = [prompt for prompt in prompts() if prompt.pair_id == "long"]
    rows = interp.patch(model(kind), pair, sites=[site], granularity="position").patches
    (row,) = rows[(rows["layer"] == layer) & (rows["position"] == position)].to_dict("records")
    return row["effect"]


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", PARALLEL)
def test_parallel_streams_are_patched_together(kind):
    hf = model(kind).hf
    layers = hf.model.layers
    expected = patched_by_hand(hf, [layers[0]], 8)
    assert abs(expected) > 1e-3
    assert patched(kind, "resid_post", 0, 8) == pytest.approx(expected, abs=1e-4)
    assert patched(kind, "resid_pre", 1, 8) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", PARALLEL)
def test_what_is_mixed_into_parallel_streams_is_found(kind):
    for layer in model(kind).layers:
        named = dict(layer.module.named_children())
        mixer = named.get("self_attn") or named["linear_attn"]
        assert [part.module for part in layer.mixer] == [mixer]
        assert [part.module for part in layer.mlp] == [named["mlp"]]
        assert layer.streams == 2
        assert "mixed anew" in layer.lacks["resid_mid"]


@pytest.mark.parametrize("kind", PARALLEL)
def test_parallel_streams_have_no_edges_and_no_norm_before_the_head(kind):
    assert model(kind).anatomy.final_norm is None
    with pytest.raises(UserError, match=r"layer 0\b.*edges.*resid_pre"):
        interp.edges(model(kind), prompts())


def test_parallel_streams_are_read_side_by_side():
    own = model("deepseek_v4")
    place = {0: locate(own, "resid_pre", 1)}
    seen = []
    hook = own.layers[1].module.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0])
    )
    with recorded(place) as values:
        contrast(own.hf, "long/clean", hook)
    assert torch.equal(values[0], seen[0].flatten(2))


@pytest.mark.parametrize("site", ["attn_out", "mlp_out"])
@pytest.mark.parametrize("layer", [0, 1])
def test_mixers_in_turn_are_patched_together(layer, site):
    kind = "longcat_flash"
    own = model(kind).hf.model.layers[layer]
    modules = [*own.self_attn] if site == "attn_out" else [own.mlp, *own.mlps]
    expected = patched_by_hand(model(kind).hf, modules, 8)
    assert abs(expected) > 1e-4
    assert patched(kind, site, layer, 8) == pytest.approx(expected, abs=1e-4)


def test_mixers_in_turn_are_read_side_by_side_in_each_pass():
    own = model("longcat_flash")
    place = locate(own, "attn_out", 0)
    with recorded({0: place}) as values:
        contrast(own.hf, "long/clean")
        earlier = values[0]
        contrast(own.hf, "long/corrupt")
    assert earlier.shape == values[0].shape == (1, 13, 2 * own.hf.config.hidden_size)
    assert not torch.equal(earlier, values[0])
    with edited((place, torch.clone)):
        within = contrast(own.hf, "long/clean")
    assert within == contrast(own.hf, "long/clean")


def test_mixers_in_turn_have_no_estimates():
    with pytest.raises(UserError, match=r"site attn_out.*layer 0\b.*longcat_flash.*estimate"):
        interp.patch(model("longcat_flash"), prompts(), sites=["attn_out"], estimate="gradient")
    found = interp.patch(
        model("longcat_flash"), prompts(), sites=["resid_pre"], estimate="gradient"
    )
    assert found.patches["effect"].notna().all()


def test_the_stream_passes_layers_that_do_not_run():
    own = model("mllama")
    assert [layer.runs for layer in own.layers] == [True, False, True]
    assert layers_with(own, "attn_out") == [0, 2]
    effects = [patched("mllama", site, layer, 8) for site, layer in SAME]
    assert effects == [effects[0]] * len(effects)
    assert effects[0] == pytest.approx(patched_by_hand(own.hf, [own.layers[0].module], 8), abs=1e-4)


SAME = [("resid_post", 0), ("resid_pre", 1), ("resid_post", 1), ("resid_pre", 2)]
"""What is the same where layer 1 does not run."""


def test_what_rwkv_returns_is_not_taken_for_attention():
    with pytest.raises(UserError, match=r"rwkv \(rwkv, eager\).*--methods input_gradient"):
        interp.attribute(model("rwkv"), prompts(), methods=["attention"])


def test_attention_that_is_computed_by_the_model_alone_is_read():
    own, given = model("falcon"), ids("long/clean")
    assert (own.attn_implementation, own.computes_attention_alone) == ("sdpa", True)
    assert not model("mllama").computes_attention_alone
    found = interp.attribute(own, prompts(), methods=["attention"], keep_tokens=True)
    assert own.attn_implementation == "sdpa"
    tokens = found.table("token_scores")
    scores = tokens[tokens["prompt_id"] == "long/clean"]["score"].tolist()
    eager = build("falcon").hf
    eager.config._attn_implementation = "eager"  # its switch only warns
    with torch.no_grad():
        maps = eager(input_ids=torch.tensor([given]), output_attentions=True).attentions
    expected = torch.stack([weights[0, :, -1].mean(0) for weights in maps]).mean(0)
    assert scores == pytest.approx(expected.tolist(), abs=1e-6)


def test_positions_that_begin_behind_the_padding_index_are_left_to_the_model():
    own = model("kosmos-2.5")
    assert not own.takes_positions
    assert not own.allows_padding
    found = interp.evaluate(own, prompts()).option_probabilities
    with torch.no_grad():
        logits = own.hf(input_ids=torch.tensor([ids("short/clean")])).logits[0, -1]
    given = found[found["prompt_id"] == "short/clean"]["probability"].tolist()
    assert given == pytest.approx(logits.softmax(0)[list(options())].tolist(), rel=1e-4)


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["florence2", "pix2struct", "pp_formulanet"])
def test_encoders_of_images_are_refused_at_once(kind):
    with pytest.raises(UserError, match=r"ForConditionalGeneration.*image"):
        model(kind)


def changed(forward):
    """A model of an unlisted family whose last layer computes something else."""
    hf = build("helium").hf
    layer = hf.model.layers[-1]
    layer.forward = lambda hidden_states, **options: forward(layer, hidden_states, options)
    return interp.Model("changed", hf, tokenizer())


def test_a_layer_whose_mlp_comes_first_does_not_add_up():
    def forward(layer, stream, options):
        stream = stream + layer.mlp(layer.post_attention_layernorm(stream))
        normed = layer.input_layernorm(stream)
        return stream + layer.self_attn(hidden_states=normed, **options)[0]

    own = changed(forward)
    before, last = own.layers[-2:]
    assert [part.module for part in last.mixer] == [last.module.self_attn]
    assert before.adds_up and not last.adds_up
    with pytest.raises(UserError, match="edges"):
        interp.edges(own, prompts())


def test_a_layer_that_adds_nothing_lacks_what_would_be_added():
    last = changed(lambda layer, stream, options: stream).layers[-1]
    assert {"attn_out", "mlp_out", "resid_mid"} <= set(last.lacks)
    assert last.mixer == last.mlp == ()
