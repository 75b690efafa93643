"""What the schemas of stored records share; files are not trusted."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from interp.errors import UserError, one_line

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
        """Whether the part is one of a thought."""
        return self.thought or self.type in ("reasoning", "thinking", "reasoning_text")

    @property
    def written(self) -> str:
        """The text of the part."""
        if isinstance(self.thinking, list):
            return "".join(own.written for own in self.thinking)
        refused = self.refusal if isinstance(self.refusal, str) else ""
        return self.reasoning or self.thinking or self.text or refused


Content = str | list[str | Part] | None


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
    parts = [Part(text=own) if isinstance(own, str) else own for own in content]
    thoughts = [own.written for own in parts if own.is_thought]
    text = "".join(own.written for own in parts if not own.is_thought)
    return text, "".join(thoughts) if thoughts else None


def reason_of(error: JsonValue) -> str:
    """The message in an error, which may be an object within others, on one line."""
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    message = error.get("message") if isinstance(error, Mapping) else None
    return one_line(str(message or error), 200)
