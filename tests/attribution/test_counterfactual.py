from dataclasses import replace

import pytest
import torch

from interp.attribution.methods.gradient import counterfactual_embeddings, counterfactual_tokens
from interp.errors import UserError
from interp.prompts.mixing import mixed, with_donors
from interp.reading.tokens import pad, tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


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


def test_batches_have_the_embeddings_of_each_prompt():
    model = tiny_model("llama")
    tokenized = [prompt for prompt, _ in prompts_and_donors(model, pairs=2)]
    batch = pad(model, tokenized)
    found = counterfactual_embeddings(model, batch)
    table = model.hf.get_input_embeddings().weight
    for row, prompt in enumerate(tokenized):
        expected = table[torch.tensor(counterfactual_tokens(model, prompt))]
        torch.testing.assert_close(found[row, batch.unpadded(row)], expected)


def test_a_prompt_without_a_donor_of_another_instance_is_refused():
    model = tiny_model("llama")
    (prompt, _), *_ = prompts_and_donors(model, pairs=1)
    donors = tuple(donor for donor in prompt.prompt.donors if donor.kind != "instance")
    (bare,) = tokenize(model, [replace(prompt.prompt, donors=donors)])
    with pytest.raises(UserError, match="no donor from another instance"):
        counterfactual_tokens(model, bare)
