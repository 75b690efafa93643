"""README.md for a trained model: a model card, written from the record of its training."""

from pathlib import Path

from interp.models.architectures import CLASSIFIER
from interp.models.model import Model
from interp.options import flag
from interp.report.cards import Rows, card, facts, plain
from interp.training.folder import TrainRecord
from interp.training.spec import TrainSpec

README = "README.md"

LIMITS = (
    "The scores are for held-out prompts of the same task, and say nothing about other texts. "
    "The license of the base model and of the data applies: add it to this card before you publish "
    "the model."
)


def model_card(record: TrainRecord, spec: TrainSpec, model: Model, *, name: str) -> str:
    """A trained model's card.

    Args:
        record: the record of the finished training.
        spec: the task.
        model: the trained model.
        name: name of the model's folder.
    """
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
        f"{begun}. {record.parameters:,} parameters, {record.steps:,} steps, "
        f"{training.lessons:,} prompts.",
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
