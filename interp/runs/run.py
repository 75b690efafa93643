"""Write a run folder: one measurement of one prompt set on one or more models.

Several commands and workers may use one folder at the same time. Before changing run.json, each
locks it and reads it again. While measuring, each holds another lock, so that no command reuses the
folder for another run. At the end, each command merges the tables (`interp.runs.merge`).
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import pyarrow as pa

from interp import files
from interp.console import Progress, counted
from interp.errors import UserError
from interp.measuring.spec import Spec
from interp.prompts.prompt_set import PromptSet
from interp.runs import records
from interp.runs.claims import Claims
from interp.runs.folder import IN_USE, PROMPTS, RECORD, RECORD_LOCK, RunFolder
from interp.runs.identity import check_same_model, check_same_run, model_record, run_identity
from interp.runs.shards import Shard, cut, damage, manifests, write, write_parquet
from interp.tables import prompts_table

if TYPE_CHECKING:
    from interp.measuring.core import Measurement
    from interp.models.model import Model

_ROWS = 1000
"""Number of rows of the prompts table that are created at once."""


@dataclass
class Run(RunFolder):
    """A run folder opened for a prompt set and a kind of measurement."""

    prompts: PromptSet
    fail_on_error: float
    """Largest allowed share of a model's prompts with errors."""
    made: Sequence[Path] | None = None
    """The folders created for this run, innermost first; None if the run existed before."""
    tell: Callable[..., None] = field(default=lambda do, **what: None, repr=False)
    """Function that tells other processes that hold the model what this one is about to compute
    with it: its name and arguments; there are none if it holds the whole model.
    """
    _claims: dict[str, Claims] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        folder: Path,
        prompts: PromptSet,
        spec: Spec,
        *,
        models: Sequence[str] = (),
        fail_on_error: float = 1.0,
        joins: bool = False,
    ) -> "Run":
        """Open a folder for a new or resumed run; models and prompts may be added to a run.

        Models are named in the order of the tables. With `joins`, the folder is opened as a worker,
        which may neither begin nor enlarge a run.

        Raises:
            UserError: the folder belongs to a different run, or contains other files.
        """
        identity = run_identity(prompts, spec)
        made = take_folder(folder, RECORD)
        with files.locked(folder, RECORD_LOCK):
            earlier = records.read_record(files.inside(folder, RECORD), records.RunRecord)
            unmerged = sorted(spec.unmerged)
            record = records.RunRecord(
                run=identity, models=[], history=[], unmerged=unmerged, files={}
            )
            if earlier is None:
                # Write this file first: it marks the folder as a run's even if this process is
                # killed.
                records.write_record(folder / RECORD, record)
            check_free(folder, identity)
            # A different run that has begun no model is replaced.
            same = earlier is not None and earlier.run == identity
            if earlier is not None and (joins or same or files.names_in(folder / "models")):
                grown = check_same_run(folder, earlier.run, identity)
                if grown and joins:
                    raise UserError(
                        f"{folder} holds {earlier.run.prompts:,} prompts, but this worker was "
                        f"started to measure {len(prompts):,}; start workers with the command "
                        "that enlarges the run"
                    )
                record = records.updated(
                    earlier, {"run": identity, "finished": None} if grown else {}
                )
            run = cls(folder, record, prompts, fail_on_error, made if earlier is None else None)
            if not same or run.file_problem(PROMPTS):
                run._write_prompts()
            names = list(dict.fromkeys([*record.models, *models]))
            run.record = records.updated(run.record, {"models": names})
            if run.record != earlier:
                records.write_record(folder / RECORD, run.record)
        return run

    def note(self, call: records.Call) -> None:
        """Add a call to the run's history; calls that find nothing to do are not added."""
        self.change(lambda record: {"history": [*record.history, call]})

    def gives_way(self) -> bool:
        """Whether this process created the run and the run has no results yet."""
        names = {name for name in files.names_in(self.folder) if not name.startswith(".")}
        return self.made is not None and names <= {RECORD, PROMPTS, "workers"}

    def remove(self) -> None:
        """Remove a run without results (`gives_way`), unless another command has joined it."""
        with (
            files.locked(self.folder, RECORD_LOCK),
            files.locked(self.folder, IN_USE, wait=False) as unused,
            suppress(OSError),
        ):
            record = records.read_record(files.inside(self.folder, RECORD), records.RunRecord)
            if unused and self.gives_way() and record == self.record:
                # The run has not changed since this process created it.
                files.remove_plain(self.folder, [RECORD, PROMPTS])
        with suppress(OSError):
            for folder in self.made or ():
                folder.rmdir()

    def forget_models(self, models: Sequence[str]) -> None:
        """Remove from the record the models that no command has begun, such as unloadable ones."""
        unknown = {model for model in models if self.model_record(model) is None}
        self.change(lambda record: {"models": [m for m in record.models if m not in unknown]})

    def offers(self, model: str, origin: Mapping[str, object]) -> bool:
        """Whether a model may have something left to measure, as it may if its origin changed."""
        record = self.begun(model)
        if record is None or record.origin != dict(origin):
            return True
        claims = self._claims_of(model)
        return any(not claims.held(shard) for shard in self.missing([model]).get(model) or ())

    def measure(
        self, measurement: "Measurement", *, origin: Mapping[str, object] | None = None
    ) -> bool:
        """Measure the prompts on one model, except shards that are done or claimed by others.

        `origin`, the model's source, lets later calls recognize it. Returns whether anything was
        measured.
        """
        name = measurement.model.name
        shards = self._begin(measurement, dict(origin or {}))
        claims = self._claims_of(name)
        claims.longest = max((record.seconds for record in manifests(self.done(name))), default=0)
        # If memory ran out earlier on this kind of device, start with the reduced batch size.
        budget = measurement.budget
        fitting = _known(self.folder).get(_key(measurement), budget.tokens)
        budget.tokens = min(budget.tokens, fitting)
        done = sum(shard.end - shard.start for shard in shards if shard.done)
        if done < len(self.prompts):
            measurement.prepare(self.prompts)
        measured = False
        title = f"{measurement.spec.name} {name}"
        with Progress(title, total=len(self.prompts), done=done) as progress:
            for shard in [shard for shard in shards if not shard.done]:
                with claims.take(shard.id) as mine:
                    if mine and not shard.done:
                        seconds = self._measure_shard(measurement, shard, progress)
                        claims.longest = max(claims.longest, seconds)
                        measured = True
                    elif shard.done:
                        progress.advance(shard.end - shard.start)
        self._check_errors(measurement.model)
        return measured

    def _measure_shard(self, measurement: "Measurement", shard: Shard, progress: Progress) -> float:
        """Measure a shard and write it; return the duration in seconds."""
        start = time.monotonic()
        prompts = list(self.prompts[shard.start : shard.end])
        tokens = measurement.budget.tokens
        self.tell("attempt", start=shard.start, end=shard.end, tokens=tokens)
        measured = measurement.attempt(prompts, done=progress.advance)
        seconds = time.monotonic() - start
        write(shard, measurement.tables, measured, seconds=seconds)
        if measurement.budget.shrunk:  # other workers and later calls begin with this batch size
            sizes, new = _known(self.folder), {_key(measurement): measurement.budget.tokens}
            if sizes | new != sizes:
                records.write_record(
                    files.inside(self.folder, records.MEMORY), records.Memory(tokens=sizes | new)
                )
        if measured.errors:
            self._check_errors(measurement.model)
        return seconds

    def repair(self) -> list[str]:
        """Set damaged shards aside to be measured again; return a line about each."""
        lines = []
        for model in self.models():
            for shard in filter(os.path.lexists, self.shards(model)):
                problem = damage(shard) if files.is_folder(shard) else "it is not a folder"
                if problem is not None:
                    self._set_aside(shard)
                    lines.append(f"shard {shard.name} of {model} is measured again: {problem}")
        return lines

    def forget_errors(self) -> int:
        """Set shards with errors aside to be measured again; return their number."""
        done = [shard for model in self.models() for shard in self.done(model)]
        failed = [shard for shard in done if any(record.errors for record in manifests([shard]))]
        for shard in failed:
            self._set_aside(shard)
        return len(failed)

    def _set_aside(self, shard: Path) -> None:
        """Move whatever is at a shard's path out of the way, without deleting it."""
        with files.writing(shard):
            place = files.make_folder(self.folder, "set-aside") / f"{shard.name}-{token_hex(4)}"
            shard.rename(place)

    def _begin(self, measurement: "Measurement", origin: dict[str, object]) -> list[Shard]:
        """Record a model in the folder; return its shards."""
        name = measurement.model.name
        earlier = self.model_record(name)
        # Another device may suggest another size, but finished shards must remain the same.
        size = (earlier and earlier.shard_prompts) or measurement.shard_prompts
        shards = cut(measurement, self.prompts, self.shard_folder(name), size=size)
        record = model_record(
            measurement,
            origin=origin,
            data_hash=self.record.run.data_hash,
            shards=[shard.id for shard in shards],
            shard_prompts=size,
        )

        def found() -> dict[str, object]:
            # These import torch.
            from interp.scoring.replies import first_replies
            from interp.scoring.rounding import logit_spacing

            model = measurement.model
            self.tell("find_spacing")
            fields: dict[str, object] = {"logit_spacing": logit_spacing(model, self.prompts)}
            if sample := measurement.spec.replies_read:
                self.tell("find_replies")
                replies = first_replies(model, self.prompts, sample)
                fields["replies"] = replies and records.RepliesRecord(**replies._asdict())
            if model.thought_texts is not None:
                from interp.scoring.own_thoughts import thought_surprise

                self.tell("find_surprise")
                surprise = thought_surprise(model, self.prompts)
                fields["surprise"] = surprise and records.SurpriseRecord(**asdict(surprise))
            return fields

        self.begin(record, found)
        return shards

    def begin(
        self, record: records.ModelRecord, found: Callable[[], Mapping[str, object]] = dict
    ) -> None:
        """Record a model in the folder.

        `found` returns fields of the record which take a while to find; it is called only if the
        model was not recorded with the same prompts.

        Raises:
            UserError: the folder holds another model of this name.
        """
        name, earlier = record.name, self.model_record(record.name)
        if earlier is not None:
            check_same_model(self.folder, earlier, record)
        files.make_folder(self.folder, "shards", self.shard_folder(name).name)
        files.make_folder(self.folder, "models")
        same = ("origin", "data_hash")
        if earlier is None or any(getattr(earlier, k) != getattr(record, k) for k in same):
            records.write_record(self.model_file(name), records.updated(record, found()))
        # Do this last, and even if the model is listed, since a failed command may just have
        # removed it.
        self.change(lambda record: {"models": list(dict.fromkeys([*record.models, name]))})

    def _claims_of(self, model: str) -> Claims:
        # One object per model, which remembers when this process first saw each claim.
        return self._claims.setdefault(model, self.claims(model))

    def _check_errors(self, model: "Model") -> None:
        done = list(manifests(self.done(model.name)))
        errors = sum(manifest.errors for manifest in done)
        units = sum(manifest.units for manifest in done)
        prompts = sum(manifest.prompts for manifest in done)
        if errors * prompts > self.fail_on_error * len(self.prompts) * units:
            example = next(manifest.example for manifest in done if manifest.errors)
            from interp.measuring.core import explained  # imports torch

            self.tell("explain", error=example or "")
            example = explained(example or "", model, self.prompts[:1])
            total = round(len(self.prompts) * units / prompts)
            raise UserError(
                f"{errors:,} of {counted(total, 'prompt' if units == prompts else 'pair')} of "
                f"{model.name} failed; --fail-on-error allows a share of up to "
                f"{self.fail_on_error:g}. "
                f"One error: {example}. If the cause is not in the data, fix it and add "
                "--retry-errors; changed data require a new run in another --out. Otherwise, "
                "allow a larger share"
            )

    def _write_prompts(self) -> None:
        schema = prompts_table(pa.Table.from_pylist([dict(self.prompts.columns())]).schema)
        parts = (
            pa.Table.from_pylist(list(self.prompts[start : start + _ROWS].rows()), schema=schema)
            for start in range(0, len(self.prompts), _ROWS)
        )
        file = files.inside(self.folder, PROMPTS)
        write_parquet(file, schema, parts)
        self.record = records.updated(
            self.record, {"files": {**self.record.files, PROMPTS: files.checksum(file)}}
        )


@contextmanager
def in_use(run: Run) -> Iterator[None]:
    """While the block runs, prevent other commands from reusing the folder for another run.

    Raises:
        UserError: another command has just reused the folder for its own run.
    """
    with files.locked(run.folder, IN_USE, shared=True):
        with files.locked(run.folder, RECORD_LOCK):
            recorded = RunFolder.read(run.folder).record.run
        if recorded != run.record.run:
            raise UserError(_taken(run.folder, recorded))
        yield


def check_free(folder: Path, identity: records.RunIdentity) -> None:
    """Reject a folder in which another run is being measured."""
    record = records.read_record(files.inside(folder, RECORD), records.RunRecord)
    if record is None or record.run == identity:
        return
    with files.locked(folder, IN_USE, wait=False) as free:
        if not free:
            raise UserError(_taken(folder, record.run))


def _taken(folder: Path, run: records.RunIdentity) -> str:
    return (
        f"another command is measuring in {folder}: {run.measurement} on "
        f"{counted(run.prompts, 'prompt')}; wait until it has ended, or use another --out"
    )


def take_folder(folder: Path, record: str) -> list[Path]:
    """Create a folder for results; an existing folder must be empty or contain the named record.

    Returns:
        The folders that were created, innermost first.

    Raises:
        UserError: the folder contains other files, or cannot be created.
    """
    with files.writing(folder):
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        if made:
            folder.mkdir(parents=True, exist_ok=True)
    check_takes(folder, record)
    return made


def check_takes(folder: Path, record: str) -> None:
    """Reject an existing folder that neither is empty nor contains the named record."""
    with files.writing(folder):
        # Dotfiles are locks or temporary files of a running or killed process.
        is_file = folder.exists() and not folder.is_dir()
        inside = folder.iterdir() if folder.is_dir() else ()
        taken = is_file or any(not path.name.startswith(".") for path in inside)
        if taken and not (folder / record).exists():
            raise UserError(
                f"{folder} exists and is not a run folder (it has no {record}); use an empty or "
                "new folder as --out"
            )


def _known(folder: Path) -> dict[str, int]:
    with suppress(UserError):  # the file is only an optimization
        record = records.read_record(files.inside(folder, records.MEMORY), records.Memory)
        return record.tokens if record else {}
    return {}


def _key(measurement: "Measurement") -> str:
    import torch

    device = measurement.model.device
    kind = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return f"{measurement.model.name} on {kind}"
