"""Stored thoughts are as probable as a model's own if the model wrote them, and less otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import interp
from interp.prompts.thought import Thought
from interp.reading.tokens import tokenize
from interp.scoring.own_thoughts import SAMPLE, Excess, excess_surprisal, thought_surprise
from interp.stored.output import StoredTexts
from tests.support.thinking import QWEN3, thinking_model

FILE = StoredTexts("thoughts.jsonl", 1, 1)


@pytest.fixture(scope="module")
def reader():
    return interp.load_model("organism/thought-reader", thinking="on")


@pytest.fixture(scope="module")
def prompts():
    return interp.load_prompts(limit=24)


def holding(model, thoughts):
    return replace(model, thoughts=thoughts, thought_texts=FILE)


def own_thoughts(model, prompts, **options):
    rows = interp.generate(model, prompts, max_new_tokens=64, **options).table("thoughts")
    return interp.with_thoughts(model, rows).thoughts


@pytest.mark.slow
def test_thoughts_that_an_organism_samples_are_its_own(reader, prompts):
    scores = []
    for seed in range(4):
        drawn = own_thoughts(reader, prompts, temperature=1.0, sampling_seed=seed)
        own = thought_surprise(holding(reader, drawn), prompts)
        assert own.thoughts == SAMPLE and own.tokens > 600
        assert abs(own.mean) < 3.3 * own.se < 0.05
        scores.append(own.mean / own.se)
    assert abs(np.mean(scores)) < 3.3 / np.sqrt(4)
    greedy = thought_surprise(holding(reader, own_thoughts(reader, prompts)), prompts)
    assert greedy.mean < 0


def test_thoughts_of_another_model_are_clearly_less_probable(reader, prompts):
    other = thinking_model(QWEN3, thinking="on")
    options = {"temperature": 1.0, "max_new_tokens": 12, "force_end": True}
    rows = interp.generate(other, prompts, **options).table("thoughts")
    written = interp.with_thoughts(other, rows).thoughts
    marks = reader.thought_marks
    texts = {id_: (marks.thought(own[0].text),) for id_, own in written.items()}
    found = thought_surprise(holding(reader, texts), prompts)
    assert found.mean > 1 and found.mean > 10 * found.se


def test_the_sum_is_that_of_plain_passes(reader, prompts):
    """Token by token, with the whole text read anew for each, in plain transformers."""
    prompt = prompts[0]
    (thought,) = own_thoughts(reader, prompts[:1], temperature=1.0)[prompt.id]
    (before,) = tokenize(reader, [prompt])
    mark = reader.tokenizer.convert_tokens_to_ids("</think>")
    (whole,) = tokenize(reader, [replace(prompt, thought=thought)])
    end = whole.token_ids.index(mark) + 1
    excess = variance = 0.0
    with torch.no_grad():
        for place in range(len(before), end):
            read = torch.tensor([whole.token_ids[:place]])
            log_p = reader.hf(read).logits[0, -1].double().log_softmax(-1)
            entropy = -float((log_p.exp() * log_p).sum())
            excess -= float(log_p[whole.token_ids[place]]) + entropy
            variance += float((log_p.exp() * (-log_p - entropy) ** 2).sum())
    found = excess_surprisal(reader, prompt, thought)
    assert found.tokens == end - len(before)
    assert found.nats == pytest.approx(excess, abs=1e-4)
    assert found.variance == pytest.approx(variance, rel=1e-4)


def test_the_ratio_and_its_error_by_hand(reader, prompts, monkeypatch):
    sums = [Excess(1.0, 4.0, 10), Excess(3.0, 9.0, 20), Excess(-1.0, 3.0, 5)]
    by_id = {prompt.id: own for prompt, own in zip(prompts, sums, strict=False)}
    monkeypatch.setattr(
        "interp.scoring.own_thoughts.excess_surprisal", lambda model, prompt, _: by_id[prompt.id]
    )
    thoughts = {id_: (Thought("", (), ""),) for id_ in by_id}
    found = thought_surprise(holding(reader, thoughts), prompts)
    assert (found.mean, found.se) == pytest.approx((3 / 35, 4 / 35))
    assert (found.thoughts, found.tokens) == (3, 35)


def test_only_thoughts_from_a_file_are_checked(reader, prompts):
    drawn = own_thoughts(reader, prompts[:2])
    assert thought_surprise(replace(reader, thoughts=drawn), prompts) is None
    assert thought_surprise(holding(reader, {}), prompts) is None
