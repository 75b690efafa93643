"""What models answer that is no text after a prompt: a class, or a target.

A target is what a text-to-text model writes. Its tokenizer says how one begins (`text_target`):
T5's with the text itself, Bart's with a special token `<s>`, that of a translation model with a
language. In training the decoder reads its start token and then the target, so that the answer's
first token is the one that follows the special tokens.
"""

from collections.abc import Mapping

from interp.errors import UserError
from interp.models.model import Model

_SAMPLE = "Yes"


def decoder_prefix(model: Model) -> tuple[int, ...]:
    """The tokens that the decoder reads before it writes the first token of its own.

    Raises:
        UserError: the model does not say which token its decoder begins with.
    """
    start = model.token_setting("decoder_start_token_id")
    if start is None:
        raise UserError(
            f"{model.name} ({model.hf.config.model_type}) does not say what its decoder begins "
            "with; set decoder_start_token_id in its config.json"
        )
    opening, _ = target_tokens(model, _SAMPLE)
    forced = model.token_setting("forced_bos_token_id")
    return (start, *(opening or (() if forced is None else (forced,))))


def target_tokens(model: Model, text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that a target begins with, and all tokens after them."""
    ids: list[int] = model.tokenizer(text_target=text)["input_ids"]
    special = set(model.tokenizer.all_special_ids)
    first = next((index for index, token in enumerate(ids) if token not in special), len(ids))
    return tuple(ids[:first]), tuple(ids[first:])


def class_names(model: Model) -> Mapping[int, str]:
    """The names of a classifier's classes, by their place among its logits."""
    labels = model.hf.config.id2label or {}
    return {int(index): str(label) for index, label in labels.items()}
