"""What the schemas of stored records share; files are not trusted."""

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from interp.errors import UserError, described, kind_of, one_line
from interp.prompts.files import read_json
from interp.stored.output import Output, ending

Draw = Annotated[int, Field(ge=0, lt=2**31)]


class Stored(BaseModel):
    """A part of a record, with the fields that are read; it may have others."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


_Stored = TypeVar("_Stored", bound=Stored)


class Part(Stored):
    """A part of a message's content: a text, a refusal, a thought, or something else."""

    type: str = "text"
    text: str | None = None
    refusal: str | bool | None = None
    """A refusal's text or, in logs of Inspect, whether the text is one."""
    reasoning: str | None = None
    thinking: "str | list[Part] | None" = None
    """A thought as Anthropic stores it, or in parts, as Mistral does."""
    thought: bool = False
    """Whether the text is a thought, as Gemini says."""

    @property
    def is_thought(self) -> bool:
        """Whether it is a part of a thought."""
        return self.thought or self.type in ("reasoning", "thinking", "reasoning_text")

    @property
    def written(self) -> str:
        """The text of the part."""
        if isinstance(self.thinking, list):
            return "".join(part.written for part in self.thinking)
        refused = self.refusal if isinstance(self.refusal, str) else ""
        return self.reasoning or self.thinking or self.text or refused


Content = str | list[str | Part] | None


class Message(Stored):
    """What the user or the model wrote."""

    role: JsonValue = None
    content: Content = Field(default=None, validation_alias=AliasChoices("content", "parts"))
    refusal: str | None = None
    """What the model writes in place of content."""
    reasoning_content: str | None = None
    reasoning: str | None = None

    @property
    def _parts(self) -> list[Part]:
        content = [self.content] if isinstance(self.content, str) else self.content or ()
        return [Part(text=part) if isinstance(part, str) else part for part in content]

    @property
    def is_refusal(self) -> bool:
        """Whether the message, or a part of it, is marked as a refusal."""
        return bool(self.refusal) or any(part.refusal for part in self._parts)

    @property
    def split(self) -> tuple[str, str | None]:
        """The text, and the thought if it is held apart."""
        text, within = (
            "".join(part.written for part in self._parts if part.is_thought is thought)
            for thought in (False, True)
        )
        thought = self.reasoning_content or self.reasoning or within
        return text or self.refusal or "", thought or None


class Choice(Stored):
    """One text of a response: a choice or candidate, with a message or its content alone."""

    index: Draw | None = None
    message: Message | Content = Field(
        default=None, validation_alias=AliasChoices("message", "content", "text")
    )
    finish_reason: str | None = Field(
        default=None, validation_alias=AliasChoices("finish_reason", "finishReason", "stop_reason")
    )

    @model_validator(mode="after")
    def _has_text_or_reason(self) -> "Choice":
        if self.message is None and self.finish_reason in (None, "stop"):
            raise ValueError("it has no text")
        return self

    def output(self, where: str, *, model: str | None, draw: int) -> Output:
        """The text, without its prompt."""
        reply = self.message if isinstance(self.message, Message) else Message(content=self.message)
        text, thought = reply.split
        end = "refused" if reply.is_refusal else ending(self.finish_reason)
        return Output(where, text, model=model, draw=draw, thought=thought, finished=end)


def asked(messages: Iterable[Message]) -> str | None:
    """The last message of the user."""
    texts = [message.split[0] for message in messages if message.role in ("user", None)]
    return texts[-1] if texts else None


def checked(where: str, kind: type[_Stored], record: object) -> _Stored:
    """A record that fits its schema, or else a UserError that names the place and the field."""
    try:
        return kind.model_validate(record)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(str(part)[:40] for part in problem["loc"]) or "the record"
        complaint = f"{one_line(field, 160)}: {problem['msg'].removeprefix('Value error, ')[:160]}"
        got = problem["input"]
        got = one_line(described(got, 60)) if isinstance(got, str | int | float) else kind_of(got)
        raise UserError(f"{where} is damaged: {complaint}, got {got}") from error


def parsed(where: str, content: bytes) -> object:
    """The value of a JSON text, or else a UserError."""
    try:
        return read_json(content.decode("utf-8-sig"))
    except ValueError as error:
        reason = "it is not in UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise UserError(
            f"{where} is not JSON ({one_line(reason, 160)}); correct or remove it. A tool that was "
            "stopped may have written half a line"
        ) from error


def reason_of(error: object) -> str:
    """The message in an error, which may be an object within others, on one line."""
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    message = error.get("message") if isinstance(error, Mapping) else None
    return one_line(str(message or error), 200)
