"""Training specs: the data and options for training any model, which `interp.training.run` does."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from interp import texts
from interp.options import FromText, Options
from interp.plugins import TRAINING, load_plugin

if TYPE_CHECKING:
    import pandas as pd

    from interp.measuring.spec import Spec
    from interp.prompts.prompt import Prompt

Split = Literal["train", "dev", "test"]

HELD_OUT: tuple[Split, ...] = ("dev", "test")
"""Splits on which a trained model is evaluated."""

SETTLED = ("dtype", "device_map", "tensor_parallel", "quantization", "dequantize")
"""Loading options that cannot be chosen for training, which uses fp32 on one device."""

MOST_EPOCHS = 10_000
MOST_IN_BATCH = 100_000
MOST_RANK = 4096

Share = Annotated[float, Field(ge=0, le=1), FromText(texts.share, "SHARE")]
Number = Annotated[float, Field(gt=0, lt=100), FromText(texts.number, "NUMBER")]


class TrainSpec(Options, ABC):
    """A training task: its prompts, and how a model is trained on their answers.

    A subclass sets `name`, defines `prompts`, adds its own options as fields, and is registered
    under the entry point group `interp.training`.
    """

    name: ClassVar[str]

    from_scratch: bool = False
    """start from random weights: the model is a folder with config.json and a tokenizer, a name on
    the hub, or small-encoder, small-text-to-text or small-decoder, whose tokenizer is trained on
    the training set
    """
    lora_rank: Annotated[int, Field(ge=1, le=MOST_RANK)] | None = None
    """train a LoRA adapter of this rank on all linear layers, with peft, and save only the adapter
    (default: all weights are trained)"""
    epochs: Annotated[int, Field(ge=1, le=MOST_EPOCHS)] = 4
    """number of times that each prompt is used"""
    curriculum: Share | None = None
    """in the first epoch, train on groups of short prompts before groups of long prompts (Bengio et
    al. 2009), after each group's length is increased at random by up to this share: 0 is strict,
    0.5 mixes similar lengths. Without this, a small model from scratch may learn nothing from long
    prompts
    """
    batch: Annotated[int, Field(ge=1, le=MOST_IN_BATCH)] = 8
    """prompts in a step"""
    learning_rate: Number | None = None
    """AdamW's largest learning rate (default: 1e-5; 1e-4 for text-to-text models, 2e-4 for
    adapters, 1e-3 from scratch)
    """
    warmup: Share = 0.1
    """share of the steps in which the learning rate rises before it falls linearly"""
    weight_decay: Annotated[float, Field(ge=0, lt=100), FromText(texts.number, "NUMBER")] = 0.01
    """AdamW's weight decay"""
    seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed of the data, their order, and random weights"""

    @abstractmethod
    def prompts(self, split: Split) -> "Sequence[Prompt]":
        """The prompts of a split; the model is trained on the correct answer to each."""

    def target(self, prompt: "Prompt") -> str:
        """The training text of a generative model: the first form of the correct answer."""
        answer = prompt.answer
        return next(o.forms[0] for o in answer.options if o.name == answer.gold)

    def scored_by(self) -> "Spec":
        """The measurement that scores a trained model on the held-out splits."""
        from interp.measurements.specs import Evaluate

        return Evaluate()

    def metrics(
        self, prompts: "Sequence[Prompt]", tables: "Mapping[str, pd.DataFrame]"
    ) -> dict[str, float]:
        """Scores of a held-out split, from the tables of its measurement.

        By default, accuracy, and F1 weighted by the frequency of the correct answers. A prompt that
        could not be measured has no answer, and counts as wrong.
        """
        import pandas as pd
        from sklearn.metrics import f1_score

        gold = pd.Series({prompt.id: prompt.answer.gold for prompt in prompts})
        answers = tables["answers"].set_index("prompt_id")["answer"]
        predicted = answers.reindex(gold.index).fillna("")
        weighted = f1_score(gold, predicted, average="weighted", zero_division=0.0)
        return {
            "prompts": float(len(gold)),
            "accuracy": float((gold == predicted).mean()),
            "weighted_f1": float(weighted),
        }


class CheckpointOptions(Options):
    """The folder of a training run, and settings of its process; no result depends on these."""

    out: Annotated[Path | None, FromText(texts.folder, "DIR")] = None
    """folder of the run, which becomes the model's folder; rerun the same command to resume
    (default: a folder in models/ named after task, model and options)
    """
    checkpoint_steps: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = 500
    """steps between two checkpoints, which is the most that a killed process loses"""
    threads: Annotated[int, Field(ge=1, le=texts.MOST_THREADS)] | None = None
    """threads on the CPU (default: one for small models, otherwise one per core or OMP_NUM_THREADS)
    """


def find_training(name: str) -> type[TrainSpec]:
    """The training task registered under a name."""
    spec: type[TrainSpec] = load_plugin(TRAINING, "training task", name, base=TrainSpec)
    return spec
