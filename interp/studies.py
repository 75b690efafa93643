"""Studies: several measurements of the same models, told in one report; found by entry point.

1. Find the study and its stages: prompts, and what is measured of them.
2. Load one model after the other and measure it in every stage; each stage is a run folder, so an
   interrupted study goes on where it stopped.
3. Merge each stage's tables.
4. Report: the study turns what lies on disk into tables and figures.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from interp.errors import UserError
from interp.measure import Measurement
from interp.models.model import Model
from interp.prompts.prompt_set import PromptSet
from interp.report.page import Report
from interp.runs.folder import RunFolder
from interp.runs.record import beginning, ending, read_record, write_record
from interp.runs.run import Run, take_folder

GROUP = "interp.studies"
"""Entry points of this group name an object that follows `Study`."""

RECORD = "study.json"


@dataclass(frozen=True)
class Stage:
    """One measurement of one prompt set, in a run folder of the study."""

    name: str
    """Name of its folder."""
    prompts: PromptSet
    measurement: Callable[..., Measurement]
    """What to measure of a model: called with it and batch_tokens, a budget or None."""


@dataclass(frozen=True)
class StudyFolder:
    """What a study has left on disk, whether it is finished or not."""

    folder: Path
    record: dict[str, Any]
    """What study.json says."""
    runs: Mapping[str, RunFolder]
    """The stages that have begun, by name."""

    @classmethod
    def read(cls, folder: Path) -> "StudyFolder":
        """The study in a folder.

        Raises:
            UserError: no study there, or models that were measured on different data.
        """
        record = read_record(folder / RECORD, ("study", "stages", "models"))
        if record is None:
            raise UserError(f"{folder} holds no study (it has no {RECORD})")
        begun = [stage for stage in record["stages"] if (folder / stage).is_dir()]
        return cls(folder, record, {stage: RunFolder.read(folder / stage) for stage in begun})

    def problems(self) -> list[str]:
        """What is missing, a line each."""
        lines = []
        for stage in self.record["stages"]:
            run = self.runs.get(stage)
            for model in self.record["models"]:
                if run is None or model not in run.record["models"]:
                    lines.append(f"{stage}: {model} was not begun")
                elif model in run.missing():
                    shards = run.missing()[model]
                    lines.append(f"{stage}: {model} lacks the shards {', '.join(shards)}")
        return lines


@runtime_checkable
class Study(Protocol):
    """The measurements of a paper or a question, and the report on them."""

    default_limit: int
    """Pairs that are taken unless told otherwise."""

    organisms: str | None
    """Without any model named, the packaged organisms for this system are measured; all if None."""

    def stages(self, *, limit: int | None, seed: int, data: str | None) -> Sequence[Stage]:
        """What is measured of every model."""

    def report(self, folder: StudyFolder) -> Report:
        """Tables and figures from what the study has on disk."""


def find_study(name: str) -> Study:
    """The study of that name.

    Raises:
        UserError: no such study is installed.
    """
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        raise UserError(f"unknown study {name!r}; installed are {', '.join(sorted(points))}")
    study: Study = points[name].load()
    return study


def run_study(
    name: str,
    folder: Path,
    *,
    models: Sequence[str],
    load: Callable[[str], Model],
    limit: int | None,
    seed: int,
    data: str | None,
    batch_tokens: int | None,
) -> None:
    """Measure every model in every stage of a study; what was finished before is not done again.

    Args:
        name: name of the study.
        folder: where its runs and its record go.
        models: names of the models; those of earlier calls stay in the study.
        load: loads a model by name.
        limit: pairs to take; all if None.
        seed: decides data and selection.
        data: published data in place of generated.
        batch_tokens: budget of tokens a batch.

    Raises:
        UserError: an unknown study, or a folder that holds something else.
    """
    stages = find_study(name).stages(limit=limit, seed=seed, data=data)
    origin = {"limit": limit, "seed": seed, "data": data}
    runs: list[Run] = []
    for model_name in models:
        model = load(model_name)
        measurements = [stage.measurement(model, batch_tokens=batch_tokens) for stage in stages]
        if not runs:
            _open(name, folder, origin=origin, stages=stages, models=models)
            runs = [
                Run.open(
                    folder / stage.name,
                    stage.prompts,
                    measurement=measurement.name,
                    parameters=measurement.parameters,
                )
                for stage, measurement in zip(stages, measurements, strict=True)
            ]
        for run, measurement in zip(runs, measurements, strict=True):
            run.measure(measurement)
        # Before the next one is loaded: two may not fit into memory.
        del model, measurements, measurement
    for run in runs:
        run.merge_tables()
        run.finish({})
    record = read_record(folder / RECORD, ("study",)) or {}
    write_record(folder / RECORD, {**record, **ending()})


def _open(
    name: str,
    folder: Path,
    *,
    origin: Mapping[str, object],
    stages: Sequence[Stage],
    models: Sequence[str],
) -> None:
    take_folder(folder, RECORD)
    earlier = read_record(folder / RECORD, ("study", "options", "models"))
    if earlier is not None and (earlier["study"], earlier["options"]) != (name, origin):
        raise UserError(
            f"{folder} belongs to a different study: {earlier['study']} with "
            f"{earlier['options']}, this one is {name} with {dict(origin)}; repeat that study's "
            "options, or give another --out"
        )
    known = earlier["models"] if earlier else []
    record = {
        "study": name,
        "options": dict(origin),
        "stages": [stage.name for stage in stages],
        "models": list(dict.fromkeys([*known, *models])),
        **beginning(),
    }
    write_record(folder / RECORD, record)
