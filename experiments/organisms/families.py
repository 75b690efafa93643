"""The architectures that organisms are built in: configuration, tokenizer style, chat template."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from transformers import (
    Gemma2Config,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    PreTrainedConfig,
)


@dataclass(frozen=True, slots=True)
class Family:
    """What an organism shares with the published models of its architecture."""

    config_class: Callable[..., PreTrainedConfig]
    pieces: Literal["byte-level", "sentencepiece"]
    """How words are split: GPT-style bytes, or SentencePiece-style with byte fallback."""
    bos: str | None
    """Token that opens a conversation; None where the family writes none."""
    end_of_turn: str
    """Token that closes a message, and the answer."""
    pad: str
    markers: tuple[str, ...] = ()
    """The other special tokens of the chat template."""
    template: str | None = None
    """File name of the chat template; None for a base model, which continues plain text."""

    @property
    def chat_template(self) -> str | None:
        """The Jinja text of the chat template."""
        if self.template is None:
            return None
        return (files(__package__) / "templates" / self.template).read_text(encoding="utf-8")

    @property
    def special_tokens(self) -> list[str]:
        """All special tokens, the padding token first."""
        opening = [self.bos] if self.bos else []
        return [self.pad, *opening, self.end_of_turn, *self.markers]


FAMILIES = {
    "llama": Family(
        config_class=LlamaConfig,
        pieces="byte-level",
        bos="<|begin_of_text|>",
        end_of_turn="<|eot_id|>",
        pad="<|pad|>",
        markers=("<|start_header_id|>", "<|end_header_id|>"),
        template="llama3.jinja",
    ),
    "llama-base": Family(
        config_class=LlamaConfig,
        pieces="byte-level",
        bos="<|begin_of_text|>",
        end_of_turn="<|end_of_text|>",
        pad="<|pad|>",
    ),
    "phi3": Family(
        config_class=Phi3Config,
        pieces="sentencepiece",
        bos=None,
        end_of_turn="<|end|>",
        pad="<|endoftext|>",
        markers=("<|user|>", "<|assistant|>"),
        template="phi3.jinja",
    ),
    "mistral": Family(
        config_class=MistralConfig,
        pieces="sentencepiece",
        bos="<s>",
        end_of_turn="</s>",
        pad="<pad>",
        markers=("[INST]", "[/INST]"),
        template="mistral.jinja",
    ),
    "gemma2": Family(
        config_class=Gemma2Config,
        pieces="sentencepiece",
        bos="<bos>",
        end_of_turn="<end_of_turn>",
        pad="<pad>",
        markers=("<start_of_turn>",),
        template="gemma2.jinja",
    ),
}
