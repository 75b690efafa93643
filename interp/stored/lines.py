"""Records of one JSON object each: responses of servers, their batches, and vLLM's requests.

Sources: OpenAI's chat completions, whose messages vLLM and others extend by reasoning_content or
reasoning, and its Responses API; Anthropic's messages; Gemini's GenerateContentResponse; the output
files of the batch APIs of OpenAI (also vLLM, Mistral, Groq, Together), of Anthropic (Message
Batches) and of Gemini and Vertex AI; vLLM's RequestOutput.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeVar

from pydantic import AliasChoices, Field, JsonValue

from interp.errors import UserError, one_line
from interp.stored.output import Output
from interp.stored.samples import outputs_of_sample
from interp.stored.schema import Choice, Message, Part, Stored, asked, checked, reason_of

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
    choices: Annotated[list[Choice], Field(min_length=1)] = Field(
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
    output: list[_Item]
    incomplete_details: dict[str, JsonValue] | None = None

    @property
    def choices(self) -> Sequence[Choice]:
        # The summary of a thought, which is beside the content, is no thought.
        parts = [part for item in self.output for part in item.content or ()]
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
    for place, own in enumerate(body.choices):
        draw = place if own.index is None else own.index
        yield own.output(where, model=body.model, draw=draw)


def _texts_of_body(where: str, body: Any) -> Iterator[Output]:
    """The texts in the body of a response, or the error that it holds."""
    own = body if isinstance(body, Mapping) else {}
    blocked = own.get("promptFeedback") or own.get("prompt_feedback")
    if own.get("error") or own.get("object") == "error" or not own:
        yield _failed(where, reason_of(body) if body else "no response")
    elif blocked and not own.get("candidates"):
        yield _failed(where, one_line(str(blocked), 200))
    elif kind := _of_keys(_BODIES, own):
        found = checked(where, kind, body)
        if isinstance(found, _Response) and found.status not in ("completed", "incomplete"):
            yield replace(_failed(where, f"its status is {found.status}"), model=found.model)
        else:
            yield from _texts(where, found)
    else:
        raise UserError(
            f"{where} holds a response with {one_line(', '.join(own), 160)}; expected a chat "
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
    yield from (replace(own, prompt_id=named, **prompt) for own in texts)


KINDS: Mapping[str, Callable[[str, Any], Iterator[Output]]] = {
    **{f"custom_id {own}": _of_batch for own in ("response", "result", "error")},
    **{f"key {own}": _of_batch for own in ("response", "error")},
    **{f"request {own}": _of_batch for own in ("response", "status")},
    "doc resps": outputs_of_sample,
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
    return next((own for keys, own in kinds.items() if record.keys() >= set(keys.split())), None)
