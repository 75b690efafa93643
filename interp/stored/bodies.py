"""What servers answer to one request: the texts in the body of a response.

Sources: OpenAI's chat completions, whose messages vLLM and others extend by reasoning_content or
reasoning, and its Responses API; Anthropic's messages; Gemini's GenerateContentResponse.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, Field, JsonValue

from interp.errors import UserError, one_line
from interp.stored.output import Output, ending
from interp.stored.schema import Content, Draw, Part, Stored, checked, parts_of, reason_of


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


class _Item(Stored):
    type: str = "message"
    content: list[Part] | None = None


class _Response(Stored):
    model: str | None = None
    status: str = "completed"
    output: list[_Item]
    incomplete_details: dict[str, JsonValue] | None = None


class _Said(Stored):
    model: str | None = None
    content: Content
    stop_reason: str | None = None


class _Turn(Stored):
    role: str | None = None
    parts: list[Part] | None = None


class _Candidate(Stored):
    content: _Turn = _Turn()
    finish: str | None = Field(None, validation_alias=AliasChoices("finishReason", "finish_reason"))


class _Candidates(Stored):
    model: str | None = Field(None, validation_alias=AliasChoices("modelVersion", "model_version"))
    candidates: Annotated[list[_Candidate], Field(min_length=1)]


class Asked(Stored):
    """The request beside a response of Vertex, which tells the prompt by its text."""

    contents: list[_Turn]

    @property
    def text(self) -> str | None:
        """The last message of the user."""
        own = [parts_of(list(one.parts or ()))[0] for one in self.contents if one.role != "model"]
        return own[-1] if own else None


def _of_completion(where: str, body: object) -> Iterator[Output]:
    completion = checked(where, _Completion, body)
    for choice in completion.choices:
        message = choice.message or _Message(content=choice.text)
        text, thought = parts_of(message.content)
        apart = (message.reasoning_content, message.reasoning, thought)
        yield Output(
            where,
            text or message.refusal or "",
            model=completion.model,
            draw=choice.index,
            thought=next((own for own in apart if own), None),
            finished=ending(choice.finish_reason),
        )


def _of_response(where: str, body: object) -> Iterator[Output]:
    response = checked(where, _Response, body)
    if response.status not in ("completed", "incomplete"):
        yield failed(where, f"its status is {response.status}", model=response.model)
        return
    # The summary of a thought is no thought.
    text, thought = parts_of([part for item in response.output for part in item.content or ()])
    end = (response.incomplete_details or {}).get("reason", response.status)
    yield Output(where, text, model=response.model, thought=thought, finished=ending(str(end)))


def _of_message(where: str, body: object) -> Iterator[Output]:
    said = checked(where, _Said, body)
    text, thought = parts_of(said.content)
    end = ending(said.stop_reason)
    yield Output(where, text, model=said.model, thought=thought or None, finished=end)


def _of_candidates(where: str, body: object) -> Iterator[Output]:
    found = checked(where, _Candidates, body)
    for draw, own in enumerate(found.candidates):
        text, thought = parts_of(list(own.content.parts or ()))
        end = ending(own.finish)
        yield Output(where, text, model=found.model, draw=draw, thought=thought, finished=end)


BODIES: Mapping[str, Callable[[str, Any], Iterator[Output]]] = {
    "choices": _of_completion,
    "object output": _of_response,
    "content role stop_reason": _of_message,
    "candidates": _of_candidates,
}
"""The function that reads a body, by the keys that tell its format."""


def texts_of_body(where: str, body: Any) -> Iterator[Output]:
    """The texts in the body of a response, or the error that it holds.

    Raises:
        UserError: the body is damaged, or of no known format.
    """
    own = body if isinstance(body, Mapping) else {}
    if own.get("error") or own.get("object") == "error" or not own:
        yield failed(where, reason_of(body) if body else "no response")
        return
    blocked = own.get("promptFeedback") or own.get("prompt_feedback")
    if blocked and not own.get("candidates"):
        yield failed(where, one_line(str(blocked), 200))
        return
    read = next((one for keys, one in BODIES.items() if own.keys() >= set(keys.split())), None)
    if read is None:
        raise UserError(
            f"{where} holds a response with {one_line(', '.join(own), 160)}; expected a chat "
            "completion (choices), a response of OpenAI's Responses API (output), a message of "
            "Anthropic (content) or Gemini's candidates"
        )
    yield from read(where, body)


def failed(where: str, reason: str, *, model: str | None = None) -> Output:
    """A request that failed."""
    return Output(where, "", model=model, error=f"the request failed: {reason}")
