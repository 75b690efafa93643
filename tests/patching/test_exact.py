"""The exact grid against plain hooks, and what must hold of it whatever the model."""

import dataclasses
from functools import wraps

import pytest
import torch

import interp
from interp.console import Progress
from interp.errors import ModelError
from interp.measurements.specs import Edges, Patch
from interp.models.sites import layer_count
from interp.patching import exact
from interp.patching.cells import PatchingPair, patched_positions
from interp.patching.exact import Grid
from interp.patching.pairs import contrast_of
from interp.prompts.own.pairs import EXAMPLE
from interp.reading.budget import CPU_BATCH_TOKENS, TokenBudget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer, ContrastTokens
from tests.support.broken import broken_by
from tests.support.hooks import hooked
from tests.support.pairs import EQUAL, UNEQUAL, by_hook, cells, plain_metric, sites_of, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import PLAIN_TEMPLATE, byte_level

TOLERANCE = 3e-6
"""Largest difference of a metric, in logits, that the order of fp32 sums explains here."""


def patched(model, pair, chosen, batch_tokens=CPU_BATCH_TOKENS):
    return Grid(model, budget=TokenBudget(batch_tokens)).patch(pair, chosen)


def assert_no_hooks(model):
    # transformers leaves hooks of its own where another test asked a model for hidden states.
    for module in model.hf.modules():
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
        assert not [hook for hook in hooks if hook.__module__.startswith("interp")]
        assert "forward" not in module.__dict__


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "spec",
    [
        Patch(sites=("resid_pre", "z"), control=True),
        Patch(sites=("mlp_out",), estimate="integrated", verify=6),
        Edges(methods=("exact",), directions=("noising", "denoising")),
        Edges(methods=("exact",), sample=2),
    ],
)
def test_progress_tells_the_share_of_a_pair_that_is_done(spec, monkeypatch):
    shares = []
    original = Progress._show

    def show(self):
        original(self)
        shares.append(self._share)

    monkeypatch.setattr(Progress, "_show", show)
    interp.run(spec, models=tiny_model("llama"), prompts=some_prompts(1), batch_tokens=64)
    known = [share for share in shares if share]
    assert len(set(known)) > 3
    assert known == sorted(known)
    assert 0 < known[0] < 0.5
    assert known[-1] > 0.8


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("number", [EQUAL, UNEQUAL])
def test_both_prompts_have_the_metric_that_the_model_gives_them(kind, number):
    model = tiny_model(kind)
    pair = some_pair(model, number)
    metrics = patched(model, pair, [])
    for metric, prompt in ((metrics.base, pair.base), (metrics.source, pair.source)):
        plain = plain_metric(model, prompt.token_ids, pair.answers)
        assert metric == pytest.approx(plain, abs=TOLERANCE)


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("number", [EQUAL, UNEQUAL])
def test_the_residual_grid_equals_one_plain_hook_a_cell(kind, number):
    model = tiny_model(kind)
    pair = some_pair(model, number)
    chosen = [
        cell
        for cell in cells(model, pair, ["resid_pre"], "position")[::3]
        if pair.alignment.sources[cell.group.positions[0]]
    ]
    metrics = patched(model, pair, chosen)
    for cell, metric in zip(chosen, metrics.cells, strict=True):
        plain = by_hook(model, pair, "resid_pre", cell.layer, cell.group.positions[0])
        assert metric == pytest.approx(plain, abs=TOLERANCE), cell
    assert max(abs(metric - metrics.base) for metric in metrics.cells) > 30 * TOLERANCE


@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, None])
def test_patches_behind_demonstrations_equal_plain_hooks(template):
    """Both sides read the same demonstrations, whose activations a patch cannot change."""
    model = make_tiny("llama", byte_level(template))
    shown = interp.with_messages(interp.read_pairs(EXAMPLE), shots=2, instruction="Read.")
    clean, corrupt = tokenize(model, shown[:2])
    contrast = AnswerTokenizer(model)(corrupt).contrast(*contrast_of(clean.prompt, corrupt.prompt))
    pair = PatchingPair.aligned(corrupt, clean, contrast, policy="last")
    roles = {cell.group.role for cell in cells(model, pair, ["resid_pre"])}
    assert {"shot1", "shot2", "instruction", "last"} <= roles
    chosen = cells(model, pair, ["resid_pre"], "position", layers=[0, 1])[::5]
    chosen = [cell for cell in chosen if pair.alignment.sources[cell.group.positions[0]]]
    metrics = patched(model, pair, chosen)
    both = zip(corrupt.token_ids, clean.token_ids, strict=False)
    first = next(place for place, (one, two) in enumerate(both) if one != two)
    assert first > corrupt.segments["shot2"][1]
    for cell, metric in zip(chosen, metrics.cells, strict=True):
        plain = by_hook(model, pair, "resid_pre", cell.layer, cell.group.positions[0])
        assert metric == pytest.approx(plain, abs=TOLERANCE), cell
        if cell.group.positions[0] < first:
            assert metric == pytest.approx(metrics.base, abs=TOLERANCE)
    assert max(abs(metric - metrics.base) for metric in metrics.cells) > 30 * TOLERANCE


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_final_norms_input_at_the_last_token_gives_back_the_sources_metric(kind):
    model = tiny_model(kind)
    pair = some_pair(model)
    last = layer_count(model) - 1
    (cell,) = [
        cell
        for cell in cells(model, pair, ["resid_post"], layers=[last])
        if cell.group.role == "last"
    ]
    metrics = patched(model, pair, [cell])
    assert metrics.cells[0] == metrics.source
    assert metrics.base != metrics.source


def with_itself(pair):
    sources = tuple((i,) for i in range(len(pair.base)))
    alignment = dataclasses.replace(pair.alignment, sources=sources)
    return dataclasses.replace(pair, source=pair.base, alignment=alignment)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_writing_equal_activations_changes_nothing(kind, monkeypatch):
    """The same with the cells really run, which the equality of activations would skip."""
    model = tiny_model(kind)
    itself = with_itself(some_pair(model))
    ran = []
    original = exact._rows_to_run

    def all_rows(pair, key, chosen, differs, layers):
        rows = list(original(pair, key, chosen, torch.ones_like(differs), layers))
        ran.extend(rows)
        return rows

    monkeypatch.setattr(exact, "_rows_to_run", all_rows)
    metrics = patched(model, itself, cells(model, itself, sites_of(model)))
    assert len(ran) > 100
    assert all(metric == pytest.approx(metrics.base, abs=TOLERANCE) for metric in metrics.cells)


@pytest.mark.parametrize("kind", CONFIGS)
def test_tokens_before_the_first_difference_have_no_effect(kind):
    model = tiny_model(kind)
    pair = some_pair(model)
    chosen = cells(model, pair, ["resid_pre", "mlp_out"], "position")
    metrics = patched(model, pair, chosen)
    before = [
        metric == metrics.base
        for cell, metric in zip(chosen, metrics.cells, strict=True)
        if cell.group.positions[0] < pair.shared
    ]
    assert len(before) == 2 * layer_count(model) * pair.shared
    assert all(before)


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
@pytest.mark.parametrize("batch_tokens", [1, 150, 100_000])
def test_the_number_of_cells_a_forward_pass_does_not_matter(kind, batch_tokens):
    model = tiny_model(kind)
    pair = some_pair(model, UNEQUAL)
    chosen = cells(model, pair, ["resid_pre", "z", "k"])
    reference = patched(model, pair, chosen).cells
    for one, other in zip(patched(model, pair, chosen, batch_tokens).cells, reference, strict=True):
        assert one == pytest.approx(other, abs=TOLERANCE, nan_ok=True)


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt_neox"])
def test_cells_that_nothing_reads_have_no_effect_when_they_are_run(kind, monkeypatch):
    """The rule that skips them, held against forward passes that do not know it."""
    model = tiny_model(kind)
    pair = some_pair(model)
    last = layer_count(model) - 1
    sites = [site for site in sites_of(model) if site not in ("resid_pre", "k", "v")]
    chosen = [
        cell
        for cell in cells(model, pair, sites, layers=[last])
        if not patched_positions(pair, cell, layers=last + 1)
    ]
    assert len(chosen) >= 20
    monkeypatch.setattr(
        exact,
        "patched_positions",
        lambda pair, cell, layers: patched_positions(pair, cell, layers=99),
    )
    metrics = patched(model, pair, chosen)
    assert all(metric == pytest.approx(metrics.base, abs=TOLERANCE) for metric in metrics.cells)


@pytest.mark.parametrize("kind", CONFIGS)
def test_float64_agrees_with_float32(kind):
    results = []
    for dtype in (torch.float32, torch.float64):
        model = tiny_model(kind, dtype=dtype)
        pair = some_pair(model)
        results.append(patched(model, pair, cells(model, pair, ["resid_pre", "v"])).cells)
    assert results[0] == pytest.approx(results[1], abs=2e-5)


def test_the_metric_of_a_bfloat16_model_is_not_quantised():
    model = make_tiny("llama", byte_level(), dtype=torch.bfloat16)
    pair = some_pair(model)
    metrics = patched(model, pair, cells(model, pair, ["resid_pre"], "position"))
    effects = {metric for metric in metrics.cells if metric != metrics.base}
    in_bfloat16 = {float(torch.tensor(metric, dtype=torch.bfloat16)) for metric in effects}
    assert len(effects) > 2 * len(in_bfloat16)


@pytest.mark.slow
def test_memory_that_ends_halves_the_batch_and_goes_on(monkeypatch):
    model = tiny_model("llama")
    pair = some_pair(model)
    chosen = cells(model, pair, ["resid_pre"], "position")
    reference = patched(model, pair, chosen, batch_tokens=100_000).cells
    original, sizes = Grid._run, []

    def small(self, passes, edits, *, rows, start):
        sizes.append(rows)
        if rows > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, passes, edits, rows=rows, start=start)

    monkeypatch.setattr(Grid, "_run", small)
    assert patched(model, pair, chosen, batch_tokens=100_000).cells == pytest.approx(
        reference, abs=TOLERANCE
    )
    assert max(sizes) > 5
    assert sizes.count(max(sizes)) == 1  # what did not fit once is not tried again
    assert_no_hooks(model)


def test_no_hook_is_left_after_an_exception(monkeypatch):
    model = make_tiny("llama", byte_level())
    pair = some_pair(model)
    chosen = cells(model, pair, sites_of(model))

    def fail(*arguments, **options):
        raise RuntimeError("stop")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="stop"):
        patch.setattr("interp.patching.exact.forward", fail)
        patched(model, pair, chosen)
    assert_no_hooks(model)
    with monkeypatch.context() as patch, pytest.raises(ModelError, match="stop"):
        patch.setattr(type(model.hf.model.layers[1].mlp), "forward", fail)
        patched(model, pair, chosen)
    assert_no_hooks(model)
    assert model.attn_implementation == "sdpa"
    assert all(parameter.requires_grad for parameter in model.hf.parameters())


def test_a_forward_that_was_replaced_before_is_kept():
    model = make_tiny("llama", byte_level())
    pair = some_pair(model)
    calls = []
    for layer in model.hf.model.layers:
        original = layer.forward

        def counted(*arguments, original=original, **options):
            calls.append(1)
            return original(*arguments, **options)

        layer.forward = counted
    kept = [layer.forward for layer in model.hf.model.layers]
    patched(model, pair, cells(model, pair, ["resid_pre"]))
    assert [layer.forward for layer in model.hf.model.layers] == kept
    assert calls


def with_logits(monkeypatch, change):
    """A model that does something with its logits at the end."""
    model = make_tiny("llama", byte_level())
    original = type(model.hf).forward

    @wraps(original)
    def changed(self, *arguments, **options):
        output = original(self, *arguments, **options)
        output.logits = change(output.logits)
        return output

    monkeypatch.setattr(type(model.hf), "forward", changed)
    return model


def test_scaled_logits_are_the_models_own(monkeypatch):
    model = with_logits(monkeypatch, lambda logits: logits * 0.5)
    pair = some_pair(model)
    metrics = patched(model, pair, [])
    assert metrics.base == pytest.approx(
        plain_metric(model, pair.base.token_ids, pair.answers), abs=TOLERANCE
    )
    assert not interp.patch(model, some_prompts(1)).patches.empty


def test_logits_that_depend_on_each_other_are_refused(monkeypatch):
    model = with_logits(monkeypatch, lambda logits: logits / logits.norm(dim=-1, keepdim=True))
    with pytest.raises(interp.UserError, match=r"llama.*native backend"):
        interp.patch(model, some_prompts(1))


def test_layers_that_hand_on_more_than_the_residual_stream_are_refused():
    model = make_tiny("llama", byte_level())
    first, last = model.hf.model.layers
    kept = {}
    keep = hooked(first.mlp, "out", lambda output: kept.update(first=output))
    add = hooked(last.mlp, "out", lambda output: output + kept.pop("first", 0))
    with keep, add, pytest.raises(interp.UserError, match=r"llama.*native backend"):
        interp.patch(model, some_prompts(1))


def test_a_metric_without_numbers_is_reported():
    prompts = list(some_prompts(2))
    model, broken = broken_by(*prompts)
    prompts[0] = dataclasses.replace(prompts[0], text=broken.text)
    result = interp.patch(model, prompts)
    assert result.pairs["error"].tolist() == ["non-finite", ""]
    assert result.pairs["base_metric"].isna().tolist() == [True, False]
    assert set(result.patches["pair_id"]) == {prompts[-1].pair_id}


def test_answers_of_one_form_are_a_plain_logit_difference():
    model = tiny_model("llama")
    pair = dataclasses.replace(some_pair(model), answers=ContrastTokens((40,), (41,)))
    with torch.no_grad():
        logits = model.hf(torch.tensor([pair.base.token_ids])).logits[0, -1]
    expected = float(logits[40] - logits[41])
    assert patched(model, pair, []).base == pytest.approx(expected, abs=TOLERANCE)
