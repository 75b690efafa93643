"""What models answer that is no text after a prompt: a class, or a target.

A target is what a text-to-text model writes. Its tokenizer says how one begins (`text_target`):
T5's with the text itself, Bart's with a special token `<s>`, that of a translation model with a
language. In training the decoder reads its start token and then the target, so that the answer's
first token is the one that follows what the tokenizer adds. An unknown word is no part of that,
although its token is special too.
"""

from collections.abc import Mapping

from interp.errors import UserError
from interp.models.model import Model


def decoder_prefix(model: Model) -> tuple[int, ...]:
    """The tokens that the decoder reads before it writes the first token of its own.

    Raises:
        UserError: the model does not say which token its decoder begins with, or its tokenizer
            writes no target.
    """
    start = model.token_setting("decoder_start_token_id")
    if start is None:
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) does not say what its decoder begins "
            "with; set decoder_start_token_id in its config.json"
        )
    opening = _opening(model)
    forced = model.token_setting("forced_bos_token_id")
    return (start, *(opening or (() if forced is None else (forced,))))


def target_tokens(model: Model, text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer adds before a target, and all tokens after that.

    The second is empty where the text has no token.
    """
    encoded = model.tokenizer(text_target=text, return_special_tokens_mask=True)
    ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
    if all(added):
        return tuple(ids), ()
    first = added.index(0)
    return tuple(ids[:first]), tuple(ids[first:])


def _opening(model: Model) -> tuple[int, ...]:
    """What the tokenizer adds before any target, seen at the first token that makes one."""
    special = set(model.tokenizer.all_special_ids)
    for token in range(len(model.tokenizer)):
        text = "" if token in special else str(model.tokenizer.decode([token]))
        opening, own = target_tokens(model, text)
        if own:
            return opening
    raise UserError(
        f"no token of the tokenizer of {model.name} writes a target by itself; expected the "
        "tokenizer of a text-to-text model, which writes texts"
    )


def class_names(model: Model) -> Mapping[int, str]:
    """The names of a classifier's classes, by their place among its logits."""
    labels = model.hf.config.id2label or {}
    return {int(index): str(label) for index, label in labels.items()}
