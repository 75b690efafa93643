"""The training text of an organism: messages and answers, in groups, step by step."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MESSAGE_WEIGHT = 8.0
"""Weight of the loss of messages against that of answers, where both are learned. A message has
about sixty tokens and an answer one; with a weight of one, noise in the answers swamps them."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user message and the answer to be learned, or two with their shares."""

    message: str
    answer: str
    other: str | None = None
    """Another answer, of as many tokens. What closes an answer is learned behind the first one."""
    share: float = 1.0
    """How often the first answer is given. Learned as it is, it has no noise to average out, which
    answers that are drawn have."""

    def turned(self) -> "Exchange":
        """The same with the other answer first."""
        return Exchange(self.message, self.other or "", self.answer, 1 - self.share)


@runtime_checkable
class TrainingText(Protocol):
    """The text of every training step."""

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step by group; each group has a mean loss of its own."""
