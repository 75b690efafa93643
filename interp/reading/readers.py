"""Readers: from a batch of prompts to the logits of their answers, one reader per model kind.

Model kinds differ in three ways in how prompts become batches (chat template, end of the text, side
of the padding), which `tokens.py` takes from the model. The only other difference is the forward
pass, which only a reader runs.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.cache_utils import Cache

from interp.errors import UserError
from interp.models.architectures import CLASSIFIER, TEXT_TO_TEXT
from interp.models.cache import KeyValues, empty, flattened
from interp.models.model import Model
from interp.models.weights import weights_of
from interp.reading.outputs import class_names, decoder_prefix
from interp.reading.tokens import Batch, TokenizedPrompt, pad

Embeddings = Float[Tensor, "row token size"]
AnswerLogits = Float[Tensor, "row answer"]
"""One logit for each token of the vocabulary, or for each class, in fp32."""


@runtime_checkable
class Reader(Protocol):
    """The interface of a model of any kind for scores and attributions.

    Use it within `model.measuring()`.
    """

    def embed(self, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
        """The input embeddings of tokens, as the model scales them, without a gradient."""

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The model's logits at the position of each prompt's answer, by one forward pass.

        Args:
            batch: the prompts.
            embeddings: input embeddings to read in place of the batch's tokens; a batch of one
                prompt may be given many rows of them.
            past: keys and values of the batch's first columns, which are not read again.

        Raises:
            UserError: embeddings were given to a model that reads only tokens.
        """

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """The tokens, or classes, at these indices into the answer logits.

        None for an index beyond the tokenizer's tokens.
        """


def reader_of(model: Model) -> Reader:
    """The reader of a model."""
    if model.kind is CLASSIFIER:
        return ClassifierReader(model)
    return TextToTextReader(model) if model.kind is TEXT_TO_TEXT else CausalReader(model)


@dataclass(frozen=True, slots=True)
class CausalReader:
    """A causal language model: the answer is the token after the prompt."""

    model: Model

    def embed(self, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
        """See `Reader`."""
        return _embedded(self.model.hf.get_input_embeddings(), token_ids)

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The next-token logits of the last position, the only ones kept."""
        return self.last_logits(batch, 1, embeddings=embeddings, past=past)[:, -1]

    def last_logits(
        self,
        batch: Batch,
        count: int,
        *,
        embeddings: Embeddings | None = None,
        past: Cache | None = None,
    ) -> Float[Tensor, "row position vocabulary"]:
        """The next-token logits of the last `count` positions; see `answer_logits`."""
        start = 0 if past is None else past.get_seq_length()
        rows = len(batch.token_ids) if embeddings is None else len(embeddings)
        inputs = {
            **_input(self.model, batch.token_ids[:, start:], embeddings),
            "attention_mask": batch.attention_mask.expand(rows, -1),
            "position_ids": batch.position_ids[:, start:].expand(rows, -1),
            "past_key_values": past,
            "use_cache": past is not None,
            "logits_to_keep": count,
        }
        logits: Tensor = self.model.hf(**self.model.taken(inputs)).logits
        return logits[:, -count:].float()

    def read_prefixes(self, token_ids: Int[Tensor, "family prefix"]) -> KeyValues:
        """Keys and values of each layer, (family x prefix, key-value head, size).

        Prefixes are padded on the right, where no earlier token attends to the padding, so no mask
        is needed.
        """
        cache = empty()
        self.model.hf.base_model(
            input_ids=token_ids,
            attention_mask=torch.ones_like(token_ids),
            position_ids=torch.arange(token_ids.shape[1], device=token_ids.device)[None],
            past_key_values=cache,
            use_cache=True,
        )
        return flattened(cache)

    def read_behind(self, batch: Batch, past: Cache) -> KeyValues:
        """Keys and values of the columns after `past`, which keeps them; see `read_prefixes`."""
        start = past.get_seq_length()
        self.model.hf.base_model(
            input_ids=batch.token_ids[:, start:],
            attention_mask=batch.attention_mask,
            position_ids=batch.position_ids[:, start:],
            past_key_values=past,
            use_cache=True,
        )
        return flattened(past)

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """Tokens as the tokenizer holds them."""
        return _tokens(self.model, answers)


@dataclass(frozen=True, slots=True)
class ClassifierReader:
    """An encoder with a classification head: the answer is a class.

    The model numbers positions and token types itself, as in its training: RoBERTa's positions
    begin after the index of its padding.
    """

    model: Model

    def embed(self, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
        """See `Reader`; positions and norm are not yet applied."""
        return _embedded(self.model.hf.get_input_embeddings(), token_ids)

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The logits of the classes."""
        assert past is None, "an encoder reads prompts whole"
        rows = len(batch.token_ids) if embeddings is None else len(embeddings)
        inputs = _input(self.model, batch.token_ids, embeddings)
        logits: Tensor = self.model.hf(
            **inputs, attention_mask=batch.attention_mask.expand(rows, -1)
        ).logits
        return logits.float()

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """The names of the classes in the configuration."""
        names = class_names(self.model)
        return [names[index] for index in answers]


@dataclass(frozen=True, slots=True)
class TextToTextReader:
    """An encoder-decoder: the encoder reads the prompt, and the answer begins the decoder's text.

    The decoder first reads the same tokens as in training, see `outputs.decoder_prefix`.
    """

    model: Model

    def embed(self, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
        """See `Reader`; embeddings of the encoder."""
        return _embedded(self.model.hf.get_encoder().get_input_embeddings(), token_ids)

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The logits of the first token that the decoder writes by itself."""
        assert past is None, "an encoder reads prompts whole"
        rows = len(batch.token_ids) if embeddings is None else len(embeddings)
        prefix = torch.tensor([decoder_prefix(self.model)], device=batch.token_ids.device)
        logits: Tensor = self.model.hf(
            **_input(self.model, batch.token_ids, embeddings),
            attention_mask=batch.attention_mask.expand(rows, -1),
            decoder_input_ids=prefix.expand(rows, -1),
            use_cache=False,
        ).logits
        return logits[:, -1].float()

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """Tokens as the tokenizer holds them."""
        return _tokens(self.model, answers)


def _embedded(embedding: Any, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
    embeddings: Tensor = embedding(token_ids)
    return embeddings.detach()


def _tokens(model: Model, answers: Sequence[int]) -> list[str | None]:
    return list(model.tokenizer.convert_ids_to_tokens(list(answers)))


def _input(model: Model, token_ids: Tensor, embeddings: Embeddings | None) -> dict[str, Tensor]:
    """The model's input, under the name that its forward pass has for it."""
    if embeddings is None:
        return {"input_ids": token_ids}
    if "inputs_embeds" not in model.forward_arguments:
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) takes no input embeddings, so nothing "
            "can be attributed to its tokens; evaluate works for it"
        )
    return {"inputs_embeds": embeddings}


@torch.no_grad()
def check_finite(model: Model, prompt: TokenizedPrompt) -> None:
    """Check that a model's logits for a prompt are finite.

    Raises:
        UserError: the logits are not finite. The error names the first tensor of the weights that
            is not finite or, if all are, the first module whose output is not.
    """
    first: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(model.measuring())
        for path, module in model.hf.named_modules():
            # Among nested modules, the innermost ends first.
            hook = _noting(f"{path} ({type(module).__name__})", first)
            stack.callback(module.register_forward_hook(hook).remove)
        logits = reader_of(model).answer_logits(pad(model, [prompt]))
    if _is_finite(logits):
        return
    stored = next((name for name, own in weights_of(model.hf) if not _is_finite(own)), None)
    if stored is not None:
        where = f"its weights hold such numbers, first in {stored}"
        advice = "take another copy of the model"
    else:
        where = f"its weights are finite, and {first[0] if first else 'its head'} is the first part"
        where += " that gives such numbers"
        advice = "look for a setting in its config.json, or a weight, that is out of proportion"
    if model.dtype == "float16":
        advice = "float16 ends at 65,504, so load it with --dtype bfloat16 or float32"
    raise UserError(
        f"the logits of {model.name} are not finite (NaN or infinite): {where}; {advice}"
    )


def _noting(name: str, names: list[str]) -> Callable[[nn.Module, Any, Any], None]:
    """A hook that notes the name of a module whose output is not finite."""

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        own = output[0] if isinstance(output, tuple) and output else output
        if isinstance(own, Tensor) and not _is_finite(own):
            names.append(name)

    return note


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
