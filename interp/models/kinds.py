"""Kinds of models: how they read a prompt and where they give an answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Kind:
    """The properties that all models of one kind share."""

    name: str
    auto: Any
    """The transformers class that loads most models of this kind."""
    reads_ahead: bool
    """Whether tokens attend to later tokens. If so, prompts with the same beginning share no
    states."""

    def auto_for(self, config: PreTrainedConfig) -> Any:
        """The transformers class that loads a model of this kind with this configuration.

        Some causal models that also read images, such as Qwen2.5-VL, have no class for text alone.

        Raises:
            UserError: transformers has no class for models of this type.
        """
        classes = [self.auto, *[AutoModelForImageTextToText] * (not self.reads_ahead)]
        for auto in classes:
            if type(config) in auto._model_mapping or hasattr(config, "auto_map"):
                return auto
        raise UserError(
            f"transformers has no {self.name} of the type {config.model_type!r}; expected one that "
            "answers texts, such as the language model that it is made of, saved by itself"
        )


CAUSAL = Kind("causal language model", AutoModelForCausalLM, reads_ahead=False)
CLASSIFIER = Kind("sequence classifier", AutoModelForSequenceClassification, reads_ahead=True)
TEXT_TO_TEXT = Kind("text-to-text model", AutoModelForSeq2SeqLM, reads_ahead=True)


def kind_of(config: PreTrainedConfig, architectures: Sequence[str]) -> Kind:
    """The kind of a model, from its class names or, failing that, from its configuration.

    The class names of causal models that also read images end in ForConditionalGeneration, like
    those of text-to-text models.

    Raises:
        UserError: the model has no head that can give an answer; masked language models have none.
    """
    if any(name.endswith("ForSequenceClassification") for name in architectures):
        return CLASSIFIER
    headless = architectures and all(n.endswith("Model") and "Head" not in n for n in architectures)
    encodes = getattr(config, "model_type", "") in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    problems = {
        "fills masks and cannot answer": any(n.endswith("ForMaskedLM") for n in architectures),
        "writes text by diffusion, so no position has its answer": any(
            "Diffusion" in n for n in architectures
        ),
        "has no head and cannot answer": headless and encodes,
    }
    for problem, holds in problems.items():
        if holds:
            raise UserError(
                f"{', '.join(architectures)} {problem}; expected a causal language model, a "
                "sequence classifier or a text-to-text model"
            )
    kind = TEXT_TO_TEXT if getattr(config, "is_encoder_decoder", False) else CAUSAL
    maps = AutoModelForImageTextToText._model_mapping, AutoModelForSeq2SeqLM._model_mapping
    of_images, of_text = (type(config) in mapping for mapping in maps)
    if kind is TEXT_TO_TEXT and of_images and not of_text:
        raise UserError(
            f"{', '.join(architectures) or config.model_type} writes about an image that its "
            "encoder reads, so a text alone has no answer; expected a model of text"
        )
    return kind
