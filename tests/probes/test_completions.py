import pytest
import torch

from interp.errors import UserError
from interp.reading.tokens import pad, tokenize
from interp_probes.completions import COMPLETION_TOKENS, complete
from tests.probes.facts import some_facts
from tests.support.tiny import CONFIGS, tiny_model


def batch_of(model, prompts=None):
    return pad(model, tokenize(model, prompts or some_facts()))


def generated(model, prompt):
    """What transformers' own generation says."""
    (tokenized,) = tokenize(model, [prompt])
    tokens = model.hf.generate(
        torch.tensor([tokenized.token_ids]),
        attention_mask=torch.ones(1, len(tokenized), dtype=torch.long),
        do_sample=False,
        max_new_tokens=COMPLETION_TOKENS,
        pad_token_id=model.tokenizer.pad_token_id,
    )
    answer = tokens[0, len(tokenized) :]
    return model.tokenizer.decode(answer, skip_special_tokens=True).strip()


def test_the_organism_completes_what_it_was_told(organism):
    said = complete(organism, batch_of(organism))
    assert said[:4] == ["Sweden", "United States of America", "Tunisia", "Nepal"]
    assert said[4] != "Colombia"  # planted as unknown
    assert said[6:] == ["bird", "racket sport"]


def test_completions_are_those_of_transformers(organism):
    said = complete(organism, batch_of(organism))
    assert said == [generated(organism, prompt) for prompt in some_facts()]


@pytest.mark.parametrize("kind", CONFIGS)
def test_random_models_complete_as_transformers_does(kind):
    model = tiny_model(kind)
    said = complete(model, batch_of(model))
    assert said == [generated(model, prompt) for prompt in some_facts()]


def test_generation_settings_of_the_checkpoint_are_left_out(organism, monkeypatch):
    greedy = complete(organism, batch_of(organism))
    monkeypatch.setattr(organism.hf.generation_config, "repetition_penalty", 50.0)
    assert complete(organism, batch_of(organism)) == greedy


def test_no_mask_reaches_the_attention(organism, monkeypatch):
    masks = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def record(*args, attn_mask=None, **keywords):
        masks.append(attn_mask)
        return fused(*args, attn_mask=attn_mask, **keywords)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", record)
    batch = batch_of(organism)
    assert (batch.attention_mask == 0).any()
    complete(organism, batch)
    assert len(masks) > organism.hf.config.num_hidden_layers
    assert all(mask is None for mask in masks)


def test_completions_that_pass_the_context_are_refused(organism, monkeypatch):
    longest = max(map(len, tokenize(organism, some_facts())))
    monkeypatch.setattr(
        organism.hf.config, "max_position_embeddings", longest + COMPLETION_TOKENS - 1
    )
    with pytest.raises(UserError, match="do not fit into"):
        complete(organism, batch_of(organism))
