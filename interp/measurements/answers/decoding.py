"""Text that models generate after prompts, greedily or by sampling.

The text after a prompt does not depend on the prompt's batch. To sample a token, the inverse of the
cumulative distribution is applied to a uniform random number. Each prompt draws one number per step
from a generator of its own, seeded by the prompt's id and the sampling seed. The checkpoint's own
generation settings, such as penalties and beams, are ignored.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal

import torch
import transformers
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from interp.errors import ModelError, UserError, one_line
from interp.measurements.specs import Generate
from interp.models.families.settings import GENERATING_OTHERWISE
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.reading.outputs import decoder_prefix
from interp.reading.tokens import Batch

Finished = Literal["eos", "stop", "length"]


@dataclass(frozen=True, slots=True)
class Generated:
    """The text generated after one prompt."""

    token_ids: tuple[int, ...]
    """The tokens before the end token, including the tokens of a stop string."""
    text: str
    """The text without special tokens, the stop string, and surrounding white space."""
    finished: Finished
    finite: bool = True
    """Whether all logits were finite. If not, the other fields are meaningless."""


@torch.inference_mode()
def generate(model: Model, batch: Batch, spec: Generate, *, draw: str = "") -> list[Generated]:
    """Generate a text after each prompt of a batch; call this within `model.measuring()`.

    A text ends at an end token, at a stop string, or at its maximum length. Different draws are
    sampled independently.

    Raises:
        UserError: a prompt and its generated text may exceed the model's context, or the model
            cannot generate text.
    """
    _check(model, batch, spec)
    prefix = decoder_prefix(model) if model.kind is TEXT_TO_TEXT else ()
    # A text-to-text model's output begins with the tokens that its decoder read.
    start = len(prefix) or batch.token_ids.shape[1]
    stopping = _StopStrings(model, spec.stop, start=start, rows=len(batch.prompts))
    seen = _Finite()
    processors: list[Any] = [seen]
    if spec.temperature:
        processors.append(_Sampling(batch, spec, draw))
    settings = _settings(model, spec, prefix)
    inputs: dict[str, Tensor] = model.taken({"attention_mask": batch.attention_mask})
    if prefix:
        decoded = torch.tensor([prefix], device=batch.token_ids.device)
        inputs["decoder_input_ids"] = decoded.expand(len(batch.prompts), -1)
    with _generating(model, settings) as hf, _sound_attention(batch):
        sequences = hf.generate(
            batch.token_ids,
            generation_config=settings,
            logits_processor=transformers.LogitsProcessorList(processors),
            stopping_criteria=transformers.StoppingCriteriaList([stopping] if spec.stop else []),
            **inputs,
        )
    written = sequences[:, start:].tolist()
    return [
        replace(_generated(model, tokens[:length], spec), finite=finite)
        for tokens, length, finite in zip(written, stopping.lengths, seen.rows(), strict=True)
    ]


def _check(model: Model, batch: Batch, spec: Generate) -> None:
    named = f"{model.name} ({model.hf.config.model_type})"
    if model.kind is CLASSIFIER or not model.hf.can_generate():
        raise ModelError(
            f"{named} cannot generate text; use a causal or a text-to-text language model"
        )
    if (
        model.kind is CAUSAL
        and "position_ids" in model.forward_arguments
        and not model.takes_positions
    ):
        raise ModelError(
            f"transformers' generate counts the positions of {named} from 0, but the model does "
            "not; evaluate works"
        )
    if model.hf.config.model_type in GENERATING_OTHERWISE:
        raise ModelError(
            f"transformers' generate writes other tokens for {named} than its passes give; "
            "evaluate works"
        )
    context = model.context_length
    longest = max(map(len, batch.prompts))
    if context is not None and longest + spec.max_new_tokens > context:
        raise UserError(
            f"a prompt of {longest} tokens and up to {spec.max_new_tokens} generated tokens do "
            f"not fit into the {context} tokens of {model.name}; use a model with a longer "
            "context, or generate fewer tokens"
        )


def _settings(model: Model, spec: Generate, prefix: Sequence[int]) -> transformers.GenerationConfig:
    padding = model.tokenizer.pad_token_id
    return transformers.GenerationConfig(
        max_new_tokens=spec.max_new_tokens,
        do_sample=False,
        eos_token_id=model.end_tokens or None,
        pad_token_id=0 if padding is None else padding,
        bos_token_id=model.tokenizer.bos_token_id,
        # Without this setting, transformers would put another token before the prefix.
        decoder_start_token_id=prefix[0] if prefix else None,
    )


@contextmanager
def _generating(model: Model, settings: transformers.GenerationConfig) -> Iterator[Any]:
    """The model to call within the block; these generation settings replace its own."""
    # The annotated type of a model may lack `generate`.
    hf: Any = model.hf
    original, hf.generation_config = hf.generation_config, settings
    try:
        yield hf
    except (AttributeError, ValueError) as error:
        raise UserError(
            f"transformers cannot generate text with {model.name}: {one_line(str(error))}. Check "
            "layer_types and the sizes of windows in its configuration"
        ) from error
    finally:
        hf.generation_config = original


def _sound_attention(batch: Batch) -> AbstractContextManager[object]:
    """For masked attention on CUDA, avoid the kernel that `safe_width` describes.

    A batch grows by one column per token, so it would pass through widths that yield wrong results.
    """
    if batch.token_ids.device.type == "cuda" and not batch.attention_mask.all():
        return sdpa_kernel(SDPBackend.MATH)
    return nullcontext()


class _Finite(transformers.LogitsProcessor):
    """A logits processor that records which rows are finite, and zeroes the others."""

    def __init__(self) -> None:
        self._finite: Bool[Tensor, " row"] | None = None

    def __call__(
        self, input_ids: Int[Tensor, "row token"], scores: Float[Tensor, "row vocabulary"]
    ) -> Float[Tensor, "row vocabulary"]:
        finite = scores.isfinite().all(-1)
        self._finite = finite if self._finite is None else self._finite & finite
        return torch.where(finite[:, None], scores, 0.0)

    def rows(self) -> list[bool]:
        if self._finite is None:
            raise ModelError("the model's own generate leaves out the checks of its logits")
        finite: list[bool] = self._finite.tolist()
        return finite


class _Sampling(transformers.LogitsProcessor):
    """A logits processor that keeps one token per row, sampled at the given temperature."""

    def __init__(self, batch: Batch, spec: Generate, draw: str) -> None:
        self._temperature = spec.temperature
        self._chance = [
            random.Random(f"generation {spec.sampling_seed} {tokenized.prompt.id}{draw}")
            for tokenized in batch.prompts
        ]

    def __call__(
        self, input_ids: Int[Tensor, "row token"], scores: Float[Tensor, "row vocabulary"]
    ) -> Float[Tensor, "row vocabulary"]:
        drawn = [chance.random() for chance in self._chance]
        tokens = inverse_cdf(scores.double() / self._temperature, drawn)
        return torch.full_like(scores, -torch.inf).scatter(1, tokens[:, None], 0.0)


def inverse_cdf(
    logits: Float[Tensor, "row vocabulary"], drawn: Sequence[float]
) -> Int[Tensor, " row"]:
    """The token at which each row's cumulative probability passes that row's number in [0, 1)."""
    cumulative = logits.softmax(-1).cumsum(-1)
    # The sum may differ from 1 by rounding; a fraction of the sum never lies past the last token.
    thresholds = torch.tensor(drawn, dtype=cumulative.dtype, device=cumulative.device)
    passed = cumulative > thresholds[:, None] * cumulative[:, -1:]
    return passed.int().argmax(-1)


class _StopStrings(transformers.StoppingCriteria):
    """A criterion that stops the rows whose generated text contains a stop string."""

    def __init__(self, model: Model, stop: tuple[str, ...], *, start: int, rows: int) -> None:
        self._model, self._stop, self._start = model, stop, start
        self.lengths: list[int | None] = [None] * rows
        """Number of tokens of each row up to its stop string; None without a stop string."""

    def __call__(
        self, input_ids: Int[Tensor, "row token"], scores: object, **options: object
    ) -> Bool[Tensor, " row"]:
        for row, tokens in enumerate(input_ids[:, self._start :].tolist()):
            if self.lengths[row] is None and _cut(decoded(self._model, tokens), self._stop)[1]:
                self.lengths[row] = len(tokens)
        ended = [length is not None for length in self.lengths]
        return torch.tensor(ended, device=input_ids.device)


def _generated(model: Model, tokens: list[int], spec: Generate) -> Generated:
    ended = _until_end(model, tokens)
    text, stopped = _cut(decoded(model, tokens), spec.stop)
    finished: Finished = "stop" if stopped else "eos" if len(ended) < len(tokens) else "length"
    return Generated(tuple(ended), text.strip(), finished)


def _until_end(model: Model, tokens: list[int]) -> list[int]:
    return list(takewhile(lambda token: token not in model.end_tokens, tokens))


def decoded(model: Model, tokens: list[int]) -> str:
    """The text before the first end token, without special tokens."""
    return str(model.tokenizer.decode(_until_end(model, tokens), skip_special_tokens=True))


def _cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there is one."""
    places = [place for place in map(text.find, stop) if place >= 0]
    return (text[: min(places)], True) if places else (text, False)
