"""A loaded model: an unmodified Hugging Face causal language model and what is known about it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from interp.errors import UserError
from interp.models.architectures import Architecture, architecture_of
from interp.models.chat_format import ChatFormat
from interp.models.chat_template import ChatFrame, chat_frame
from interp.models.placement import device_of, weights_of
from interp.models.quantization import quantization_of


@dataclass(frozen=True)
class Model:
    """A causal language model with its tokenizer, which everything in the toolkit measures.

    Wrap a model that is already in memory by `Model(name, hf, tokenizer)`.

    Raises:
        UserError: the tokenizer gives no character offsets, or the architecture is not understood.
    """

    name: str
    """What tables call the model."""
    hf: PreTrainedModel
    """The model itself, untouched."""
    tokenizer: PreTrainedTokenizerBase
    """A fast tokenizer: segments are found by its character offsets."""
    source: dict[str, str] = field(default_factory=dict)
    """Where it came from: hub name or folder, revision."""
    chat: ChatFormat = field(default_factory=ChatFormat)
    """Whether and how its chat template writes prompts."""
    architecture: Architecture = field(init=False)

    def __post_init__(self) -> None:
        if not self.tokenizer.is_fast:
            raise UserError(
                f"the tokenizer of {self.name} ({type(self.tokenizer).__name__}) gives no "
                "character offsets, which segments are found by; load the model with a fast "
                "tokenizer (tokenizer.json)"
            )
        object.__setattr__(self, "architecture", architecture_of(self.hf))

    @property
    def device(self) -> torch.device:
        """Where inputs go: the device of the input embeddings."""
        return device_of(self.hf.get_input_embeddings())

    @property
    def dtype(self) -> str:
        """Name of the parameters' type, such as "float32"."""
        return str(self.hf.dtype).removeprefix("torch.")

    @property
    def quantization(self) -> str | None:
        """How the weights are quantized, such as "bitsandbytes 4bit nf4"; None where they are not.

        The input gradient passes through quantized layers as if each were the linear map that its
        rounded weights make.
        """
        return quantization_of(self.hf.config)

    @property
    def attn_implementation(self) -> str:
        """How attention is computed: "sdpa", "eager", "flash_attention_2" ..."""
        return str(self.hf.config._attn_implementation)

    @property
    def allows_padding(self) -> bool:
        """Whether prompts of different lengths may share a batch.

        transformers' eager attention takes its softmax in float32, where the float64 mask of a
        padding row overflows to NaN.
        """
        return not (self.dtype == "float64" and self.attn_implementation == "eager")

    @property
    def context_length(self) -> int | None:
        """The longest prompt in tokens; None where the configuration does not say."""
        return getattr(self.hf.config, "max_position_embeddings", None)

    @property
    def unembedding(self) -> nn.Module:
        """The module that turns the output of the final norm into logits, before any soft cap."""
        # transformers gives this function no types.
        return self.hf.get_output_embeddings()  # type: ignore[no-untyped-call, no-any-return]

    @property
    def logit_soft_cap(self) -> float | None:
        """C where logits x become c tanh(x / c), as in Gemma-2; None where they stay."""
        return getattr(self.hf.config.get_text_config(), "final_logit_softcapping", None)

    @cached_property
    def chat_frame(self) -> ChatFrame:
        """What stands around every message that the model reads.

        Raises:
            UserError: the chat template cannot write messages, see `chat_template.chat_frame`.
        """
        return chat_frame(self.tokenizer, self.chat)

    @cached_property
    def identity(self) -> str:
        """What the measured numbers depend on: a hash over weights, configuration and tokenizer.

        A model from the hub is identified by its commit instead, which names the same content.
        """
        if "commit" in self.source:
            return f"{self.source['name']}@{self.source['commit']}"
        digest = hashlib.sha256()
        digest.update(self.hf.config.to_json_string(use_diff=True).encode())
        digest.update(str(self.tokenizer.chat_template).encode())
        digest.update(self.tokenizer.backend_tokenizer.to_str().encode())
        for name, tensor in weights_of(self.hf):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Within the block: evaluation mode, and parameters that need no gradient."""
        training = self.hf.training
        trainable = [p for p in self.hf.parameters() if p.requires_grad]
        self.hf.train(False)
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            self.hf.train(training)
            for parameter in trainable:
                parameter.requires_grad_(True)
