"""Model kinds: how a prompt is read and what the answer is read from, by the class of the model.

1. A **causal** language model reads the prompt through its chat template, and its answer is the
   token that follows.
2. A **classifier** is an encoder with a head on one pooled token: its answer is a class.
3. A **text-to-text** model reads the prompt by its encoder; its answer is what its decoder writes
   first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
)

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Kind:
    """What all models of a kind have in common."""

    name: str
    auto: Any
    """The class of transformers that loads them."""
    reads_ahead: bool
    """Whether a token sees those after it, so that what two prompts begin with is not the same to
    the model."""


CAUSAL = Kind("causal language model", AutoModelForCausalLM, reads_ahead=False)
CLASSIFIER = Kind("sequence classifier", AutoModelForSequenceClassification, reads_ahead=True)
TEXT_TO_TEXT = Kind("text-to-text model", AutoModelForSeq2SeqLM, reads_ahead=True)


def kind_of(config: PreTrainedConfig, architectures: Sequence[str]) -> Kind:
    """The kind of a model, by the names of its classes and, for the rest, its configuration.

    Models that read images besides are called ...ForConditionalGeneration too, and are causal.

    Raises:
        UserError: a model without a head that answers, such as a masked language model.
    """
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return CLASSIFIER
    if any(name.endswith("ForMaskedLM") for name in architectures):
        raise UserError(
            f"{', '.join(architectures)} fills masks and answers nothing; expected a causal "
            "language model, a sequence classifier or a text-to-text model"
        )
    return TEXT_TO_TEXT if getattr(config, "is_encoder_decoder", False) else CAUSAL
