"""Records of one JSON object each: of servers and their batches, and of vLLM.

Sources: the output files of the batch APIs of OpenAI (also vLLM, Mistral, Groq, Together), of
Anthropic (Message Batches) and of Gemini and Vertex AI; vLLM's RequestOutput.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, JsonValue

from interp.stored.bodies import BODIES, Asked, failed, texts_of_body
from interp.stored.output import Output, ending
from interp.stored.samples import outputs_of_sample
from interp.stored.schema import Draw, Stored, checked, reason_of

_Id = str | int | None


class _Named(Stored):
    """A record that may name its prompt."""

    prompt_id: _Id = None
    custom_id: _Id = None
    key: _Id = None

    @property
    def id(self) -> str | None:
        named = (own for own in (self.prompt_id, self.custom_id, self.key) if own is not None)
        return next(map(str, named), None)


class _Result(Stored):
    type: str
    message: JsonValue = None
    error: JsonValue = None


class _Batch(_Named):
    response: dict[str, JsonValue] | None = None
    result: _Result | None = None
    request: Asked | None = None
    status: JsonValue = None
    """Of Vertex: why the request failed."""
    error: JsonValue = None


class _Generated(Stored):
    index: Draw = 0
    text: str
    finish_reason: str | None = None


class _Request(Stored):
    request_id: str | int | None = None
    prompt: str | None = None
    outputs: Annotated[list[_Generated], Field(min_length=1)]


def _of_batch(where: str, record: object) -> Iterator[Output]:
    batch = checked(where, _Batch, record)
    prompt = batch.request.text if batch.request else None
    for own in _texts_of_batch(where, batch):
        yield replace(own, prompt_id=batch.id, prompt=prompt)


def _texts_of_batch(where: str, batch: _Batch) -> Iterator[Output]:
    response, result = batch.response, batch.result
    if result is not None:
        error = None if result.type == "succeeded" else result.error or result.type
        body = result.message
    else:
        wrapped = response is not None and "body" in response
        body = response["body"] if response is not None and wrapped else response
        status = str(response.get("status_code") or 200) if response is not None else "200"
        error = None if status.startswith("2") else body or f"status {status}"
    if reason := batch.error or error or (None if body else batch.status):
        yield failed(where, reason_of(reason))
    else:
        yield from texts_of_body(where, body)


def _of_body(where: str, record: object) -> Iterator[Output]:
    named = checked(where, _Named, record).id
    yield from (replace(own, prompt_id=named) for own in texts_of_body(where, record))


def _of_request(where: str, record: object) -> Iterator[Output]:
    request = checked(where, _Request, record)
    # vLLM numbers requests itself, so that the text alone tells the prompt if it is there.
    named = None if request.prompt is not None else request.request_id
    for own in request.outputs:
        yield Output(
            where,
            own.text,
            prompt_id=None if named is None else str(named),
            prompt=request.prompt,
            rendered=True,
            draw=own.index,
            finished=ending(own.finish_reason),
        )


KINDS: Mapping[str, Callable[[str, Any], Iterator[Output]]] = {
    "custom_id response": _of_batch,
    "custom_id result": _of_batch,
    "custom_id error": _of_batch,
    "key response": _of_batch,
    "key error": _of_batch,
    "request response": _of_batch,
    "request status": _of_batch,
    "doc resps": outputs_of_sample,
    "outputs": _of_request,
    **dict.fromkeys(BODIES, _of_body),
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
    return next((own for keys, own in KINDS.items() if record.keys() >= set(keys.split())), None)
