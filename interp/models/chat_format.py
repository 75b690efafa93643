"""How messages are written for a model: in its chat template or not, and with what."""

from dataclasses import dataclass

from interp.errors import UserError
from interp.texts import iso_date

DEFAULT_DATE = "2024-07-26"
"""The date given to templates, whenever they are rendered: the one that the templates of Llama 3.1
and 3.2 fall back to themselves."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """How messages are written for a model.

    Raises:
        UserError: a date that is not valid, or a system prompt without a template to write it.
    """

    template: bool = True
    """Whether the model's own chat template is used, where it has one."""
    system: str | None = None
    """The system prompt; None leaves it to the template, which may insert one of its own."""
    date: str = DEFAULT_DATE
    """What templates that write the date take for today, YYYY-MM-DD."""

    def __post_init__(self) -> None:
        try:
            iso_date(self.date)
        except ValueError as error:
            raise UserError(str(error)) from error
        if self.system is not None and not self.template:
            raise UserError(
                "a system prompt was given, but no chat template is to be used, which alone can "
                "write it; give one of the two"
            )
