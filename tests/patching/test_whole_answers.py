"""Patched whole answers against brute force: plain hooks in passes over prompts with answers."""

import dataclasses

import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import Patch
from interp.patching.checks import check_passes
from interp.patching.estimates import Estimator
from interp.patching.exact import Grid
from interp.patching.pairs import in_pairs
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.budget import TokenBudget
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.scoring.test_whole_answers import CITIES, plain_tokens
from tests.support.hooks import hooked
from tests.support.pairs import EQUAL, cells, some_pair
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

MODULES = {"resid_pre": "", "v": "self_attn.v_proj", "mlp_out": "mlp"}


def whole_pair(model, options=CITIES, lengths=EQUAL):
    pair = some_pair(model, lengths)
    names = tuple(option.name for option in options)
    prompts = [
        dataclasses.replace(own, prompt=dataclasses.replace(own.prompt, answer=answer))
        for own, name in ((pair.base, names[1]), (pair.source, names[0]))
        for answer in [Choice(options, name, names[:2])]
    ]
    answers = AnswerTokenizer(model, "whole")(prompts[0]).contrast(*names[:2])
    return dataclasses.replace(pair, base=prompts[0], source=prompts[1], answers=answers)


def whole_metric(model, pair):
    """The difference of two options' log-probabilities: one plain pass for each form."""
    totals = []
    for option in pair.base.prompt.answer.options[:2]:
        found = []
        for form in option.forms:
            before, after = plain_tokens(model, pair.base.prompt, form)
            logits = model.hf(torch.tensor([before + after]), use_cache=False).logits[0]
            log_p = logits.double().log_softmax(-1)[len(before) - 1 : -1]
            found.append(sum(log_p[place, token] for place, token in enumerate(after)))
        totals.append(torch.stack(found).logsumexp(0))
    return totals[0] - totals[1]


@torch.no_grad()
def brute_force(model, pair, cell):
    """The metric with the source's activations written by a plain hook; no cache, no sharing."""
    path = f"model.layers.{cell.layer}.{MODULES[cell.site]}".rstrip(".")
    module = model.hf.get_submodule(path)
    width = 8 if cell.head is not None else 0
    own = slice(cell.head * width, (cell.head + 1) * width) if width else slice(None)
    positions = list(cell.group.positions)
    kept, end = [], "in" if cell.site == "resid_pre" else "out"

    def write(tensor):
        patched = tensor.clone()
        patched[:, positions, own] = kept[0][:, positions, own]
        return patched

    with hooked(module, end, lambda tensor: kept.append(tensor.clone())):
        model.hf(torch.tensor([pair.source.token_ids]), use_cache=False)
    with hooked(module, end, write):
        return float(whole_metric(model, pair))


@pytest.mark.quick(2)
@pytest.mark.parametrize("site", MODULES)
@pytest.mark.parametrize("batch_tokens", [1, 2048])
def test_patched_whole_answers_equal_brute_force(site, batch_tokens):
    model = tiny_model("llama")
    pair = whole_pair(model)
    chosen = cells(model, pair, [site])
    found = Grid(model, budget=TokenBudget(batch_tokens)).patch(pair, chosen)
    for cell, metric in zip(chosen, found.cells, strict=True):
        assert metric == pytest.approx(brute_force(model, pair, cell), abs=1e-5)
    assert len(set(found.cells)) > 3


def test_estimates_of_whole_answers_are_derivatives_of_brute_force():
    """The estimate is the derivative of the metric, along the change from base to source."""
    model = tiny_model("llama", dtype=torch.float64)
    pair = whole_pair(model)
    chosen = cells(model, pair, ["resid_pre"])
    estimated = Estimator(model, estimate="gradient").patch(pair, chosen)
    for cell, metric in zip(chosen, estimated.cells, strict=True):
        share = torch.zeros((), dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(moved_metric(model, pair, cell, share), share)
        assert metric - estimated.base == pytest.approx(float(slope), rel=1e-4, abs=1e-6)


def moved_metric(model, pair, cell, share):
    """The metric after a share of the way from base to source at a cell of the residual stream."""
    module = model.hf.model.layers[cell.layer]
    kept = []
    with torch.no_grad(), hooked(module, "in", lambda tensor: kept.append(tensor.clone())):
        for prompt in (pair.base, pair.source):
            model.hf(torch.tensor([prompt.token_ids]), use_cache=False)
    change = (kept[1] - kept[0])[:, list(cell.group.positions)]

    def write(tensor):
        moved = tensor.clone()
        moved[:, list(cell.group.positions)] += share * change
        return moved

    with hooked(module, "in", write):
        return whole_metric(model, pair)


@pytest.mark.parametrize("kind", ["gemma2", "gpt2", "gpt_neox", "mistral"])
def test_passes_in_parts_agree_with_whole_passes(kind):
    model = tiny_model(kind)
    with model.measuring():
        check_passes(model, whole_pair(model))


def test_a_file_of_pairs_that_begin_alike_is_patched():
    prompts = in_pairs(
        [
            dataclasses.replace(prompt, answer=Choice(CITIES, name, ("New York", "New Jersey")))
            for prompt in some_prompts(2)
            for name in [CITIES[prompt.side != some_prompts(2)[0].side].name]
        ]
    )
    model = tiny_model("llama")
    by_itself = interp.patch(model, prompts)
    asked = interp.patch(model, prompts, answers="whole")
    assert by_itself.patches.equals(asked.patches)
    assert by_itself.pairs.whole.all()


def test_whole_and_first_token_reading_agree_on_single_tokens():
    model = tiny_model("llama")
    prompts = some_prompts(2)
    options = tuple(AnswerOption(name, (name,)) for name in ("Yes", "No"))
    prompts = [
        dataclasses.replace(p, answer=Choice(options, p.answer.gold, ("Yes", "No")))
        for p in prompts
        if p.answer.gold in ("Yes", "No")
    ]
    first, whole = (interp.patch(model, prompts, answers=name) for name in ("first", "whole"))
    assert first.patches.equals(whole.patches)


def test_other_backends_and_models_with_states_refuse_whole_answers():
    with pytest.raises(UserError, match="backend"):
        Patch(answers="whole", backend="transformer-lens")
