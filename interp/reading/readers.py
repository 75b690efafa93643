"""Readers, one per kind of model, which compute the logits of answers from a batch of prompts."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers.cache_utils import Cache

from interp.errors import UserError
from interp.models.cache import KeyValues, empty, flattened
from interp.models.families.settings import drops_tokens
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import embedded_as, hooked
from interp.models.weights import weights_of
from interp.reading.outputs import class_names, decoder_prefix
from interp.reading.pieces import token_texts
from interp.reading.tokens import Batch, TokenizedPrompt, pad, safe_width

Embeddings = Float[Tensor, "row token size"]
AnswerLogits = Float[Tensor, "row answer"]
"""One logit for each token of the vocabulary, or for each class, in fp32 (fp64 for fp64 models)."""


class Reader(ABC):
    """Reads prompts with a model of one kind. Use it within `model.measuring()`."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def embed(self, token_ids: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape size"]:
        """The input embeddings of tokens, as the model scales them, without a gradient."""
        hf: Any = self.model.hf
        reads = hf.get_encoder() if self.model.kind is TEXT_TO_TEXT else hf
        embeddings: Tensor = reads.get_input_embeddings()(token_ids)
        return embeddings.detach()

    @abstractmethod
    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The model's logits at the position of each prompt's answer, from one forward pass.

        Embeddings are read instead of the batch's tokens; those of a single prompt may have several
        rows. The first columns, whose keys and values are `past`, are not read again (only causal
        models).
        """

    def logits_behind(
        self,
        batch: Batch,
        rows: Int[Tensor, " copy"],
        tokens: Int[Tensor, "copy new"],
        *,
        embeddings: Embeddings | None = None,
        past: Cache | None = None,
    ) -> Float[Tensor, "copy new vocabulary"]:
        """The next-token logits after each of some tokens that follow prompts, in fp32.

        `rows` are the rows of the prompts in the batch, or in `embeddings`; what fills a row of
        tokens up comes after its own. `past` are the keys and values of the whole prompts, for each
        row of tokens; without them, the prompts are read again.
        """
        raise TypeError(f"a {self.model.kind.name} continues no prompt")

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """The tokens as text, or classes, at these indices into the answer logits.

        None for an index beyond the tokenizer's tokens.
        """
        return token_texts(self.model.tokenizer, answers)

    def _run(
        self, batch: Batch, embeddings: Embeddings | None, *, start: int = 0, **inputs: Any
    ) -> Tensor:
        """The model's logits from column `start` on; unsupported inputs are dropped."""
        model = self.model
        rows = len(batch.token_ids) if embeddings is None else len(embeddings)
        inputs = {
            name: value.expand(rows, -1) if isinstance(value, Tensor) else value
            for name, value in inputs.items()
        }
        inputs |= {"attention_mask": batch.attention_mask.expand(rows, -1)}
        read = {"input_ids": batch.token_ids[:, start:].expand(rows, -1)}
        fed: AbstractContextManager[None] = nullcontext()
        if embeddings is not None and model.kind is CAUSAL:
            fed = embedded_as(model, embeddings)
        elif embeddings is not None:
            read = {"inputs_embeds": embeddings}
        with fed:
            logits: Tensor = model.hf(**read, **model.taken(inputs)).logits
        return logits


def reader_of(model: Model) -> Reader:
    """The reader of a model."""
    if model.kind is CLASSIFIER:
        return ClassifierReader(model)
    return TextToTextReader(model) if model.kind is TEXT_TO_TEXT else CausalReader(model)


class CausalReader(Reader):
    """A causal language model: the answer is the token after the prompt."""

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The next-token logits at the last position; no others are kept."""
        return self.last_logits(batch, 1, embeddings=embeddings, past=past)[:, -1]

    def last_logits(
        self,
        batch: Batch,
        count: int,
        *,
        embeddings: Embeddings | None = None,
        past: Cache | None = None,
    ) -> Float[Tensor, "row position vocabulary"]:
        """The next-token logits at the last `count` positions; see `answer_logits`."""
        start = 0 if past is None else past.get_seq_length()
        drops = drops_tokens(self.model.text_config)
        logits = self._run(
            batch,
            embeddings,
            start=start,
            position_ids=batch.position_ids[:, start:],
            use_cache=past is not None,
            logits_to_keep=torch.arange(-count, 0) if drops else count,
            **{self.model.cache_argument: past},
        )
        return wide(logits[:, -count:])

    def logits_behind(
        self,
        batch: Batch,
        rows: Int[Tensor, " copy"],
        tokens: Int[Tensor, "copy new"],
        *,
        embeddings: Embeddings | None = None,
        past: Cache | None = None,
    ) -> Float[Tensor, "copy new vocabulary"]:
        """The logits at the position of each token; see `Reader.logits_behind`."""
        in_batch = rows if len(batch.token_ids) > 1 else torch.zeros_like(rows)
        width, count = batch.token_ids.shape[1], tokens.shape[1]
        filled = safe_width(width + count, tokens.device) - width
        tokens = nn.functional.pad(tokens, (0, filled - count))
        following = torch.arange(1, filled + 1, device=tokens.device)
        positions = batch.position_ids[in_batch]
        longer = replace(
            batch,
            token_ids=torch.cat([batch.token_ids[in_batch], tokens], 1),
            attention_mask=torch.cat([batch.attention_mask[in_batch], torch.ones_like(tokens)], 1),
            position_ids=torch.cat([positions, positions[:, -1:] + following], 1),
        )
        if embeddings is not None and past is None:
            before = self.embed(batch.token_ids[:, : width - embeddings.shape[1]])
            read = (before[in_batch], embeddings[rows], self.embed(tokens))
            embeddings = torch.cat(read, 1)
        else:
            embeddings = None
        logits = self.last_logits(longer, filled, embeddings=embeddings, past=past)
        return logits[:, :count]

    def read_prefixes(
        self, token_ids: Int[Tensor, "family prefix"], past: Cache | None = None
    ) -> KeyValues:
        """Keys and values of each layer, of shape (family x prefix, key-value head, size).

        Prefixes are padded on the right, so no real token attends to padding and no mask is needed.
        If `past` holds the first columns, only later columns are read, returned and added to
        `past`.
        """
        cache = empty() if past is None else past
        start = cache.get_seq_length()
        positions = torch.arange(start, token_ids.shape[1], device=token_ids.device)[None]
        mask = torch.ones_like(token_ids)
        return self._key_values(token_ids[:, start:], mask, positions, cache)

    def read_behind(self, batch: Batch, past: Cache) -> KeyValues:
        """Keys and values of the columns after `past`, as in `read_prefixes`; extends `past`."""
        start = past.get_seq_length()
        positions = batch.position_ids[:, start:]
        return self._key_values(batch.token_ids[:, start:], batch.attention_mask, positions, past)

    def _key_values(
        self, token_ids: Tensor, attention_mask: Tensor, position_ids: Tensor, cache: Cache
    ) -> KeyValues:
        self.model.hf.base_model(
            input_ids=token_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            use_cache=True,
            **{self.model.cache_argument: cache},
        )
        return flattened(cache)


class ClassifierReader(Reader):
    """An encoder with a classification head: the answer is a class.

    The model numbers positions and token types itself, as in training. RoBERTa's positions, for
    instance, begin after the index of its padding. `embeddings` do not yet include positions or a
    norm.
    """

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The logits of the classes."""
        assert past is None, "an encoder reads prompts whole"
        return wide(self._run(batch, embeddings))

    def answer_names(self, answers: Sequence[int]) -> list[str | None]:
        """The names of the classes in the configuration."""
        names = class_names(self.model)
        return [names[index] for index in answers]


class TextToTextReader(Reader):
    """An encoder-decoder: the encoder reads the prompt, and the answer begins the decoder's text.

    The decoder first reads the same tokens as in training (`outputs.decoder_prefix`).
    """

    def answer_logits(
        self, batch: Batch, *, embeddings: Embeddings | None = None, past: Cache | None = None
    ) -> AnswerLogits:
        """The logits of the first token that the decoder writes by itself."""
        assert past is None, "an encoder reads prompts whole"
        prefix = torch.tensor([decoder_prefix(self.model)], device=batch.token_ids.device)
        logits = self._run(batch, embeddings, decoder_input_ids=prefix, use_cache=False)
        return wide(logits[:, -1])

    def logits_behind(
        self,
        batch: Batch,
        rows: Int[Tensor, " copy"],
        tokens: Int[Tensor, "copy new"],
        *,
        embeddings: Embeddings | None = None,
        past: Cache | None = None,
    ) -> Float[Tensor, "copy new vocabulary"]:
        """The logits of the decoder behind each token; see `Reader.logits_behind`."""
        assert past is None, "an encoder reads prompts whole"
        in_batch = rows if len(batch.token_ids) > 1 else torch.zeros_like(rows)
        prompts = replace(
            batch,
            token_ids=batch.token_ids[in_batch],
            attention_mask=batch.attention_mask[in_batch],
            position_ids=batch.position_ids[in_batch],
        )
        prefix = torch.tensor([decoder_prefix(self.model)], device=tokens.device)
        written = torch.cat([prefix.expand(len(tokens), -1), tokens], 1)
        read = None if embeddings is None else embeddings[rows]
        logits = self._run(prompts, read, decoder_input_ids=written, use_cache=False)
        return wide(logits[:, -tokens.shape[1] :])


@torch.no_grad()
def check_finite(model: Model, prompt: TokenizedPrompt) -> None:
    """Raise a UserError that names the first weight, or else module, of numbers not finite."""
    first: list[str] = []

    def note(path: str, module: nn.Module, inputs: Any, output: Any) -> None:
        returned = output[0] if isinstance(output, tuple) and output else output
        if isinstance(returned, Tensor) and not _is_finite(returned):
            first.append(f"{path} ({type(module).__name__})")

    modules = model.hf.named_modules()
    # Among nested modules, the innermost finishes first.
    with (
        model.measuring(),
        hooked(*(module.register_forward_hook(partial(note, path)) for path, module in modules)),
    ):
        logits = reader_of(model).answer_logits(pad(model, [prompt]))
    if _is_finite(logits):
        return
    stored = next((name for name, weight in weights_of(model.hf) if not _is_finite(weight)), None)
    if stored is not None:
        where = f"its weights contain such numbers, first in {stored}"
        advice = "use another copy of the model"
    else:
        where = f"its weights are finite, but {first[0] if first else 'its head'} is the first part"
        where += " that computes such numbers"
        advice = "look for a disproportionate weight or setting in its configuration"
    if model.dtype == "float16":
        advice = "the largest float16 number is 65,504, so load it with --dtype bfloat16 or float32"
    raise UserError(
        f"the logits of {model.name} are not finite (NaN or infinite): {where}; {advice}"
    )


def _is_finite(tensor: Tensor) -> bool:
    return not tensor.is_floating_point() or bool(tensor.isfinite().all())
