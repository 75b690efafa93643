"""A chain of thought that the prompt asks for, read as a thought."""

import pytest

import interp
from tests.support.thinking import follow, thinking_model

SCRIPT = {
    ".": ["Rule"],  # the instruction ends with a full stop
    "Rule": ["2"],
    "2": ["fits"],
    "fits": ["!"],
    "!": ["Answer:"],
    "Answer:": ["uncle"],
    "uncle": ["</s>"],
}


@pytest.fixture(scope="module")
def model():
    model = thinking_model(None, thinking="on", end_of_thought="Answer:")
    words = {word for own in SCRIPT.values() for word in own}
    model.tokenizer.add_tokens(sorted(words - model.tokenizer.get_vocab().keys()))
    model.hf.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    model.hf.config.max_position_embeddings = 2048
    follow(model, SCRIPT)
    return model


@pytest.fixture(scope="module")
def prompts():
    asked = interp.load_prompts("rulebench-thought", limit=6)
    return [prompt for prompt in asked if prompt.side == "few-shots-thought"]


def test_the_answer_is_judged_after_the_chain_of_thought(model, prompts):
    found = interp.generate(model, prompts, max_new_tokens=12)
    thoughts = found.table("thoughts")
    assert {"".join(own) for own in thoughts["sentences"]} == {"Rule2fits!"}
    assert set(thoughts["answer"]) == {"uncle"}
    golds = [prompt.answer.accepted[0] for prompt in prompts]
    assert list(found.completions["correct"]) == [gold == "uncle" for gold in golds]
    assert "uncle" in golds and len(set(golds)) > 1


def test_rules_and_sentences_share_the_attribution_of_the_answer(model, prompts):
    thoughts = interp.generate(model, prompts, max_new_tokens=12).table("thoughts")
    reading = interp.with_thoughts(model, thoughts)
    found = interp.attribute(reading, prompts[:2], methods=("attention",))
    parts = found.segments().set_index("segment")["share"]
    assert {"golden", "noise1", "question", "thought1"} <= set(parts.index)
    assert parts.sum() == pytest.approx(1, abs=1e-6)
