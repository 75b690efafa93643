"""Which of the models that were measured are others of them after tuning (IRFT)."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from interp.errors import UserError
from interp.files import inside
from interp.models.names import is_folder
from interp.models.organisms import PREFIX, organism_folder
from interp.runs.schemas import read_record
from interp.training.record import RECORD, TrainRecord
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
        """Whether it learned StringGame, whose rules are of no other set."""
        return self.trained_on == STRING_GAME


def tunings(models: Sequence[str]) -> list[Tuning]:
    """Those of the models that are others of them after tuning, in their order."""
    found = (_tuning(model) for model in models)
    return [tuning for tuning in found if tuning is not None and tuning.base in models]


def _tuning(model: str) -> Tuning | None:
    """What the folder of a model says of its training; None if it says nothing of IRFT."""
    record = None
    with suppress(UserError):  # a report does not fail for the record of another program's folder
        folder = organism_folder(model) if model.startswith(PREFIX) else Path(model)
        if is_folder(str(folder)):
            record = read_record(inside(folder, RECORD), TrainRecord)
    if record is None or record.finished is None or record.training.task != RuleFollowing.name:
        return None
    return Tuning(model, record.training.model, str(record.training.options.get("data")))
