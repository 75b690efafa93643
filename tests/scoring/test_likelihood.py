"""Perplexity of prompts and probabilities of continuations, held to one prompt at a time."""

import dataclasses

import numpy as np
import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import SoftScore
from interp.measuring.core import bind, collect
from interp.models.organisms import DEFAULT
from interp.models.unembedding import final_states
from interp.reading.tokens import batches, tokenize
from interp.scoring import likelihood as perplexity_module
from interp.scoring.likelihood import continuation_log_probabilities
from interp_experiments.logical_forms.system import system
from tests.support.other_models import other_model
from tests.support.tiny import CONFIGS, tiny_model


@pytest.fixture(scope="module")
def questions():
    return system.prompts(seed=0, data=None).spread(6)


def soft_answers(model, prompts, *, batch_tokens=None):
    return collect(bind(SoftScore(), model, batch_tokens=batch_tokens), prompts)["soft_answers"]


def by_hand(model, prompt):
    """exp of the model's own loss on the prompt alone, in fp64."""
    (tokenized,) = tokenize(model, [prompt])
    ids = torch.tensor([tokenized.token_ids])
    with torch.inference_mode():
        logits = model.hf(input_ids=ids).logits[0].double()
    surprise = -logits.log_softmax(-1)[:-1].gather(1, ids[0, 1:, None])
    return float(surprise.mean().exp())


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", CONFIGS)
def test_perplexity_is_that_of_the_models_own_logits(kind, questions):
    """Padded batches and chunks of positions against one prompt at a time with all logits."""
    model = tiny_model(kind)
    frame = soft_answers(model, questions)
    expected = [by_hand(model, prompt) for prompt in questions]
    assert frame["perplexity"].tolist() == pytest.approx(expected, rel=1e-4)
    assert frame["prompt_tokens"].tolist() == [len(p) for p in tokenize(model, questions)]


def test_perplexity_of_a_float64_model_is_not_rounded(questions):
    model = tiny_model("llama", dtype=torch.float64)
    expected = [by_hand(model, prompt) for prompt in questions]
    found = soft_answers(model, questions)["perplexity"].tolist()
    assert found == pytest.approx(expected, rel=1e-12, abs=0)


def test_soft_caps_count(questions):
    model = interp.load_model("organism/gemma2", device="cpu")
    assert model.hf.config.final_logit_softcapping
    frame = soft_answers(model, questions[:2])
    expected = [by_hand(model, prompt) for prompt in questions[:2]]
    assert frame["perplexity"].tolist() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("kind", ["granite", "cohere", "minicpm3"])
def test_scaled_logits_count(kind, questions):
    model = other_model(kind)
    assert model.logit_scale != 1
    frame = soft_answers(model, questions[:2])
    expected = [by_hand(model, prompt) for prompt in questions[:2]]
    assert frame["perplexity"].tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("chunk", [1, 7 * 700, 10**9])
def test_chunks_change_nothing(chunk, questions, monkeypatch):
    model = tiny_model("llama")
    whole = soft_answers(model, questions)
    monkeypatch.setattr(perplexity_module, "CHUNK_LOGITS", chunk)
    chunked = soft_answers(model, questions)
    assert chunked["perplexity"].tolist() == pytest.approx(whole["perplexity"].tolist(), rel=1e-5)


def test_no_more_than_a_chunk_of_logits_is_in_memory(questions, monkeypatch):
    model = tiny_model("llama")
    vocabulary = model.hf.config.vocab_size
    monkeypatch.setattr(perplexity_module, "CHUNK_LOGITS", 5 * vocabulary)
    seen = []

    def watch(module, inputs, output):
        seen.append(output.numel())

    handle = model.hf.get_output_embeddings().register_forward_hook(watch)
    try:
        soft_answers(model, questions)
    finally:
        handle.remove()
    assert max(seen) <= max(5, len(questions)) * vocabulary


def test_the_hook_is_gone_afterwards_whatever_happens(questions):
    model = tiny_model("llama")
    norm = model.hf.get_submodule(model.architecture.final_norm)
    with pytest.raises(RuntimeError, match="stop"), final_states(model):
        assert norm._forward_hooks
        raise RuntimeError("stop")
    assert not norm._forward_hooks


def test_a_model_whose_logits_are_made_in_another_way_is_refused(questions, monkeypatch):
    model = tiny_model("qwen2")
    original = model.hf.forward

    def scaled(*arguments, **options):
        output = original(*arguments, **options)
        output.logits = output.logits / 3
        return output

    monkeypatch.setattr(model.hf, "forward", scaled)
    with pytest.raises(UserError, match=r"tiny qwen2 \(qwen2\).*perplexity"):
        soft_answers(model, questions)


def test_one_token_has_no_perplexity(questions):
    model = tiny_model("llama")
    (tokenized, *_) = tokenize(model, questions[:1])
    short = dataclasses.replace(tokenized, token_ids=tokenized.token_ids[:1], segments={})
    ((_, batch),) = batches(model, [short], batch_tokens=100)
    with torch.inference_mode(), final_states(model) as states:
        output = model.hf(input_ids=batch.token_ids)
        values = perplexity_module.perplexities(
            model, batch, states[0], last_logits=output.logits[:, -1]
        )
    assert np.isnan(values).all()


def test_soft_accuracy_by_hand(questions):
    """sigmoid(+-(logit of Yes - logit of No)), whatever else the vocabulary takes."""
    model = tiny_model("llama")
    tables = collect(bind(SoftScore(), model), questions)
    options, soft = tables["option_probabilities"], tables["soft_answers"]
    assert options["option"].tolist() == ["Yes", "No"] * len(questions)
    yes, no = (options["probability"].to_numpy()[place::2] for place in (0, 1))
    assert options["relative_probability"].tolist()[::2] == pytest.approx(yes / (yes + no))
    gold = np.array([prompt.answer.gold == "Yes" for prompt in questions])
    expected = np.where(gold, yes, no) / (yes + no)
    assert soft["soft_accuracy"].tolist() == pytest.approx(expected.tolist())
    assert soft["error"].tolist() == [""] * len(questions)


def test_the_options_tokens_are_recorded(questions):
    model = tiny_model("llama")
    options = collect(bind(SoftScore(), model), questions[:1])["option_probabilities"]
    for name, tokens in zip(options["option"], options["token_ids"], strict=True):
        assert model.tokenizer.decode(list(tokens)).strip().startswith(name[0])


def test_non_finite_logits_are_an_error_of_their_prompt(questions, monkeypatch):
    model = interp.load_model(DEFAULT, device="cpu")
    from interp.measurements.answers import evaluation as module

    original = module.predict

    def poisoned(model, batch, answer_tokens):
        predictions = original(model, batch, answer_tokens)
        predictions.logits[0, 0] = float("nan")
        return predictions

    monkeypatch.setattr(module, "predict", poisoned)
    frame = soft_answers(model, questions, batch_tokens=10**6)
    assert (frame["error"] == "non-finite").sum() == 1
    assert frame["soft_accuracy"].isna().sum() == 1


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


def test_all_continuations_of_one_token_have_a_probability_of_one(model, prompts):
    (tokenized,) = tokenize(model, prompts[:1])
    tokens = [(token,) for token in range(model.hf.config.vocab_size)]
    with model.measuring(), torch.no_grad():
        found = continuation_log_probabilities(
            model, [tokenized] * len(tokens), tokens, batch_tokens=4096
        )
    assert float(found.exp().sum()) == pytest.approx(1, abs=1e-6)


def test_lengths_and_batches_change_nothing(model, prompts):
    read = tokenize(model, prompts[:6])
    texts = [tuple(range(3, 4 + number)) for number in range(6)]  # of one to six tokens
    with model.measuring(), torch.no_grad():
        together, apart = (
            continuation_log_probabilities(model, read, texts, batch_tokens=budget)
            for budget in (4096, 1)
        )
        for prompt, text, found in zip(read, texts, together, strict=True):
            logits = model.hf(torch.tensor([[*prompt.token_ids, *text]])).logits[0].double()
            start = len(prompt) - 1
            own = logits.log_softmax(-1)[range(start, start + len(text)), list(text)]
            assert float(found) == pytest.approx(float(own.sum()), abs=1e-4)
    torch.testing.assert_close(together, apart, atol=1e-4, rtol=0)
