"""One training run by Hugging Face's Trainer: batches in a given order, progress, resume."""

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
from interp.training.checkpoints import declare_whole, last_whole, remove_checkpoints, take

Batch = Mapping[str, Any]
"""What a step learns: tensors by name, or mappings of them."""

Loss = Callable[[PreTrainedModel, Any], Tensor]
"""The mean loss of a batch that lies on the model's device, in nats."""


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

    Args:
        model: what is trained, in fp32: a model of transformers, or one that peft has wrapped.
        batches: the batch of each step; taken in this order, as many as there are steps.
        loss: what is minimized.
        folder: holds Trainer's checkpoints; `checkpoints.remove_checkpoints` ends it.
        title: what the progress is called.
        arguments: those of transformers' `TrainingArguments`, such as learning_rate, save_steps,
            use_cpu.

    Raises:
        UserError: the folder holds checkpoints that another program wrote.
    """
    steps = len(batches)  # type: ignore[arg-type]  # Dataset does not say that it has a length
    # Its bars, one for each checkpoint, would run into the progress that is shown here.
    # transformers gives this function no types.
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    settings = TrainingArguments(
        output_dir=str(folder),
        max_steps=steps,
        per_device_train_batch_size=1,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
        **arguments,
    )
    if settings.n_gpu > 1:
        settings._n_gpu = 1  # more would each get a part of a step's batch
    take(folder)
    done, last = last_whole(folder) or (0, None)
    with Progress(title, total=steps, done=done, unit="steps") as progress:
        trainer = _Trainer(model, settings, loss, batches, [_Shown(progress), _Declared()])
        trainer.remove_callback(PrinterCallback)
        trainer.train(resume_from_checkpoint=None if last is None else str(last))


class _Trainer(Trainer):
    """A Trainer whose data set holds whole batches, and whose loss is a function."""

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingArguments,
        loss: Loss,
        batches: Dataset[Batch],
        callbacks: list[TrainerCallback],
    ) -> None:
        super().__init__(
            model=model,
            args=settings,
            train_dataset=batches,
            data_collator=lambda whole: whole[0],
            callbacks=callbacks,
        )
        self._loss = loss

    def compute_loss(
        self,
        model: Any,
        inputs: Any,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        return self._loss(model, inputs)

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted: batches have several parts."""
        return 0


class _Declared(TrainerCallback):
    """A checkpoint counts once it is written; the one before stays until then."""

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        folder = Path(str(args.output_dir))
        declare_whole(folder / f"checkpoint-{state.global_step}")
        remove_checkpoints(folder, but=state.global_step)


class _Shown(TrainerCallback):
    """Progress, in the terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._note = ""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> None:
        self._progress.advance(1, note=self._note)
        self._note = ""

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: Any,
    ) -> None:
        if logs and "loss" in logs:
            self._note = f"loss {float(logs['loss']):.3f}"
