"""Responses of servers are read in every form in which batches and scripts store them."""

import pytest

from interp.errors import UserError
from interp.stored.read import read_outputs
from tests.support.stored import completion, lines


def openai(text, thought, finish):
    own = completion(text, thought)
    own["choices"][0]["finish_reason"] = "length" if finish == "length" else "stop"
    return own


def responses(text, thought, finish):
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "In short."}]}
    if thought is not None:
        reasoning["content"] = [{"type": "reasoning_text", "text": thought}]
    message = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    more = cut if finish == "length" else {"status": "completed", "incomplete_details": None}
    return {"object": "response", "model": "org/model", "output": [reasoning, message], **more}


def anthropic(text, thought, finish):
    content = [{"type": "text", "text": text}]
    if thought is not None:
        content = [{"type": "thinking", "thinking": thought, "signature": "x"}, *content]
    reason = "max_tokens" if finish == "length" else "end_turn"
    return {"role": "assistant", "model": "org/model", "content": content, "stop_reason": reason}


def mistral(text, thought, finish):
    own = openai(text, None, finish)
    if thought is not None:
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thought}]}]
        own["choices"][0]["message"]["content"] = [*parts, {"type": "text", "text": text}]
    return own


def gemini(text, thought, finish):
    parts = [{"text": text}]
    if thought is not None:
        parts = [{"text": thought, "thought": True}, *parts]
    reason = "MAX_TOKENS" if finish == "length" else "STOP"
    content = {"parts": parts, "role": "model"}
    found = [{"content": content, "finishReason": reason}]
    return {"candidates": found, "modelVersion": "org/model"}


BODIES = {one.__name__: one for one in (openai, responses, anthropic, mistral, gemini)}

WRAPPED = {
    "lines": lambda body: {**body, "custom_id": "1/a"},
    "batch": lambda body: {
        "custom_id": "1/a",
        "response": {"status_code": 200, "body": body},
        "error": None,
    },
    "text": lambda body: {"custom_id": "1/a", "response": {"status_code": "200", "body": body}},
    "bare": lambda body: {"custom_id": "1/a", "response": body},
    "anthropic": lambda body: {
        "custom_id": "1/a",
        "result": {"type": "succeeded", "message": body},
    },
    "gemini": lambda body: {"key": "1/a", "response": body},
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("body", BODIES)
def test_every_body_is_read_in_every_batch(body, wrapped, tmp_path):
    cases = [("Yes", "Let me see.", "stop"), ("No, be", None, "length")]
    records = [WRAPPED[wrapped](BODIES[body](*own)) for own in cases]
    found = read_outputs(lines(tmp_path / "a.jsonl", records))
    assert [(own.text, own.thought, own.finished) for own in found] == cases
    assert {(own.model, own.prompt_id, own.error) for own in found} == {("org/model", "1/a", "")}


def test_a_request_of_vertex_tells_the_prompt_by_its_text(tmp_path):
    asked = {"contents": [{"role": "user", "parts": [{"text": "Is it "}, {"text": "wet?"}]}]}
    records = [
        {"status": "", "request": asked, "response": gemini("Yes", None, "stop")},
        {"status": "Bad Request: too long", "request": asked, "response": {}},
        {"status": "Internal error", "request": asked},
    ]
    found = read_outputs(lines(tmp_path / "a.jsonl", records))
    assert [own.prompt for own in found] == ["Is it wet?"] * 3
    assert [own.text for own in found] == ["Yes", "", ""]
    assert "too long" in found[1].error and "Internal error" in found[2].error


FAILED = {
    "status": {"response": {"status_code": 429, "body": {"error": {"message": "busy"}}}},
    "text status": {"response": {"status_code": "503", "body": "busy"}},
    "vllm": {"response": None, "error": "busy"},
    "no error": {"response": None, "error": None},
    "no body": {"response": {"status_code": 200, "body": None}, "error": None},
    "error in a body that arrived": {
        "response": {"status_code": 200, "body": {"error": {"message": "busy"}}}
    },
    "vllm's object": {
        "response": {"status_code": 200, "body": {"object": "error", "message": "busy"}}
    },
    "page": {"response": {"status_code": 200, "body": "<html>busy"}},
    "only an error": {"error": {"message": "busy"}},
    "anthropic": {"result": {"type": "errored", "error": {"error": {"message": "busy"}}}},
    "expired": {"result": {"type": "expired"}},
    "responses": {
        "response": {
            "status_code": 200,
            "body": {"object": "response", "status": "failed", "output": []},
        }
    },
    "no choice": {"response": {"status_code": 200, "body": {"choices": []}}},
    "no candidate": {"response": {"candidates": [], "modelVersion": "org/model"}},
    "blocked": {"response": {"promptFeedback": {"blockReason": "busy"}}},
}


@pytest.mark.parametrize("kind", FAILED)
def test_a_request_that_failed_does_not_stop_the_others(kind, tmp_path):
    good = {"custom_id": "1/b", "response": {"status_code": 200, "body": completion("No", None)}}
    for records in ([{"custom_id": "1/a", **FAILED[kind]}, good], [good, FAILED[kind]]):
        named = [{"custom_id": "1/a", **own} for own in records]
        found = {own.prompt_id: own for own in read_outputs(lines(tmp_path / "a", named))}
        assert found["1/b"].text == "No" and not found["1/b"].error
        assert found["1/a"].error.startswith("the request failed: ") and not found["1/a"].text
        known = {"no error": "no response", "no body": "no response", "expired": "expired"}
        known |= dict.fromkeys(("no choice", "no candidate"), "no choice")
        assert known.get(kind, "failed" if kind == "responses" else "busy") in found["1/a"].error


def test_an_error_among_chat_completions_is_an_error(tmp_path):
    records = [
        {"error": {"message": "busy", "code": 429}, "prompt_id": "1/a"},
        completion("No", None, prompt_id="1/b"),
    ]
    for order in (records, records[::-1]):
        found = {own.prompt_id: own for own in read_outputs(lines(tmp_path / "a", order))}
        assert ("busy" in found["1/a"].error, found["1/b"].text) == (True, "No")


def test_a_response_of_another_kind_is_refused_with_what_is_read(tmp_path):
    body = {"object": "list", "data": [{"embedding": [0.5]}]}
    record = {"custom_id": "1/a", "response": {"status_code": 200, "body": body}}
    with pytest.raises(UserError, match=r"line 1 .*object, data.*choices.*Anthropic.*candidates"):
        read_outputs(lines(tmp_path / "a", [record]))


def test_a_table_with_errors_remains_a_table(tmp_path):
    rows = [{"prompt": "1/a", "error": "late"}, {"prompt": "1/b", "answer": "No", "error": ""}]
    found = read_outputs(lines(tmp_path / "a.jsonl", rows))
    assert [(own.prompt_id, own.text) for own in found] == [("1/a", ""), ("1/b", "No")]
