"""Patching of encoders against plain hooks on whole prompts, written out module by module."""

import dataclasses
import itertools
import math

import pytest
import torch

import interp
from interp.errors import UserError
from interp.patching.cells import PatchingPair, cells_of, has_counterpart
from interp.patching.exact import WholeGrid, native_grid
from interp.patching.pairs import in_pairs
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.budget import TokenBudget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.answers import accepts
from tests.support.hooks import hooked
from tests.support.other_kinds import CLASSES, classifier
from tests.support.prompts import some_prompts

SITES = ("resid_pre", "resid_post", "attn_out", "mlp_out", "z", "q", "k", "v")
HEADS = ("z", "q", "k", "v")
KINDS = ("roberta", "bert", "distilbert", "electra", "modernbert")


STACKED = {"q": 0, "k": 32, "v": 64}
"""The first column of queries, keys and values where one module gives all of them."""


def module_of(hf, kind, site, layer):
    """The module that holds a site, and whether it is what goes in or what comes out."""
    if kind == "distilbert":
        own = hf.distilbert.transformer.layer[layer]
        attention, out, mlp = own.attention, own.attention.out_lin, own.ffn
        projections = {"q": attention.q_lin, "k": attention.k_lin, "v": attention.v_lin}
    elif kind == "modernbert":
        own = hf.model.layers[layer]
        out, mlp = own.attn.Wo, own.mlp
        projections = dict.fromkeys(STACKED, own.attn.Wqkv)
    else:
        own = getattr(hf, kind).encoder.layer[layer]
        attention, out, mlp = own.attention.self, own.attention.output.dense, own.output.dense
        projections = {"q": attention.query, "k": attention.key, "v": attention.value}
    places = {
        "resid_pre": (own, "in"),
        "resid_post": (own, "out"),
        "attn_out": (out, "out"),
        "mlp_out": (mlp, "out"),
        "z": (out, "in"),
    }
    return places[site] if site in places else (projections[site], "out")


@torch.no_grad()
def difference(model, prompt):
    logits = model.hf(torch.tensor([prompt.token_ids])).logits[0]
    return float(logits[CLASSES.index("YES")] - logits[CLASSES.index("No")])


def by_hook(model, kind, pair, cell):
    """The metric under one cell, by a forward pass of each prompt with one hook."""
    width = 8 if cell.site in HEADS else 32
    first = (cell.head or 0) * width + (STACKED.get(cell.site, 0) if kind == "modernbert" else 0)
    columns = slice(first, first + width)
    kept = []

    def put(tensor):
        patched = tensor.clone()
        for position in cell.group.positions:
            sources = list(pair.alignment.sources[position])
            if sources:
                patched[0, position, columns] = kept[0][0, sources, columns].mean(0)
        return patched

    place = module_of(model.hf, kind, cell.site, cell.layer)
    with hooked(*place, lambda tensor: kept.append(tensor.clone())):
        difference(model, pair.source)
    with hooked(*place, put):
        return difference(model, pair.base)


@pytest.fixture(scope="module")
def questions():
    yes, no = AnswerOption("Yes", ("YES",)), AnswerOption("No", ("No",))
    return in_pairs(
        [
            dataclasses.replace(p, answer=Choice.between(yes, no, gold=accepts(p)))
            for p in some_prompts(12)
        ]
    )


def some_pair(model, questions, *, equal, policy="last"):
    tokenized = tokenize(model, questions)
    pairs = zip(tokenized[::2], tokenized[1::2], strict=True)
    clean, corrupt = next(p for p in pairs if (len(p[0]) == len(p[1])) == equal)
    return PatchingPair.aligned(
        corrupt, clean, AnswerTokenizer(model)(corrupt).contrast("Yes", "No"), policy=policy
    )


def cells(model, pair, sites=SITES, granularity="role"):
    options = {"granularity": granularity, "layers": None, "heads": None}
    return list(cells_of(model, pair.base, sites, **options))


@pytest.mark.quick(3)
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_site_is_patched_as_by_plain_hooks(kind, equal, questions):
    model = classifier(kind)
    pair = some_pair(model, questions, equal=equal, policy="mean")
    chosen = cells(model, pair, granularity="segment")
    result = native_grid(model, budget=TokenBudget(2048)).patch(pair, chosen)
    plain = [difference(model, prompt) for prompt in (pair.base, pair.source)]
    assert [result.base, result.source] == pytest.approx(plain, abs=1e-5)
    expected = [by_hook(model, kind, pair, cell) for cell in chosen]
    assert list(result.cells) == pytest.approx(expected, abs=1e-5)
    moved = {cell.site for cell, m in zip(chosen, result.cells, strict=True) if m != result.base}
    assert moved == set(SITES)


@pytest.mark.parametrize("kind", KINDS)
def test_sets_of_cells_are_patched_at_once(kind, questions):
    model = classifier(kind)
    pair = some_pair(model, questions, equal=True)
    every = [cell for cell in cells(model, pair) if has_counterpart(pair, cell)]
    grid = native_grid(model, budget=TokenBudget(2048))
    exact = grid.patch(pair, every)
    alone = grid.patch_sets(pair, [[cell] for cell in every])
    assert alone == pytest.approx(exact.cells, abs=1e-5)
    first = [cell for cell in every if cell.site == "resid_pre" and cell.layer == 0]
    assert grid.patch_sets(pair, [first, every]) == pytest.approx([exact.source] * 2, abs=1e-5)


def test_single_tokens_and_small_budgets(questions):
    model = classifier("roberta")
    pair = some_pair(model, questions, equal=False)
    chosen = cells(model, pair, ["resid_pre", "attn_out"], "position")
    one, other = (
        native_grid(model, budget=TokenBudget(tokens)).patch(pair, chosen).cells
        for tokens in (1, 4096)
    )
    defined = [index for index, metric in enumerate(one) if math.isfinite(metric)]
    assert len(defined) > len(chosen) / 2
    for index in defined:
        assert one[index] == pytest.approx(other[index], abs=1e-5)
    for index in defined[:: len(defined) // 10]:
        assert one[index] == pytest.approx(by_hook(model, "roberta", pair, chosen[index]), abs=1e-5)


def test_the_pooled_token_has_a_role_of_its_own(questions):
    model = classifier("roberta")
    result = interp.patch(model, questions[:2], sites=["resid_post"], granularity="position")
    last_layer = result.patches[result.patches["layer"] == 1]
    pooled = last_layer[last_layer["role"] == "pooled"]
    assert pooled["position"].tolist() == [0]
    assert (last_layer[last_layer["role"] != "pooled"]["effect"].dropna() == 0).all()
    (pair,) = result.pairs.to_dict("records")
    gap = pair["source_metric"] - pair["base_metric"]
    assert pooled["effect"].tolist() == pytest.approx([gap], abs=1e-5)


def test_what_an_encoder_is_not_patched_by_is_refused(questions):
    model, pair = classifier("roberta"), questions[:2]
    refusals = [
        ({"sites": ["resid_mid"]}, r"site resid_mid.*norms"),
        ({"sites": ["pattern"]}, r"site pattern.*encoders.*\bz\b"),
        ({"estimate": "gradient"}, r"sequence classifier.*estimate 'gradient'"),
        ({"backend": "nnsight"}, r"sequence classifier.*backend nnsight"),
        ({"layers": [2]}, r"layer 2\b.*\b0\b.*\b1\b"),
        ({"sites": ["z"], "heads": [4]}, r"\bz head 4\b.*\b0\b.*\b3\b"),
    ]
    for options, problem in refusals:
        with pytest.raises(UserError, match=problem):
            interp.patch(model, pair, **options)


def test_no_hook_is_left(questions, monkeypatch):
    model = classifier("roberta")
    pair = some_pair(model, questions, equal=True)

    def stop(*arguments, **options):
        raise RuntimeError("stop")

    monkeypatch.setattr("interp.patching.exact.metrics_of", stop)
    with pytest.raises(RuntimeError, match="stop"):
        WholeGrid(model, budget=TokenBudget(64)).patch(pair, cells(model, pair))
    hooks = itertools.chain.from_iterable(
        (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
        for module in model.hf.modules()
    )
    assert not [hook for hook in hooks if hook.__module__.startswith("interp")]
