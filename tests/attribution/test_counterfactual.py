from dataclasses import replace

import numpy as np
import pytest
import torch

from interp.attribution import counterfactual
from interp.attribution.attributor import Attributor
from interp.attribution.counterfactual import (
    counterfactual_ids,
    counterfactual_tokens,
    equal_columns,
)
from interp.attribution.methods import captum
from interp.errors import UserError
from interp.prompts.mixing import mixed, with_donors
from interp.reading.readers import reader_of
from interp.reading.shared_batches import shared_tokens
from interp.reading.tokens import pad, tokenize
from interp.scoring.shared_prefix import read_start
from tests.support.other_kinds import classifier
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, tiny_model


def prompts_and_donors(model, pairs=6):
    prompts = with_donors(some_prompts(pairs), count=8)
    for tokenized in tokenize(model, list(prompts)):
        instances = [d for d in tokenized.prompt.donors if d.kind == "instance"]
        yield tokenized, tokenize(model, [mixed(tokenized.prompt, donor) for donor in instances])


def lengths(prompt):
    return [end - start for name, (start, end) in prompt.segments.items() if name != "question"]


def test_segments_take_the_tokens_of_the_donor_that_is_nearest_in_length():
    model, equal = tiny_model("llama"), 0
    for prompt, donors in prompts_and_donors(model):
        found = counterfactual_tokens(model, prompt)
        assert len(found) == len(prompt)
        distances = [
            sum(abs(a - b) for a, b in zip(lengths(prompt), lengths(d), strict=True))
            for d in donors
        ]
        nearest = donors[distances.index(min(distances))]
        if min(distances) == 0:
            equal += 1
            assert tuple(found) == nearest.token_ids
        for name in ("premise1", "premise2", "conclusion"):
            own, other = (slice(*p.segments[name]) for p in (prompt, nearest))
            exchanged, given = found[own], list(nearest.token_ids[other])
            assert set(exchanged) <= set(given)
            places = [given.index(token) for token in exchanged]
            if len(set(given)) == len(given):
                assert places == sorted(places)
            found[own] = prompt.token_ids[own]
        assert tuple(found) == prompt.token_ids
    assert equal


def test_batches_have_the_tokens_of_each_prompt():
    model = tiny_model("llama")
    tokenized = [prompt for prompt, _ in prompts_and_donors(model, pairs=2)]
    batch = pad(model, tokenized)
    found = counterfactual_ids(model, batch)
    for row, prompt in enumerate(tokenized):
        assert found[row, batch.unpadded(row)].tolist() == counterfactual_tokens(model, prompt)


def test_a_prompt_without_a_donor_of_another_instance_is_refused():
    model = tiny_model("llama")
    (prompt, _), *_ = prompts_and_donors(model, pairs=1)
    donors = tuple(donor for donor in prompt.prompt.donors if donor.kind != "instance")
    (bare,) = tokenize(model, [replace(prompt.prompt, donors=donors)])
    with pytest.raises(UserError, match=r"donor.*counterfactual.*input_gradient"):
        counterfactual_tokens(model, bare)


METHODS = ("gim", "integrated_gradients")
"""Methods whose baseline is a donor."""


def scores_of(model, batch, *methods):
    own = Attributor(model, methods=methods or METHODS, target="contrast", batch_tokens=None)
    _, found = own(batch)
    return [np.concatenate([own.scores for own in scores.values()]) for scores in found]


class Counter:
    """Counts the tokens that a model reads, and those among them with a gradient."""

    def __init__(self, model):
        self.read = self.differentiated = 0
        first = model.layers[0].module
        self._hook = first.register_forward_pre_hook(self._see, with_kwargs=True)

    def _see(self, module, args, given):
        read = (args[0] if args else given["hidden_states"])[..., 0]
        self.read += read.numel()
        self.differentiated += read.numel() * read.requires_grad

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._hook.remove()


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_reading_the_start_once_changes_no_score(kind, monkeypatch):
    model = tiny_model(kind, dtype=torch.float64)
    tokenized = [prompt for prompt, _ in prompts_and_donors(model, pairs=2)]
    assert len({len(prompt) for prompt in tokenized}) > 1
    batch = pad(model, tokenized)
    found = scores_of(model, batch)
    with monkeypatch.context() as patched:
        for module in (counterfactual, captum):
            patched.setattr(module, "equal_columns", lambda *unused: 0)
        whole = scores_of(model, batch)
    for own, expected in zip(found, whole, strict=True):
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-6)
        assert np.abs(expected).max() > 1e-2


def test_only_tokens_after_the_start_are_differentiated():
    model = tiny_model("llama")
    tokenized = [prompt for prompt, _ in prompts_and_donors(model, pairs=2)]
    batch = pad(model, tokenized)
    width = batch.token_ids.shape[1]
    starts = [shared_tokens(p.token_ids, tuple(counterfactual_tokens(model, p))) for p in tokenized]
    begun = [batch.unpadded(row).start + start for row, start in enumerate(starts)]
    assert equal_columns(model, batch, counterfactual_ids(model, batch)) == min(begun)
    with Counter(model) as counter:
        scores_of(model, batch, "gim")
    assert counter.differentiated == len(tokenized) * (width - min(begun))
    with Counter(model) as counter:
        scores_of(model, batch, "integrated_gradients")
    rest = sum(map(len, tokenized)) - sum(starts)
    assert counter.differentiated == 20 * rest
    # The prompts' answers and their gaps take three passes over whole prompts.
    whole = batch.token_ids.numel() + 2 * sum(map(len, tokenized))
    assert counter.read == 20 * rest + sum(starts) + whole


def test_starts_that_begin_alike_are_read_once():
    model = tiny_model("llama", dtype=torch.float64)
    tokenized = [prompt for prompt, _ in prompts_and_donors(model, pairs=3)]
    batch = pad(model, tokenized)
    # In the first column only the longest prompt has begun.
    for columns in (1, 30, batch.token_ids.shape[1] - 1):
        with model.measuring(), torch.no_grad():
            reader = reader_of(model)
            with Counter(model) as counter:
                past = read_start(model, batch, columns).past(len(tokenized))
            rest = reader.embed(batch.token_ids)[:, columns:]
            found = reader.answer_logits(batch, embeddings=rest, past=past)
            torch.testing.assert_close(found, reader.answer_logits(batch), rtol=0, atol=1e-6)
        distinct = {
            p.token_ids[: columns - batch.unpadded(row).start]
            for row, p in enumerate(tokenized)
            if columns > batch.unpadded(row).start
        }
        longest = max(map(len, distinct))
        assert counter.read <= len(distinct) * longest
    assert len(distinct) == len(tokenized)


def test_models_that_read_prompts_whole_differentiate_every_token():
    model = classifier("bert")
    batch = pad(model, tokenize(model, list(some_prompts(1))))
    assert equal_columns(model, batch, batch.token_ids + 1) == 0
    assert equal_columns(model, batch, batch.token_ids) == 0
