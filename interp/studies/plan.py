"""The plan of a study: a run folder for each stage, and a record of the whole study."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interp.errors import UserError
from interp.files import inside, locked, names_in, remove_plain
from interp.prompts.source import PromptSource
from interp.runs.folder import RECORD_LOCK
from interp.runs.identity import run_identity
from interp.runs.merge import merging
from interp.runs.plan import RunPlan
from interp.runs.records import StudyRecord, now, read_record, updated, write_record
from interp.runs.run import Run, check_free, take_folder
from interp.runs.workers import ended_call
from interp.runs.written import worker_names
from interp.studies.folder import RECORD, change
from interp.studies.study import Study


@dataclass(frozen=True, kw_only=True)
class StudyPlan(RunPlan):
    """The plan of a study: one run folder per stage, and a record of the whole study."""

    study: str
    options: Mapping[str, object]
    made: list[Path] = field(default_factory=list)
    """The folders created for a new study, innermost first."""

    @classmethod
    def of(cls, study: Study, source: PromptSource, *, folder: Path, **plan: Any) -> "StudyPlan":
        """Create the plan of a study, which includes the models of earlier calls."""
        pairs = source.pairs(study.default_limit)
        chosen: dict[str, object] = {"limit": pairs, "seed": source.seed, "data": source.data}
        if source.template:
            chosen["template"] = list(source.template)
        chosen |= source.written
        return cls(
            folder=folder,
            stages={folder / stage.name: stage for stage in study.stages(source)},
            study=study.name,
            options={**chosen, **study.identity()},
            **plan,
        )

    def open(self, *, joins: bool = False) -> list[Run]:
        """Open the study's folder and those of its stages."""
        if joins:
            return super().open(joins=True)
        made = take_folder(self.folder, RECORD)
        stages = [stage.name for stage in self.stages.values()]
        new = {"options": dict(self.options), "stages": stages}
        for folder, stage in self.stages.items():
            check_free(folder, run_identity(stage.prompts, stage.spec))
        with locked(self.folder, RECORD_LOCK):
            earlier = record = read_record(inside(self.folder, RECORD), StudyRecord)
            if earlier is None:
                self.made.extend(made)
                earlier = StudyRecord.model_validate(
                    {**new, "study": self.study, "models": [], "history": []}
                )
            self._check_same(earlier)
            models = list(dict.fromkeys([*earlier.models, *self.models]))
            if (opened := updated(earlier, {**new, "models": models})) != record:
                write_record(self.folder / RECORD, opened)
        return super().open()

    def note(self, runs: Sequence[Run]) -> None:
        """Add the call to the history of the study and of its runs."""
        call = self.this_call()
        change(self.folder, lambda old: {"history": [*old.history, call], "finished": None})
        super().note(runs)

    def withdraw(self, runs: Sequence[Run]) -> None:
        """After a call has failed, remove new folders in which nothing was measured."""
        super().withdraw(runs)
        left = [name for name in names_in(self.folder) if not name.startswith(".")]
        with suppress(OSError):
            if self.made and left == [RECORD]:
                remove_plain(self.folder, [RECORD])  # we wrote it into a new folder
            for folder in self.made:
                folder.rmdir()

    def finish(self, runs: Sequence[Run]) -> None:
        """Merge the tables of the runs, and record the end of the study."""
        for run in runs:
            with merging(run.folder):
                pass
        change(
            self.folder,
            lambda record: {
                "history": [
                    ended_call(self.folder, call)
                    if call.id == self.call and call.finished is None
                    else call
                    for call in record.history
                ],
                "finished": record.finished or now(),
                "workers": worker_names(self.folder),
            },
        )

    def _check_same(self, earlier: StudyRecord) -> None:
        """Check that the folder contains this study, possibly with fewer pairs."""
        # The path of the data may change; the stages check that the data are identical.
        before, now = (_without(o, "limit", "data") for o in (earlier.options, self.options))
        shrinks = _limit(self.options) < _limit(earlier.options)
        if earlier.study != self.study or before != now or shrinks:
            raise UserError(
                f"{self.folder} belongs to a different study: {earlier.study} with "
                f"{earlier.options}, but this study is {self.study} with {dict(self.options)}; "
                "repeat that study's options (--limit may grow), or use another --out"
            )


def _without(options: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in options.items() if name not in names}


def _limit(options: Mapping[str, object]) -> float:
    """The number of pairs; infinite for all pairs."""
    limit = options.get("limit")
    return float(limit) if isinstance(limit, int) else float("inf")
