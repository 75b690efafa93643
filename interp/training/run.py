"""A training run, whose folder contains checkpoints and, at the end, an ordinary model."""

import hashlib
import json
import random
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from secrets import token_hex

from torch import nn

from interp.console import counted, echo
from interp.errors import UserError
from interp.files import inside, locked, names_in, unfinished_name, write_whole, writing
from interp.measuring.core import bind, collect
from interp.models.adapters import SETTINGS, low_rank, save_adapter
from interp.models.kinds import CLASSIFIER, TEXT_TO_TEXT
from interp.models.load import set_threads
from interp.models.loading import Loading
from interp.models.model import Model
from interp.options import flag
from interp.reading.budget import is_out_of_memory
from interp.report.cards import Rows, card, facts, plain
from interp.runs.identity import code_version
from interp.runs.records import Call, now, peak_memory, read_record, updated, versions, write_record
from interp.runs.run import take_folder
from interp.training.fit import fit
from interp.training.folder import (
    RECORD,
    TrainIdentity,
    TrainRecord,
    check_same_training,
    remove_checkpoints,
)
from interp.training.lessons import Estimate, Lessons, Steps, estimate, read_lessons
from interp.training.spec import HELD_OUT, SETTLED, CheckpointOptions, TrainSpec
from interp.training.start import check_low_rank, start

FROM_SCRATCH_RATE = 1e-3
WRITING_RATE = 1e-4
RATE = 1e-5
LORA_RATE = 2e-4
"""Default learning rates, from Sanyal et al. (2022) for T5 and RoBERTa, and from Dettmers et al.
(2023) for adapters.
"""

EPSILON = 1e-6
EPSILON_FROM_SCRATCH = 1e-8
"""AdamW's epsilon: the value of Sanyal et al. (2022) for checkpoints, and the usual value for
training from scratch, because a small T5 trained with 1e-6 did not learn to tell True from False.
"""


SAMPLE = 1000
"""Largest number of prompts, drawn at random, from which the cost is estimated."""

README = "README.md"
"""The card of a trained model."""

LIMITS = (
    "The scores are for held-out prompts of the same task, and say nothing about other texts. "
    "The license of the base model and of the data applies: add it to this card before you publish "
    "the model."
)


class Training:
    """A prepared training run, whose model has been found."""

    def __init__(self, spec: TrainSpec, model: str, loading: Loading) -> None:
        """Find the model; the training set is read when it is needed."""
        _check_loading(loading)
        loading = loading.model_copy(update={"dtype": "float32"})
        self.spec = spec
        self._prompts = spec.prompts("train")
        self.start = start(
            model, loading, from_scratch=spec.from_scratch, seed=spec.seed, prompts=self._prompts
        )
        self._outline = self.start.outline()
        if spec.lora_rank is not None:
            check_low_rank(self.start)
            low_rank(self._outline.hf, spec.lora_rank, seed=spec.seed)

    @cached_property
    def lessons(self) -> Lessons:
        """The training set in the model's tokens."""
        return read_lessons(self._outline, self.spec, self._prompts)

    def estimate(self) -> Estimate:
        """What the run would cost, from at most `SAMPLE` prompts; writes nothing."""
        total = len(self._prompts)
        drawn = random.Random("estimate").sample(range(total), min(total, SAMPLE))
        sample = read_lessons(
            self._outline, self.spec, [self._prompts[place] for place in sorted(drawn)]
        )
        return estimate(self._outline, self.spec, sample, total)

    def identity(self) -> TrainIdentity:
        """Everything that the weights depend on."""
        return TrainIdentity.model_validate(
            {
                "task": self.spec.name,
                "options": self.spec.as_json(),
                "model": self.start.name,
                "origin": json.loads(json.dumps(dict(self.start.origin), default=str)),
                "lessons": len(self.lessons.lessons),
                "data": self.lessons.digest(),
                "code": code_version((type(self.spec).__module__, __name__)),
            }
        )

    def run(self, kept: CheckpointOptions, *, command: str | None = None) -> TrainRecord:
        """Train, or resume an interrupted run, and return the finished record.

        Raises:
            UserError: the folder contains something else or is not writable, or another process is
                training in it.
        """
        identity = self.identity()
        folder = kept.out or _default_folder(identity)
        earlier = _earlier(folder, identity)
        if earlier is not None and earlier.finished:
            echo(f"{folder} already holds this model, trained {earlier.finished}")
            return earlier
        model = self.start.model()
        take_folder(folder, RECORD)
        with locked(folder, "training", wait=False) as mine:
            if not mine:
                raise UserError(f"another process is training in {folder}; wait for it, or stop it")
            with writing(folder):
                began = time.monotonic(), time.process_time()
                set_threads(model, kept.threads)
                steps = Steps(model, self.spec, self.lessons.lessons)
                call = Call(
                    id=token_hex(6),
                    command=command,
                    models=[identity.model],
                    started=now(),
                    versions=versions(),
                )
                earlier = _earlier(folder, identity)
                record = TrainRecord(
                    training=identity,
                    too_long=self.lessons.too_long,
                    steps=len(steps),
                    parameters=model.hf.num_parameters(),
                    history=[*(earlier.history if earlier else ()), call],
                )
                write_record(inside(folder, RECORD), record)
                self._learn(model, steps, folder, kept)
                trained = Model(str(folder), model.hf, model.tokenizer, chat=model.chat)
                record = self._finished(folder, record, trained, began)
                remove_checkpoints(folder)
                return record

    def _learn(self, model: Model, steps: Steps, folder: Path, kept: CheckpointOptions) -> None:
        if self.lessons.too_long:
            echo(f"omitted, too long for the model: {counted(self.lessons.too_long, 'prompt')}")
        if model.kind is CLASSIFIER:
            # Else transformers sets it in a step, so not in a run that was killed after its last.
            model.hf.config.problem_type = "single_label_classification"
        if self.spec.lora_rank is None:
            self._fit(model, model.hf, steps, folder, kept)
            save_folder(folder, model, model.hf.save_pretrained, last="config.json")
            return
        wrapped = low_rank(model.hf, self.spec.lora_rank, seed=self.spec.seed)
        self._fit(model, wrapped, steps, folder, kept)
        base = self.start.base()
        save_folder(folder, model, lambda place: save_adapter(wrapped, place, base), last=SETTINGS)
        wrapped.merge_and_unload()

    def _fit(
        self, model: Model, learner: nn.Module, steps: Steps, folder: Path, kept: CheckpointOptions
    ) -> None:
        try:
            fit(
                learner,
                steps,
                lambda hf, batch: hf(**batch).loss,
                folder,
                title=f"train {self.spec.name}",
                use_cpu=model.device.type == "cpu",
                seed=self.spec.seed,
                learning_rate=self.spec.learning_rate or self._default_rate(model),
                lr_scheduler_type="linear",
                warmup_steps=round(self.spec.warmup * len(steps)),
                weight_decay=self.spec.weight_decay,
                adam_beta2=0.98,
                adam_epsilon=EPSILON_FROM_SCRATCH if self.spec.from_scratch else EPSILON,
                logging_steps=50,
                save_steps=kept.checkpoint_steps,
            )
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(
                f"a step with {self.spec.batch} prompts does not fit into the memory of "
                f"{model.device}; use a smaller --batch (--dry-run estimates the memory of a step)"
            ) from error

    def _default_rate(self, model: Model) -> float:
        if self.spec.from_scratch:
            return FROM_SCRATCH_RATE
        if self.spec.lora_rank is not None:
            return LORA_RATE
        return WRITING_RATE if model.kind is TEXT_TO_TEXT else RATE

    def _finished(
        self, folder: Path, record: TrainRecord, model: Model, began: tuple[float, float]
    ) -> TrainRecord:
        seconds = {
            "wall-clock": round(time.monotonic() - began[0], 1),
            "processor": round(time.process_time() - began[1], 1),
        }
        metrics = {}
        for split in HELD_OUT:
            echo(f"measure the split {split}")
            prompts, measured = self.spec.prompts(split), self.spec.scored_by()
            tables = collect(bind(measured, model), measured.arranged(prompts))
            metrics[split] = self.spec.metrics(prompts, tables)
        last = record.history[-1]
        finished = now()
        done = updated(last, {"finished": finished, "peak_memory_bytes": peak_memory()})
        record = updated(
            record,
            {
                "history": [*record.history[:-1], done],
                "finished": finished,
                "seconds": seconds,
                "metrics": metrics,
            },
        )
        text = _model_card(record, self.spec, model, name=folder.resolve().name)
        write_whole(inside(folder, README), partial(Path.write_text, data=text, encoding="utf-8"))
        write_record(inside(folder, RECORD), record)
        return record


def save_folder(folder: Path, model: Model, save: Callable[[Path], object], *, last: str) -> None:
    """Save weights and tokenizer as a folder that every command accepts as --model.

    `save` saves everything but the tokenizer into an empty folder. The file `last` makes the folder
    a model folder, and is therefore moved there last.
    """
    with writing(folder):
        unfinished = unfinished_name(folder / "model")
        unfinished.mkdir()
        save(unfinished)
        model.tokenizer.save_pretrained(unfinished)
        for name in sorted(names_in(unfinished), key=lambda name: name == last):
            (unfinished / name).replace(inside(folder, name))
        unfinished.rmdir()


def _earlier(folder: Path, identity: TrainIdentity) -> TrainRecord | None:
    """The record in a folder, which must belong to this run; None if there is no record."""
    earlier = read_record(inside(folder, RECORD), TrainRecord)
    if earlier is not None:
        check_same_training(folder, earlier.training, identity)
    return earlier


def _default_folder(identity: TrainIdentity) -> Path:
    """The default folder in models/, named after the task and a hash of all settings."""
    digest = hashlib.sha256(identity.model_dump_json().encode()).hexdigest()[:8]
    return Path("models") / f"{identity.task}-{digest}"


def _check_loading(loading: Loading) -> None:
    """Reject options that load weights in a type other than fp32 or on several devices."""
    for name in SETTLED:
        if getattr(loading, name) != Loading.model_fields[name].default:
            raise UserError(f"training uses fp32 on one device; omit {name}")
    if ":" in (loading.device or ""):
        raise UserError(
            f"got the device {loading.device}, but training uses the first visible GPU; use "
            "cuda, and select a GPU by CUDA_VISIBLE_DEVICES"
        )


def _model_card(record: TrainRecord, spec: TrainSpec, model: Model, *, name: str) -> str:
    """The card of a trained model, whose folder has this name."""
    training = record.training
    base, from_hub = training.model, training.origin.get("kind") == "hub"
    shown = base if from_hub or training.origin.get("kind") == "organism" else Path(base).name
    adapter = spec.lora_rank is not None
    classifies = model.kind is CLASSIFIER
    metadata = {
        "library_name": "peft" if adapter else "transformers",
        **({"base_model": base} if from_hub else {}),
        "pipeline_tag": "text-classification" if classifies else "text-generation",
        "tags": ["interp", training.task],
    }
    made = "A LoRA adapter for" if adapter else "Made from"
    begun = ", from random weights" if spec.from_scratch else ""
    last = record.history[-1]
    parts: dict[str, str | Rows] = {
        "": f"{made} {plain(shown)}, a {model.kind.name}, trained on the task {training.task}"
        f"{begun}. {record.parameters:,} parameters, {counted(record.steps, 'step')}, "
        f"{counted(training.lessons, 'prompt')}.",
        "Use": "`python -m interp doctor --model DIR`, with the folder of this file, shows how the "
        "model reads prompts; every command of interp takes the folder as `--model`.",
        "Training": [
            {
                "option": flag(option),
                "value": value,
                "meaning": type(spec).model_fields[option].description or "",
            }
            for option, value in training.options.items()
        ],
        "Scores on held-out prompts": list(facts(dict(record.metrics))),
        "Provenance": list(
            facts(
                {
                    "finished": record.finished,
                    "seconds": dict(record.seconds),
                    "versions": dict(last.versions),
                    "prompts too long for the model, omitted": record.too_long,
                    "hash of prompts and answers": training.data,
                    "hash of the code": training.code,
                }
            )
        ),
        "Limits": LIMITS,
    }
    return card(metadata, name, parts)
