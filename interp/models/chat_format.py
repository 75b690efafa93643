"""How messages are written for a model: in its chat template or not, and what that is told."""

from dataclasses import dataclass
from datetime import date

from interp.errors import UserError

DEFAULT_DATE = "2024-07-26"
"""The date that templates are told, whenever they are read: the one that the templates of Llama 3.1
and 3.2 fall back to themselves."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How messages are written for a model.

    Raises:
        UserError: a date that is none, or a system prompt without a template to write it.
    """

    template: bool = True
    """Whether the model's own chat template is used, where it has one."""
    system: str | None = None
    """The system prompt; None leaves it to the template, which may insert one of its own."""
    date: str = DEFAULT_DATE
    """What templates that write the date take for today, YYYY-MM-DD."""

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.date)
        except (TypeError, ValueError) as error:
            raise UserError(f"{self.date!r:.60} is no date such as {DEFAULT_DATE}") from error
        if self.system is not None and not self.template:
            raise UserError(
                "a system prompt was given, but no chat template is to be used, which alone can "
                "write it; give one of the two"
            )
