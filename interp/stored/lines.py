"""Records of one JSON object each: OpenAI-like servers, vLLM and lm-evaluation-harness.

Sources: OpenAI's batch API (output file) and chat completions, whose messages vLLM and others
extend by reasoning_content or reasoning; vLLM's RequestOutput; lm-eval's files samples_TASK.jsonl.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from interp.errors import UserError, one_line
from interp.stored.output import Output, ending

Draw = Annotated[int, Field(ge=0, lt=2**31)]


class Stored(BaseModel):
    """A part of a record, with the fields that are read; it may have others."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


_Stored = TypeVar("_Stored", bound=Stored)


class Part(Stored):
    """A part of a message's content: a text, a refusal, a thought, or something else."""

    type: str
    text: str | None = None
    refusal: str | bool | None = None
    """A refusal's text or, in logs of Inspect, whether the text is one."""
    reasoning: str | None = None


Content = str | list[str | Part] | None


class _Message(Stored):
    content: Content = None
    refusal: str | None = None
    """What the model writes in place of content."""
    reasoning_content: str | None = None
    reasoning: str | None = None


class _Choice(Stored):
    index: Draw = 0
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Completion(Stored):
    model: str | None = None
    choices: Annotated[list[_Choice], Field(min_length=1)]
    custom_id: str | None = None
    prompt_id: str | None = None


class _Response(Stored):
    status_code: int = 200
    body: JsonValue = None


class _Batch(Stored):
    custom_id: str
    response: _Response | None = None
    error: JsonValue = None


class _Generated(Stored):
    index: Draw = 0
    text: str
    finish_reason: str | None = None


class _Request(Stored):
    request_id: str | int | None = None
    prompt: str | None = None
    outputs: Annotated[list[_Generated], Field(min_length=1)]


class _Sample(Stored):
    doc: dict[str, JsonValue]
    arguments: JsonValue = None
    resps: list[JsonValue]


def checked(where: str, kind: type[_Stored], record: object) -> _Stored:
    """A record that fits its schema.

    Raises:
        UserError: it does not; the message names the place and the field.
    """
    try:
        return kind.model_validate(record)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part)[:40] for part in problem["loc"]) or "the record"
        raise UserError(
            f"{where} is damaged: {one_line(field, 160)}: {problem['msg'][:160]}"
        ) from error


def parts_of(content: Content) -> tuple[str, str | None]:
    """The text of a message's content, and its thought if it is a part of its own."""
    if content is None or isinstance(content, str):
        return content or "", None
    texts = [
        part
        if isinstance(part, str)
        else part.text or (part.refusal if isinstance(part.refusal, str) else "")
        for part in content
    ]
    thoughts = [
        part.reasoning for part in content if isinstance(part, Part) and part.type == "reasoning"
    ]
    thought = "".join(filter(None, thoughts)) if thoughts else None
    return "".join(texts), thought


def _of_batch(where: str, record: object) -> Iterator[Output]:
    batch = checked(where, _Batch, record)
    response = batch.response
    if batch.error is not None or response is None or response.status_code != 200:
        body = None if response is None else response.body
        reason = batch.error if batch.error is not None else body
        said = one_line(str(reason), 200) if reason else "no response"
        yield Output(where, "", prompt_id=batch.custom_id, error=f"the request failed: {said}")
        return
    yield from _choices(where, checked(where, _Completion, response.body), batch.custom_id)


def _of_completion(where: str, record: object) -> Iterator[Output]:
    found = checked(where, _Completion, record)
    yield from _choices(where, found, found.prompt_id or found.custom_id)


def _choices(where: str, completion: _Completion, prompt_id: str | None) -> Iterator[Output]:
    for choice in completion.choices:
        message = choice.message or _Message(content=choice.text)
        text, thought = parts_of(message.content)
        apart = (message.reasoning_content, message.reasoning, thought)
        yield Output(
            where,
            text or message.refusal or "",
            prompt_id=prompt_id,
            model=completion.model,
            draw=choice.index,
            thought=next((own for own in apart if own), None),
            finished=ending(choice.finish_reason),
        )


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


def _of_sample(where: str, record: object) -> Iterator[Output]:
    sample = checked(where, _Sample, record)
    named, read = sample.doc.get("prompt_id"), _read_by_model(sample.arguments)
    texts = [text for own in sample.resps for text in (own if isinstance(own, list) else [own])]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(
            f"{where} holds log-likelihoods of options rather than texts; expected samples of a "
            "task that generates text (output_type: generate_until)"
        )
    for draw, text in enumerate(texts):
        yield Output(
            where,
            str(text),
            prompt_id=named if isinstance(named, str) else None,
            prompt=read if read is not None else _text_of(sample.doc),
            rendered=True,
            draw=draw,
        )


def _text_of(doc: Mapping[str, JsonValue]) -> str | None:
    text = doc.get("text")
    return text if isinstance(text, str) else None


def _read_by_model(arguments: JsonValue) -> str | None:
    """What the model read: the first argument of the first request."""
    match arguments:
        case {"gen_args_0": {"arg_0": str(text)}} | [[str(text), *_], *_]:
            return text
    return None


KINDS: Mapping[str, Callable[[str, Any], Iterator[Output]]] = {
    "custom_id response": _of_batch,
    "doc resps": _of_sample,
    "outputs": _of_request,
    "choices": _of_completion,
}
"""The function that reads a record, by the keys that tell its format."""
