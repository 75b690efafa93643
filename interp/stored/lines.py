"""Records of one JSON object each: of servers, their batches, vLLM and lm-evaluation-harness.

Sources: OpenAI's chat completions, whose messages vLLM and others extend by reasoning_content or
reasoning, and its Responses API; Anthropic's messages; Gemini's GenerateContentResponse; the output
files of the batch APIs of OpenAI (also vLLM, Mistral, Groq, Together), of Anthropic (Message
Batches) and of Gemini and Vertex AI; vLLM's RequestOutput; lm-eval's samples_TASK.jsonl.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import AliasChoices, Field, JsonValue

from interp.errors import UserError, one_line
from interp.stored.output import Output
from interp.stored.schema import Choice, Message, Part, Stored, asked, checked, reason_of
from interp.texts import real

_Kind = TypeVar("_Kind")


class _Named(Stored):
    """A record that may name its prompt."""

    id: str | int | None = Field(
        default=None, validation_alias=AliasChoices("prompt_id", "custom_id", "key")
    )


class _Completion(Stored):
    model: str | None = Field(
        default=None, validation_alias=AliasChoices("model", "modelVersion", "model_version")
    )
    choices: list[Choice] | None = Field(
        validation_alias=AliasChoices("choices", "candidates", "outputs")
    )


class _Said(Choice):
    model: str | None = None

    @property
    def choices(self) -> Sequence[Choice]:
        return (self,)


class _Item(Stored):
    content: list[Part] | None = None


class _Response(Stored):
    model: str | None = None
    status: str = "completed"
    output: list[_Item] | None
    incomplete_details: dict[str, JsonValue] | None = None

    @property
    def choices(self) -> Sequence[Choice]:
        # The summary of a thought, which is beside the content, is no thought.
        parts = [part for item in self.output or () for part in item.content or ()]
        end = (self.incomplete_details or {}).get("reason", self.status)
        return (Choice(message=Message(content=list(parts)), finish_reason=str(end)),)


_Body = _Completion | _Response | _Said

_BODIES: Mapping[str, type[_Body]] = {
    "choices": _Completion,
    "candidates": _Completion,
    "object output": _Response,
    "content role stop_reason": _Said,
}
"""The schema of the body of a response, by the keys that tell its format."""


def _texts(where: str, body: _Body) -> Iterator[Output]:
    if not body.choices:
        yield _failed(where, "the response has no choice")
    for place, choice in enumerate(body.choices or ()):
        draw = place if choice.index is None else choice.index
        yield choice.output(where, model=body.model, draw=draw)


def _texts_of_body(where: str, body: Any) -> Iterator[Output]:
    fields = body if isinstance(body, Mapping) else {}
    blocked = fields.get("promptFeedback") or fields.get("prompt_feedback")
    if fields.get("error") or fields.get("object") == "error" or not fields:
        yield _failed(where, reason_of(body) if body else "no response")
    elif blocked and not fields.get("candidates"):
        yield _failed(where, one_line(str(blocked), 200))
    elif kind := _of_keys(_BODIES, fields):
        response = checked(where, kind, body)
        if isinstance(response, _Response) and response.status not in ("completed", "incomplete"):
            yield replace(_failed(where, f"its status is {response.status}"), model=response.model)
        else:
            yield from _texts(where, response)
    else:
        raise UserError(
            f"{where} holds a response with {one_line(', '.join(fields), 160)}; expected a chat "
            "completion (choices), a response of OpenAI's Responses API (output), a message of "
            "Anthropic (content) or Gemini's candidates"
        )


def _failed(where: str, reason: str) -> Output:
    return Output(where, "", error=f"the request failed: {reason}")


class _Asked(Stored):
    contents: list[Message]


class _Batch(_Named):
    response: dict[str, JsonValue] | None = None
    result: dict[str, JsonValue] | None = None
    request: _Asked | None = None
    status: JsonValue = None
    """Of Vertex, which tells the prompt by its text: why the request failed."""
    error: JsonValue = None


def _of_batch(where: str, record: object) -> Iterator[Output]:
    batch = checked(where, _Batch, record)
    prompt = asked(batch.request.contents) if batch.request else None
    if (result := batch.result) is not None:
        end = result.get("type")
        error = None if end == "succeeded" else result.get("error") or end or "no result"
        body = result.get("message")
    else:
        response = batch.response or {}
        body = response.get("body") if "body" in response else batch.response
        status = str(response.get("status_code") or 200)
        error = None if status.startswith("2") else body or f"status {status}"
    reason = batch.error or error or (None if body else batch.status)
    texts = [_failed(where, reason_of(reason))] if reason else _texts_of_body(where, body)
    yield from _named(batch, texts, prompt=prompt)


def _of_body(where: str, record: object) -> Iterator[Output]:
    yield from _named(checked(where, _Named, record), _texts_of_body(where, record))


class _Request(_Named):
    id: str | int | None = Field(default=None, validation_alias="request_id")
    prompt: str | None = None


def _of_request(where: str, record: object) -> Iterator[Output]:
    request = checked(where, _Request, record)
    texts = _texts(where, checked(where, _Completion, record))
    # vLLM numbers requests itself, so that the text alone tells the prompt if it is there.
    named = request if request.prompt is None else _Named()
    yield from _named(named, texts, prompt=request.prompt, rendered=True)


def _named(record: _Named, texts: Iterable[Output], **prompt: Any) -> Iterator[Output]:
    named = None if record.id is None else str(record.id)
    yield from (replace(text, prompt_id=named, **prompt) for text in texts)


class LmEvalSample(Stored):
    """A sample of lm-eval."""

    doc: dict[str, Any]
    arguments: Any = None
    resps: list[Any]
    filtered_resps: Any = None
    filter: str = "none"

    @property
    def prompt_id(self) -> str | None:
        """The id of the prompt, in tasks that interp exports."""
        id_ = self.doc.get("prompt_id")
        return id_ if isinstance(id_, str) else None

    @property
    def requests(self) -> list[tuple[str, object]]:
        """What the model read in each request, and the option that it scored or how it wrote."""
        requests: list[tuple[str, object]] = []
        arguments = self.arguments
        arguments = list(arguments.values()) if isinstance(arguments, dict) else arguments
        for request in arguments if isinstance(arguments, list) else ():
            match list(request.values()) if isinstance(request, dict) else request:
                case [str(text), *rest]:
                    requests.append((text, rest[0] if rest else None))
        return requests


def _of_sample(where: str, record: object) -> Iterator[Output]:
    """The texts of a sample, or the option that its log-likelihoods tell."""
    sample = checked(where, LmEvalSample, record)
    requests, read = sample.requests, sample.doc.get("text")
    prompt = requests[0][0] if requests else read if isinstance(read, str) else None
    about: Any = {"prompt": prompt, "prompt_id": sample.prompt_id, "filter": sample.filter}
    blank = Output(where, "", rendered=True, **about)
    texts = [text for resp in sample.resps for text in (resp if isinstance(resp, list) else [resp])]
    if not all(isinstance(text, str) for text in texts):
        yield replace(blank, chosen=_likeliest(where, requests, sample.resps))
        return
    filtered = sample.filtered_resps if isinstance(sample.filtered_resps, list) else []
    for draw, text in enumerate(texts):
        left = filtered[draw] if len(filtered) == len(texts) else None
        yield replace(blank, text=text, draw=draw, chosen=left if isinstance(left, str) else None)


def _likeliest(where: str, requests: Sequence[tuple[str, object]], resps: Sequence[object]) -> str:
    """The option with the largest log-likelihood after the prompt; empty if several have it.

    Options without the prompt, which acc_mutual_info also scores, do not count.
    """
    scored = [
        (option.strip(), _log_likelihood(resp))
        for (text, option), resp in zip(requests, resps, strict=False)
        if isinstance(option, str) and text == requests[0][0]
    ]
    if len(dict(scored)) < 2 or len(requests) != len(resps):
        raise UserError(
            f"{where} holds log-likelihoods that do not tell an option; expected samples of a task "
            "that generates text (output_type: generate_until), or that compares options after "
            "one text (multiple_choice)"
        )
    if any(math.isnan(likelihood) for _, likelihood in scored):
        raise UserError(
            f"{where} holds a log-likelihood that is no number; run lm-eval again with a model "
            "that computes numbers"
        )
    most = max(likelihood for _, likelihood in scored)
    if most > 1e-3:  # by more than rounding
        raise UserError(
            f"{where} holds {most:g} as a log-likelihood; expected numbers up to 0. Run lm-eval "
            "again with a model that computes them, and store them with their sign"
        )
    best = {option for option, likelihood in scored if likelihood == most}
    return best.pop() if len(best) == 1 else ""


def _log_likelihood(response: object) -> float:
    """The number in the first response to a request, [[-1.5, false]]; nan if there is none."""
    first = innermost(response)
    try:
        return real(first) if isinstance(first, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def innermost(nested: object) -> object:
    """The first of what lists within lists hold."""
    while isinstance(nested, list) and nested:
        nested = nested[0]
    return nested


KINDS: Mapping[str, Callable[[str, Any], Iterator[Output]]] = {
    **{f"custom_id {key}": _of_batch for key in ("response", "result", "error")},
    **{f"key {key}": _of_batch for key in ("response", "error")},
    **{f"request {key}": _of_batch for key in ("response", "status")},
    "doc resps": _of_sample,
    "outputs": _of_request,
    **dict.fromkeys(_BODIES, _of_body),
}
"""The function that reads a record, by the keys that tell its format."""

_OF_TABLES = {"prompt", "text", "answer", "thought"}
"""Columns of tables, which may also have one named error."""


def record_reader(record: object) -> Callable[[str, Any], Iterator[Output]] | None:
    """The function that reads a record; None if it is of no known format."""
    if not isinstance(record, Mapping):
        return None
    if record.get("error") and not record.keys() & _OF_TABLES:
        return _of_batch if record.keys() & {"custom_id", "key", "request"} else _of_body
    return _of_keys(KINDS, record)


def _of_keys(kinds: Mapping[str, _Kind], record: Mapping[str, Any]) -> _Kind | None:
    """What belongs to the first keys that a record has."""
    return next((kind for keys, kind in kinds.items() if record.keys() >= set(keys.split())), None)
