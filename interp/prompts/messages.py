"""What a model reads around the text of a prompt: system message, demonstrations, answer prefix."""

from dataclasses import dataclass

from interp.errors import UserError, shortened


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A question that was answered, which the model reads before its own."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages around a prompt's text, which is the last one of the user.

    Raises:
        UserError: a message without text, or a prefix that begins or ends in white space.
    """

    system: str | None = None
    """The system message; None leaves it to the model's chat format."""
    demonstrations: tuple[Demonstration, ...] = ()
    """Each is a turn of the user and one of the assistant, in this order, before the prompt."""
    answer_prefix: str = ""
    """What the assistant has said already, such as "Answer:"; the answer is read behind it."""

    def __post_init__(self) -> None:
        for text in (
            *(() if self.system is None else (self.system,)),
            *(text for shown in self.demonstrations for text in (shown.question, shown.answer)),
        ):
            if not isinstance(text, str) or not text.strip():
                raise UserError(
                    f"a message around a prompt is {shortened(repr(text))}; expected a text that "
                    "is not empty"
                )
        prefix = self.answer_prefix
        if not isinstance(prefix, str) or prefix != prefix.strip():
            raise UserError(
                f"the answer prefix is {shortened(repr(prefix))}; expected a text without white "
                "space at its ends, since the answer brings its own"
            )

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        """Role and content of each message before the prompt."""
        system = () if self.system is None else (("system", self.system),)
        return system + tuple(
            turn
            for shown in self.demonstrations
            for turn in (("user", shown.question), ("assistant", shown.answer))
        )


ALONE = Messages()
"""Nothing around a prompt."""
