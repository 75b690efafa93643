"""Activations against plain forward hooks and hidden states of transformers, prompt by prompt."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import Activations
from interp.measuring.core import bind, collect
from interp.models.families.modules import ARCHITECTURES, LLAMA_LIKE
from interp.models.sites import skipped
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.tokens import token_roles, token_segments, tokenize
from interp_probes.specs import Residuals
from tests.patching.test_encoders import KINDS as ENCODERS
from tests.patching.test_encoders import module_of
from tests.support.answers import accepts
from tests.support.broken import broken_by
from tests.support.hooks import hooked
from tests.support.other_kinds import classifier, text_to_text
from tests.support.other_models import other_model
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, tiny_model

TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}

HIDDEN = 32


BY_HAND = {
    **{("llama", site): (f"self_attn.{site}_proj", "out") for site in ("q", "k", "v")},
    ("llama", "attn_out"): ("self_attn", "out"),
    ("llama", "mlp_out"): ("mlp", "out"),
    ("llama", "resid_mid"): ("post_attention_layernorm", "in"),
    ("llama", "z"): ("self_attn.o_proj", "in"),
    ("gemma2", "attn_out"): ("post_attention_layernorm", "out"),
    ("gemma2", "mlp_out"): ("post_feedforward_layernorm", "out"),
    ("gemma2", "resid_mid"): ("pre_feedforward_layernorm", "in"),
    ("gemma2", "z"): ("self_attn.o_proj", "in"),
    ("gemma2", "v"): ("self_attn.v_proj", "out"),
    ("gpt2", "attn_out"): ("attn", "out"),
    ("gpt2", "mlp_out"): ("mlp", "out"),
    ("gpt2", "resid_mid"): ("ln_2", "in"),
    ("gpt2", "z"): ("attn.c_proj", "in"),
    ("gpt2", "v"): ("attn.c_attn", "out"),
}
"""Of some architectures: the module of a layer that holds a site, and which end of it."""


def read(model, prompts, *, batch_tokens=600, **options):
    """The tables; several prompts a batch, so padding."""
    return collect(bind(Activations(**options), model, batch_tokens=batch_tokens), prompts)


def vectors_of(tables, prompt, **where):
    """The vectors of a prompt, in order: (vectors, width)."""
    rows = tables["activation_vectors"]
    rows = rows[rows["prompt_id"] == prompt.id]
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return np.stack(rows["vector"])


def seen(model, module, end, token_ids):
    """What passes an end of a module, (token, width), as one unpadded prompt is read."""
    kept = []
    with torch.no_grad(), hooked(module, end, kept.append):
        model.hf(torch.tensor([token_ids]))
    return kept[0][0].numpy()


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_the_residual_stream_is_the_hidden_states_of_transformers(kind, prompts):
    model = tiny_model(kind)
    sites = ("resid_pre", "resid_post")
    tables = read(model, prompts, sites=sites, roles=("all",), tokens="all")
    norm = model.hf.get_submodule(model.architecture.final_norm)
    for tokenized in tokenize(model, prompts):
        with torch.no_grad():
            output = model.hf(torch.tensor([tokenized.token_ids]), output_hidden_states=True)
        hidden = [states[0].numpy() for states in output.hidden_states]
        for layer in range(2):
            before, after = (
                vectors_of(tables, tokenized.prompt, site=site, layer=layer) for site in sites
            )
            np.testing.assert_allclose(before, hidden[layer], **TOLERANCE)
            if layer == 1:  # the last hidden states of transformers are normed
                with torch.no_grad():
                    after = norm(torch.tensor(after)).numpy()
            np.testing.assert_allclose(after, hidden[layer + 1], **TOLERANCE)


@pytest.mark.parametrize(("kind", "site"), BY_HAND)
def test_every_site_is_what_a_plain_hook_sees(kind, site, prompts):
    model = tiny_model(kind)
    tables = read(model, prompts[:6], sites=(site,), roles=("all",), tokens="all")
    path, end = BY_HAND[kind, site]
    for layer, own in enumerate(layer.module for layer in model.layers):
        for tokenized in tokenize(model, prompts[:6]):
            theirs = seen(model, own.get_submodule(path), end, tokenized.token_ids)
            if (kind, site) == ("gpt2", "v"):
                theirs = theirs[:, 2 * HIDDEN :]
            ours = vectors_of(tables, tokenized.prompt, layer=layer)
            heads = {"z": 4, "q": 4, "k": 2, "v": 4 if kind == "gpt2" else 2}.get(site, 1)
            assert ours.shape == (len(tokenized) * heads, theirs.shape[1] // heads)
            np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, **TOLERANCE)
    numbers = tables["activation_vectors"]["head"]
    assert numbers.isna().all() if heads == 1 else set(numbers) == set(range(heads))


@pytest.mark.parametrize("kind", ENCODERS)
def test_of_a_classifier_the_first_token_is_read_unless_others_are_named(kind):
    yes, no = AnswerOption("Yes", ("YES",)), AnswerOption("No", ("No",))
    prompts = [
        dataclasses.replace(p, answer=Choice.between(yes, no, gold=accepts(p)))
        for p in some_prompts(12)[:6]
    ]
    model = classifier(kind)
    sites = ("resid_post", "attn_out", "mlp_out", "z")
    tables = read(model, prompts, sites=sites)
    assert set(tables["activation_vectors"]["role"]) == {"pooled"}
    assert set(tables["activation_vectors"]["position"]) == {0}
    segment = read(model, prompts, sites=sites, roles=("premise2",), tokens="all")
    for tokenized in tokenize(model, prompts):
        span = slice(*tokenized.segments["premise2"])
        for site in sites:
            module, end = module_of(model.hf, kind, site, 1)
            theirs = seen(model, module, end, tokenized.token_ids)
            ours = vectors_of(tables, tokenized.prompt, site=site, layer=1)
            np.testing.assert_allclose(ours.reshape(HIDDEN), theirs[0], **TOLERANCE)
            ours = vectors_of(segment, tokenized.prompt, site=site, layer=1)
            np.testing.assert_allclose(ours.reshape(-1, HIDDEN), theirs[span], **TOLERANCE)
    with pytest.raises(UserError, match=r"'last'.*pooled"):
        bind(Activations(roles=("last",)), model)
    both = read(model, prompts, sites=sites, roles=("last", "pooled"))
    assert set(both["activation_vectors"]["group"]) == {"pooled"}


def test_a_site_that_an_architecture_computes_otherwise_is_refused(prompts, monkeypatch):
    model = other_model("glm4")
    new = interp.Model("new", model.hf, model.tokenizer)
    # Listed as Llama, whose attention has no norm after it.
    monkeypatch.setitem(ARCHITECTURES, "brand_new", LLAMA_LIKE)
    monkeypatch.setattr(model.hf.config, "model_type", "brand_new")
    with pytest.raises(
        UserError, match=r"layer 0\b.*\(brand_new\).*attn_out.*--backend transformer-lens"
    ):
        bind(Activations(sites=("attn_out",)), new)(prompts[:2])
    assert bind(Activations(sites=("resid_post", "z")), new)(prompts[:2])["activation_vectors"]
    with pytest.raises(UserError, match=r"layer 0\b.*tiny cohere.*site resid_mid"):
        bind(Activations(sites=("resid_mid",)), other_model("cohere"))


def test_the_last_token_of_a_segment_is_what_probes_read(prompts):
    model = tiny_model("llama")
    ours = read(model, prompts, roles=("premise2", "last"))
    theirs = collect(bind(Residuals(positions=("premise2", "last_token")), model), prompts)
    probed = theirs["residuals"].set_index(["prompt_id", "position", "layer"])["vector"]
    names = {"premise2": "premise2", "last": "last_token"}
    for row in ours["activation_vectors"].itertuples():
        there = probed[row.prompt_id, names[row.group], row.layer + 1]
        np.testing.assert_allclose(row.vector, there, **TOLERANCE)
    pd.testing.assert_frame_equal(ours["answers"], interp.evaluate(model, prompts).to_frame())


def test_the_mean_is_that_of_all_tokens_each_of_which_says_where_it_is_from(prompts):
    model = tiny_model("llama")
    names = ("premise1", "premise2_entity_b", "all")
    prompts = [prompt for prompt in prompts if prompt.factors["rule"] == "mt"]
    every, mean = (
        read(model, prompts, roles=names, tokens=tokens, layers=(1,))["activation_vectors"]
        for tokens in ("all", "mean")
    )
    key = ["prompt_id", "group"]
    assert len(mean) == len(prompts) * len(names)
    found = mean.set_index(key)
    for place, rows in every.groupby(key, sort=False):
        assert found.loc[place, "tokens"] == len(rows)
        expected = np.stack(rows["vector"]).mean(0)
        np.testing.assert_allclose(found.loc[place, "vector"], expected, rtol=1e-4, atol=1e-6)
    several = mean[mean["tokens"] > 1]
    assert several[["position", "token", "segment", "role"]].isna().all(axis=None)
    by_id = {tokenized.prompt.id: tokenized for tokenized in tokenize(model, prompts)}
    for row in every.itertuples():
        tokenized = by_id[row.prompt_id]
        assert row.segment == token_segments(tokenized)[row.position]
        assert row.role == token_roles(tokenized)[row.position]
        assert row.group in ("all", row.segment, row.role)
        token = model.tokenizer.decode([tokenized.token_ids[row.position]])
        assert (row.token, row.tokens, row.site, row.layer) == (token, 1, "resid_post", 1)
    assert "last" in set(every["role"])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("tokens", ["last", "mean", "all"])
def test_vectors_do_not_depend_on_the_batch(kind, tokens, prompts):
    model = tiny_model(kind, dtype=torch.float64)
    options = {"sites": ("resid_post", "v"), "roles": ("premise2", "last"), "tokens": tokens}
    alone, together = (
        read(model, prompts, batch_tokens=budget, **options)["activation_vectors"]
        for budget in (1, 10_000)
    )
    columns = [column for column in alone if column != "vector"]
    pd.testing.assert_frame_equal(alone[columns], together[columns])
    # In fp64 the batch moves a vector by less than it is rounded to fp32.
    one, other = (np.concatenate(list(found["vector"])) for found in (alone, together))
    np.testing.assert_allclose(one, other, rtol=2e-7, atol=1e-12)
    assert one.dtype == np.float32


def test_no_hook_is_left(organism, prompts):
    bind(Activations(sites=("resid_pre", "z", "mlp_out")), organism)(prompts[:2])
    with pytest.raises(UserError, match=r"'odd'.*RULEBREAKER_\S+ \(''\)"):
        bind(Activations(), organism)([dataclasses.replace(prompts[0], segments={"odd": (0, 0)})])
    for module in organism.hf.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks


def test_a_site_that_the_pass_does_not_reach_is_refused(prompts):
    model = tiny_model("llama")
    measurement = bind(Activations(sites=("z",), layers=(0, 1)), model)
    layers = [layer.module for layer in model.layers]
    with skipped(layers[1:]), pytest.raises(UserError, match=r"site z\b.*layer 1\b"):
        measurement(prompts[:2])


def test_a_prompt_that_lacks_a_role_or_has_an_error_has_no_vector(prompts):
    """Premise 2 names the city in one rule and the country in the other."""
    role = "premise2_entity_b"
    for tokens in ("last", "mean", "all"):
        tables = read(tiny_model("llama"), prompts, roles=(role,), tokens=tokens)
        found = set(tables["activation_vectors"]["prompt_id"])
        assert found == {prompt.id for prompt in prompts if prompt.factors["rule"] == "mt"}
        assert set(tables["answers"]["error"]) == {""}
    without = [prompt for prompt in prompts if prompt.factors["rule"] == "ds"]
    tables = read(tiny_model("llama"), without, roles=(role,), sites=("k",))
    assert tables["activation_vectors"].empty
    assert len(tables["answers"]) == len(without)
    first, second = prompts[:2]
    model, broken = broken_by(first, second)
    tables = read(model, [first, broken, second])
    assert tables["answers"]["error"].tolist() == ["", "non-finite", ""]
    assert set(tables["activation_vectors"]["prompt_id"]) == {first.id, second.id}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ("pattern",)}, "pattern"),
        ({"sites": ()}, r"site.*resid_pre, resid_mid"),
        ({"roles": ()}, r"role.*roles"),
        ({"roles": ("premis2",)}, r"'premis2'.*premise2\b"),
        ({"tokens": "first"}, r"'first'.*last, mean, all\b"),
        ({"layers": (-1,)}, r"layers.*-1\b.*\b0\b"),
        ({"layers": (0, 2)}, r"layer 2\b.*tiny llama.*\b2\b.*\b0\b.*\b1\b"),
    ],
)
def test_what_no_prompt_or_no_model_has_is_refused(options, message, prompts):
    with pytest.raises(UserError, match=message):
        interp.activations(tiny_model("llama"), prompts, **options)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_text_to_text_model_is_refused_with_what_works(kind):
    with pytest.raises(UserError, match=rf"text-to-text model.*'{kind}'.*--methods input_gradient"):
        bind(Activations(), text_to_text(kind))


@pytest.mark.parametrize("kind", ["granite", "minicpm3", "gemma3_text", "cohere"])
def test_what_is_stored_adds_up_to_the_stored_stream(kind, prompts):
    model = other_model(kind)
    added = ["attn_out", "mlp_out"]
    sites = ["resid_pre", "resid_post", *added] + ["resid_mid"] * (kind != "cohere")
    tables = read(model, prompts[:2], sites=sites, roles=("all",), tokens="all")
    for layer in (0, 1):
        vectors = {
            site: vectors_of(tables, prompts[0], site=site, layer=layer).astype(float)
            for site in sites
        }
        before, attention, mlp = (vectors[site] for site in ("resid_pre", *added))
        close = {"rtol": 0, "atol": 1e-6 * np.abs(vectors["resid_post"]).max()}
        np.testing.assert_allclose(before + attention + mlp, vectors["resid_post"], **close)
        if kind != "cohere":  # attention and MLP in parallel
            np.testing.assert_allclose(before + attention, vectors["resid_mid"], **close)
