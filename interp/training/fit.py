"""One training run with Hugging Face's Trainer: ordered batches, progress and resumption."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    PreTrainedModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from transformers.utils import logging as transformers_logging

from interp.console import Progress
from interp.errors import UserError, shortened
from interp.reading.budget import is_out_of_memory
from interp.training.folder import keep, last_whole, take, workplace

Batch = Mapping[str, Any]
"""The batch of one step: tensors by name, or mappings of tensors."""

Loss = Callable[[PreTrainedModel, Any], Tensor]
"""The mean loss of a batch on the model's device, in nats."""


def fit(
    model: nn.Module,
    batches: Dataset[Batch],
    loss: Loss,
    folder: Path,
    *,
    title: str,
    **arguments: Any,
) -> None:
    """Train a model in place, one batch per step, from the last checkpoint if there is one.

    The model, from transformers or wrapped by peft, is in fp32. The folder has Trainer's
    checkpoints until `remove_checkpoints` is called; `title` is that of the progress display, and
    `arguments` are those of transformers' `TrainingArguments`, such as learning_rate.

    Raises:
        UserError: the folder contains another program's checkpoints, or a checkpoint from which
            training cannot resume.
    """
    steps = len(batches)  # type: ignore[arg-type]  # Dataset does not declare its length
    take(folder)
    done, last = last_whole(folder) or (0, None)
    with (
        workplace(folder) as place,
        Progress(title, total=steps, done=done, unit="steps") as progress,
    ):
        kept = _Kept(folder, done)
        trainer = _Trainer(
            loss,
            model=model,
            args=_settings(place, max_steps=steps, **arguments),
            train_dataset=batches,
            callbacks=[_Shown(progress), kept],
        )
        trainer.remove_callback(PrinterCallback)
        try:
            trainer.train(resume_from_checkpoint=None if last is None else str(last))
        except Exception as error:
            # Whether memory or a disk is the cause, and not the content of the checkpoint.
            of_machine = isinstance(error, OSError | MemoryError) or (
                isinstance(error, RuntimeError) and is_out_of_memory(error)
            )
            if last is None or kept.began or of_machine:
                raise
            raise UserError(
                f"{last} cannot be resumed: {shortened(' '.join(repr(error).split()), 300)}. "
                "Remove it to resume from the checkpoint before it"
            ) from error


def _settings(place: Path, **arguments: Any) -> TrainingArguments:
    # The progress bars of transformers, one per checkpoint, would disturb the progress shown here.
    # transformers does not annotate this function.
    transformers_logging.disable_progress_bar()
    settings = TrainingArguments(
        output_dir=str(place),
        per_device_train_batch_size=1,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
        **arguments,
    )
    if settings.n_gpu > 1:
        settings._n_gpu = 1  # several GPUs would each receive part of a step's batch
    return settings


class _Trainer(Trainer):
    """A Trainer whose data set contains whole batches, and whose loss is a given function."""

    def __init__(self, loss: Loss, **arguments: Any) -> None:
        super().__init__(data_collator=lambda batches: batches[0], **arguments)
        self._loss = loss

    def compute_loss(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Tensor:
        return self._loss(model, inputs)

    def floating_point_ops(self, inputs: Any) -> int:
        """Return zero instead of counting operations, since batches have several parts."""
        return 0


class _Kept(TrainerCallback):
    """A callback that moves checkpoints into place, and restores only the step from them."""

    def __init__(self, folder: Path, done: int) -> None:
        self._folder = folder
        self._done = done
        self.began = False
        """Whether a step has begun, after which no checkpoint is read."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        """Rebuild Trainer's state, keeping only the step read from the checkpoint."""
        if state.global_step != self._done:
            raise ValueError(
                f"its name refers to step {self._done}, but its state to step {state.global_step}"
            )
        made = TrainerState(
            global_step=state.global_step,
            max_steps=args.max_steps,
            num_train_epochs=state.num_train_epochs,
            train_batch_size=args.train_batch_size,
            # The annotation asks for callbacks, but any object that has a state is accepted.
            stateful_callbacks=[control],  # type: ignore[list-item]
        )
        # transformers does not annotate this function.
        made.compute_steps(args, args.max_steps)
        vars(state).update(vars(made))

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        keep(Path(str(args.output_dir)) / f"checkpoint-{state.global_step}", self._folder)


class _Shown(TrainerCallback):
    """Show progress on the terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._note = ""

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._progress.advance(1, note=self._note)
        self._note = ""

    def on_log(self, *_: Any, logs: Mapping[str, float] | None = None, **__: Any) -> None:
        if logs and "loss" in logs:
            self._note = f"loss {float(logs['loss']):.3f}"
