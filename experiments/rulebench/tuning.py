"""Which of the measured models are tuned versions (IRFT) of other measured models."""

from collections.abc import Sequence
from typing import NamedTuple

from interp.training.folder import training_of
from interp_experiments.rulebench.learning import STRING_GAME, RuleFollowing


class Tuning(NamedTuple):
    """A tuned model, by its own record."""

    model: str
    base: str
    """What it was before."""
    trained_on: str
    """The questions that it learned: "string-game", "kinship", or a folder."""

    @property
    def is_string_game(self) -> bool:
        """Whether it learned StringGame, whose rules occur in no other set."""
        return self.trained_on == STRING_GAME


def tunings(models: Sequence[str]) -> list[Tuning]:
    """Those of the models that are tuned versions of others of them, in their order."""
    found = (_tuning(model) for model in models)
    return [tuning for tuning in found if tuning is not None and tuning.base in models]


def _tuning(model: str) -> Tuning | None:
    """What the record of a model says of IRFT; None if it says nothing of it."""
    record = training_of(model)
    if record is None or record.training.task != RuleFollowing.name:
        return None
    return Tuning(model, record.training.model, str(record.training.options.get("data")))
