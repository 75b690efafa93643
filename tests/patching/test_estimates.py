"""Estimates against exact effects where the two must agree."""

import dataclasses

import numpy as np
import pytest
import torch

import interp
from interp.errors import UserError
from interp.models.sites import layer_count
from interp.patching.estimates import Estimator
from interp.patching.exact import Grid
from interp.reading.budget import CPU_BATCH_TOKENS, TokenBudget
from interp.scoring.answer_tokens import ContrastTokens
from tests.support.pairs import EQUAL, UNEQUAL, cells, sites_of, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def both(model, pair, chosen, estimate="gradient"):
    exact = Grid(model, budget=TokenBudget(CPU_BATCH_TOKENS)).patch(pair, chosen)
    estimated = Estimator(model, estimate=estimate).patch(pair, chosen)
    assert estimated.base == pytest.approx(exact.base, abs=1e-5)
    assert estimated.source == pytest.approx(exact.source, abs=1e-5)
    return (np.array(metrics.cells) - metrics.base for metrics in (exact, estimated))


@pytest.fixture
def linear():
    """A model whose answer is linear in the residual stream: norms and attention are fixed.

    Norms hand on what they read, attention is uniform over the tokens so far (queries are zero),
    MLPs add nothing.
    """
    model = make_tiny("llama", byte_level(), dtype=torch.float64)
    with torch.no_grad():
        for layer in model.hf.model.layers:
            layer.self_attn.q_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
    for name, module in model.hf.named_modules():
        if name.endswith("norm"):
            module.forward = lambda hidden_states: hidden_states
    return model


@pytest.mark.parametrize("estimate", ["gradient", "integrated"])
@pytest.mark.parametrize("number", [EQUAL, UNEQUAL])
@pytest.mark.parametrize("policy", ["last", "mean"])
def test_on_a_linear_model_the_estimate_is_exact(linear, estimate, number, policy):
    pair = some_pair(linear, number, policy=policy)
    pair = dataclasses.replace(pair, answers=ContrastTokens((40,), (41,)))
    sites = ["resid_pre", "resid_mid", "resid_post", "attn_out", "z", "v"]
    chosen = cells(linear, pair, sites)
    exact, estimated = both(linear, pair, chosen, estimate)
    assert np.nanmax(np.abs(exact)) > 1e-4
    np.testing.assert_allclose(estimated, exact, atol=1e-9)


@pytest.mark.parametrize("kind", CONFIGS)
def test_for_small_differences_the_estimate_is_exact(kind):
    """The derivative: where the source is almost the base, the error vanishes faster than the
    effect."""
    model = make_tiny(kind, byte_level(), dtype=torch.float64)
    pair = some_pair(model)
    embedding = model.hf.get_input_embeddings().weight
    differing = {
        token: other
        for token, other in zip(pair.base.token_ids, pair.source.token_ids, strict=True)
        if token != other
    }
    step = 2e-3  # transformers' norms compute in fp32 whatever the dtype: less would be noise
    with torch.no_grad():
        for token, other in differing.items():
            embedding[other] = torch.lerp(embedding[token], embedding[other], step)
    chosen = cells(model, pair, sites_of(model))
    exact, estimated = both(model, pair, chosen)
    scale = np.nanmax(np.abs(exact))
    assert scale > 0
    np.testing.assert_allclose(estimated, exact, atol=0.02 * scale)
    by_site = {cell.site for cell, effect in zip(chosen, exact, strict=True) if abs(effect) > 0}
    assert by_site == set(sites_of(model))


def test_the_integrated_estimate_is_closer_on_the_whole():
    errors = {"gradient": [], "integrated": []}
    for kind in ("llama", "gemma2", "phi3"):
        model = tiny_model(kind)
        pair = some_pair(model)
        chosen = cells(model, pair, ["resid_pre"], "position")
        for estimate, kept in errors.items():
            exact, estimated = both(model, pair, chosen, estimate)
            kept.append(np.abs(exact - estimated).mean())
    assert np.mean(errors["integrated"]) < np.mean(errors["gradient"])


def test_verified_cells_are_the_largest_estimates_run_exactly():
    model = tiny_model("llama")
    result = interp.patch(
        model, some_prompts(2), sites=["resid_pre", "mlp_out"], estimate="gradient", verify=5
    ).patches
    exact = interp.patch(model, some_prompts(2), sites=["resid_pre", "mlp_out"]).patches
    key = ["pair_id", "site", "layer", "role"]
    for pair_id, rows in result.groupby("pair_id"):
        estimates, verified = (rows[rows["method"] == m] for m in ("gradient", "exact"))
        assert len(verified) == 5
        largest = estimates.loc[estimates["effect"].abs().nlargest(5).index]
        assert set(map(tuple, largest[key].values)) == set(map(tuple, verified[key].values))
        joined = verified.merge(exact, on=key)
        np.testing.assert_allclose(joined["effect_x"], joined["effect_y"], atol=3e-6)
        assert pair_id in set(exact["pair_id"])


@pytest.mark.slow
def test_a_guarantee_checks_whole_pairs_whatever_the_others_are():
    model, options = tiny_model("llama"), {"estimate": "gradient", "control": True}
    prompts = interp.load_prompts(limit=8)
    result = interp.patch(model, prompts, guarantee=0.8, checked=0.5, **options)
    checked = result.pairs.set_index("pair_id")["checked"]
    assert 0 < checked.sum() < 8
    exact = interp.patch(model, prompts, control=True).patches.dropna(subset=["effect"])
    key = ["pair_id", "source", "layer", "role"]
    run = result.patches[result.patches["method"] == "exact"].merge(exact, on=key, how="outer")
    assert set(run.loc[run["effect_x"].notna(), "pair_id"]) == set(checked[checked].index)
    assert run.loc[run["pair_id"].map(checked), "effect_x"].notna().all()
    np.testing.assert_allclose(*run[["effect_x", "effect_y"]].dropna().T.to_numpy(), atol=3e-6)
    few = interp.patch(
        model, interp.load_prompts(limit=5), guarantee=0.8, checked=0.5, **options
    ).pairs
    assert few.set_index("pair_id")["checked"].to_dict().items() <= checked.to_dict().items()
    assert interp.patch(model, some_prompts(1), estimate="gradient").pairs["checked"].isna().all()


@pytest.mark.parametrize(
    "options", [{}, {"estimate": "gradient", "verify": 2}], ids=["exact", "verified"]
)
def test_a_guarantee_is_of_estimates_alone(options):
    with pytest.raises(UserError, match=r"guarantee bounds .*estimates"):
        interp.patch(tiny_model("llama"), some_prompts(2), guarantee=0.9, **options)


def test_all_sites_come_from_one_backward_pass(monkeypatch):
    calls = []
    original = torch.autograd.grad

    def counted(*arguments, **options):
        calls.append(1)
        return original(*arguments, **options)

    monkeypatch.setattr(torch.autograd, "grad", counted)
    model = tiny_model("llama")
    pair = some_pair(model)
    chosen = cells(model, pair, sites_of(model))
    Estimator(model, estimate="gradient").patch(pair, chosen)
    assert len(calls) == 1
    Estimator(model, estimate="integrated").patch(pair, chosen)
    assert len(calls) == 1 + 5
    Estimator(model, estimate="integrated", steps=3).patch(pair, chosen)
    assert len(calls) == 1 + 5 + 3


def test_an_estimate_with_options_is_a_method_of_the_table():
    model, prompts = tiny_model("llama"), some_prompts(2)
    result = interp.patch(model, prompts, estimate="integrated:steps=1", verify=1)
    assert set(result.patches["method"]) == {"integrated:steps=1", "exact"}
    five, nine = (
        interp.patch(model, prompts, estimate=f"integrated:steps={steps}").patches
        for steps in (5, 9)
    )
    plain = interp.patch(model, prompts, estimate="integrated").patches
    np.testing.assert_array_equal(five["effect"], plain["effect"])
    assert set(five["method"]) == {"integrated"}
    assert not np.allclose(nine["effect"], plain["effect"], equal_nan=True)
    assert len(result.derived())


def test_models_are_left_as_they_were():
    model = make_tiny("llama", byte_level())
    pair = some_pair(model)
    Estimator(model, estimate="gradient").patch(pair, cells(model, pair, sites_of(model)))
    assert all(parameter.requires_grad for parameter in model.hf.parameters())
    assert all(parameter.grad is None for parameter in model.hf.parameters())
    assert model.attn_implementation == "sdpa"
    assert layer_count(model) == 2
