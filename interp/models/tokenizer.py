"""The tokenizer of a model: a fast one, whose ids the model has embeddings for."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import (
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from interp.errors import UserError, one_line

_SAMPLE = "Paris is in France, thus: 1 + 1 = 2.\n"


def load_tokenizer(location: Path | str, **options: Any) -> PreTrainedTokenizerBase:
    """The tokenizer that was saved with a model, tried on a sentence.

    If mistral-common is installed, transformers uses it to read a tekken.json, which gives no
    character offsets; the tokenizer.json next to that file is the same tokenizer and gives them.
    """
    tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(location, **options)
    if not hasattr(tokenizer, "is_fast"):
        # Without a tokenizer.json, the error about this tokenizer says so.
        with suppress(Exception):
            tokenizer = PreTrainedTokenizerFast.from_pretrained(location, **options)
    if gives_offsets(tokenizer):
        tokenizer(_SAMPLE, return_offsets_mapping=True)
    return tokenizer


def gives_offsets(tokenizer: Any) -> bool:
    """Whether a tokenizer gives its tokens' offsets in the text."""
    return bool(getattr(tokenizer, "is_fast", False))


def check_tokenizer(name: str, tokenizer: Any, config: PreTrainedConfig) -> None:
    """Check that a tokenizer gives offsets, and only ids for which the model has embeddings.

    Raises:
        UserError: the tokenizer gives no offsets, or ids without embeddings.
    """
    if not gives_offsets(tokenizer):
        raise UserError(
            f"the tokenizer of {one_line(name)} ({type(tokenizer).__name__}) gives no character "
            "offsets, which segments are found by; load the model with a fast tokenizer "
            "(tokenizer.json)"
        )
    vocabulary = getattr(config.get_text_config(), "vocab_size", None)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if vocabulary is not None and largest >= vocabulary:
        raise UserError(
            f"the tokenizer of {one_line(name)} has token ids up to {largest}, the model has "
            f"{vocabulary} embeddings; the tokenizer belongs to another model"
        )
