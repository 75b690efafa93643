"""A plan: what to measure, with which models, in which folders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

from interp.console import echo
from interp.files import checksum, inside, remove_plain
from interp.measuring.spec import Stage
from interp.models.find import FoundModel
from interp.models.load import load_found, load_skeleton, set_threads
from interp.models.loading import Loading
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.runs.folder import RunFolder
from interp.runs.options import ComputeOptions
from interp.runs.records import Call, now, versions
from interp.runs.run import Run


@dataclass(frozen=True)
class RunPlan:
    """What to measure, and the folders for the results."""

    folder: Path
    """The folder for the whole plan, with the workers' records."""
    stages: Mapping[Path, Stage]
    """The stages by run folder."""
    models: Mapping[str, FoundModel | Model]
    """The models by name: loaded, or only located on disk; the latter are loaded one at a time."""
    loading: Loading = field(default_factory=Loading)
    computing: ComputeOptions = field(default_factory=ComputeOptions)
    command: str | None = None
    """The command line, for the record; None for a call from Python."""
    call: str = field(default_factory=lambda: token_hex(6))
    """Id that distinguishes the records and workers of this call from those of other calls on the
    same folder.
    """

    kept: ClassVar[list[tuple[object, Model]] | None] = None
    """Within `keeping_model`: what was loaded last, by name, origin and presence of weights."""

    @property
    def needs_weights(self) -> bool:
        """Whether this machine computes at least one stage."""
        return any(stage.spec.needs_weights for stage in self.stages.values())

    def origin(self, name: str) -> dict[str, Any]:
        """A model's source and loading options, which let later calls recognize it."""
        model = self.models[name]
        if isinstance(model, Model):
            return {**model.source, "files": None}
        origin = {**self.loading.identity(), **model.source, "files": model.fingerprint}
        if self.computing.thoughts is not None:
            origin["thoughts"] = self._thoughts_file or RunFolder.read(
                self.computing.thoughts
            ).shards_hash(model.name)
        return origin

    @cached_property
    def _thoughts_file(self) -> str | None:
        """The checksum of the file of thoughts; None if they are in a run folder."""
        thoughts = self.computing.thoughts
        return checksum(thoughts) if thoughts is not None and thoughts.is_file() else None

    def model(self, name: str) -> Model:
        """The model with this name; if it is not in memory yet, it is loaded."""
        located = self.models[name]
        if isinstance(located, Model):
            return located
        key = name, self.origin(name), self.needs_weights
        for kept_key, model in self.kept or ():
            if kept_key == key:
                return model
        if self.kept:
            self.kept.clear()  # two models may not fit into memory
        if len(self.models) == 1:
            echo(f"loading {name} ...")
        prompts = (prompt for stage in self.stages.values() for prompt in stage.prompts)
        model = load_for_run(
            located, self.loading, self.computing, prompts=prompts, weights=self.needs_weights
        )
        if self.kept is not None:
            self.kept.append((key, model))
        return model

    def open(self, *, joins: bool = False) -> list[Run]:
        """Open the folders; workers that join a run change nothing in them."""
        return [
            Run.open(
                folder,
                stage.prompts,
                stage.spec,
                models=list(self.models),
                fail_on_error=self.computing.fail_on_error,
                joins=joins,
            )
            for folder, stage in self.stages.items()
        ]

    def note(self, runs: Sequence[Run]) -> None:
        """Record the call in the history of each of its runs."""
        for run in runs:
            run.note(self.this_call())

    def this_call(self) -> Call:
        """The record of this call as it starts."""
        return Call(
            id=self.call,
            command=self.command,
            models=list(self.models),
            started=now(),
            versions=versions(),
        )

    def withdraw(self, runs: Sequence[Run]) -> None:
        """Undo the preparations of a call that has failed.

        If it created all of its folders and measured nothing in them, remove the folders.
        Otherwise, remove the models that no command has begun from the folders' records.
        """
        if all(run.gives_way() for run in runs):
            with suppress(OSError):
                workers = inside(self.folder, "workers")
                remove_plain(workers, [f"{self.call}-0.json"])
                workers.rmdir()
            for run in runs:
                run.remove()
        else:
            for run in runs:
                run.forget_models(list(self.models))

    def complete(self, runs: Sequence[Run]) -> bool:
        """Whether all shards exist."""
        return not any(run.missing(self.models) for run in runs)


@contextmanager
def keeping_model() -> Iterator[None]:
    """Within the block, a plan does not load the model again that an earlier plan loaded last."""
    RunPlan.kept = []
    try:
        yield
    finally:
        RunPlan.kept = None


def load_for_run(
    found: FoundModel,
    loading: Loading,
    computing: ComputeOptions,
    *,
    prompts: Iterable[Prompt] = (),
    weights: bool = True,
) -> Model:
    """Load a located model to measure prompts, without its weights if a server computes."""
    model = load_found(found, loading) if weights else load_skeleton(found, loading)
    set_threads(model, computing.threads)
    if computing.thoughts is not None:
        from interp.runs.thoughts import with_thoughts  # with all readers of stored texts

        model = with_thoughts(model, computing.thoughts, prompts=list(prompts))
    if model.quantization is not None:
        echo(f"the weights of {model.name} are quantized: {model.quantization}")
    return model
