"""Tokenizers: how they are loaded, and what they must provide."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from interp.errors import UserError, one_line
from interp.models.chat_template import check_templates
from interp.models.formats import format_of
from interp.models.loading import ChatFormat
from interp.models.thinking import find_marks

_MISTRAL = ("mistral", "mistral3", "ministral", "pixtral", "voxtral")
"""Types of models whose tokenizers were saved with a wrong rule by older versions."""


def load_tokenizer(
    location: Path | str, config: PreTrainedConfig, **options: Any
) -> PreTrainedTokenizerBase:
    """The tokenizer saved with a model, within `check_limits`, and tried on a sentence."""
    mistral = getattr(config, "model_type", None) in _MISTRAL
    if mistral:
        options["fix_mistral_regex"] = False  # which transformers would do for others, too
    tokenizer = format_of(location).load_tokenizer(location, **options)
    tokenizer.name_or_path = str(location)
    if mistral:
        _cut_as_mistral(tokenizer)
    if gives_offsets(tokenizer):
        tokenizer("Paris is in France, thus: 1 + 1 = 2.\n", return_offsets_mapping=True)
    return tokenizer


def _cut_as_mistral(tokenizer: Any) -> None:
    """Let a tokenizer of Mistral cut text by Mistral's rule if it was saved with Llama 3's.

    Llama 3's keeps up to three digits together, so its own vocabularies have such tokens; Mistral's
    have none (https://huggingface.co/mistralai/Mistral-Small-3.1-24B-Instruct-2503, discussion 84).
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or backend.pre_tokenizer is None or backend.token_to_id("10") is not None:
        return
    from interp.models.gguf_tokenizer import SPLITS

    saved = json.loads(backend.pre_tokenizer.__getstate__())
    first = saved.get("pretokenizers", [])[:1]
    if [part.get("pattern") for part in first] == [{"Regex": SPLITS["llama3"][0]}]:
        backend.pre_tokenizer[0] = Split(Regex(SPLITS["tekken"][0]), "isolated")


def gives_offsets(tokenizer: Any) -> bool:
    """Whether a tokenizer provides the offsets of its tokens in the text."""
    return bool(getattr(tokenizer, "is_fast", False))


def check_tokenizer(name: str, tokenizer: Any, config: PreTrainedConfig, chat: ChatFormat) -> None:
    """Check a tokenizer and, if thinking is on, its marks around thoughts.

    Raises:
        UserError: it provides no offsets, has ids without embeddings, or several chat templates
            but no default; or thinking is on, and it has no marks.
    """
    if not gives_offsets(tokenizer):
        raise UserError(
            f"the tokenizer of {one_line(name)} ({type(tokenizer).__name__}) provides no "
            "character offsets, which are needed to locate segments; load the model with a fast "
            "tokenizer (tokenizer.json)"
        )
    vocabulary = getattr(config.get_text_config(), "vocab_size", None)
    largest = max(tokenizer.get_vocab().values(), default=-1)
    if vocabulary is not None and largest >= vocabulary:
        surplus = {token for token, i in tokenizer.get_vocab().items() if i >= vocabulary}
        added = one_line(", ".join(sorted(surplus)), 60)
        advice = (
            f"tokens were added without embeddings ({added}). Add them with "
            "model.resize_token_embeddings(len(tokenizer)) and save the model again, or use the "
            "tokenizer as it was"
        )
        if surplus - {*tokenizer.get_added_vocab()}:
            advice = "the tokenizer belongs to another model"
        raise UserError(
            f"the tokenizer of {one_line(name)} has token ids up to {largest}, but the model has "
            f"{vocabulary} embeddings; {advice}"
        )
    check_templates(name, tokenizer, chat)
    if chat.thinks and find_marks(tokenizer, chat) is None:
        raise UserError(
            f"thinking is on, but {one_line(name)} does not seem to think: neither its chat "
            "template nor its vocabulary names a mark that ends a thought, such as </think>. "
            "Turn thinking off, or pass the mark with --end-of-thought"
        )
