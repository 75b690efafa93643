"""Answers that do not continue the prompt: a classifier's class or a target.

A target is the text that a text-to-text model writes. The tokenizer defines how a target begins
(`text_target`): with the text itself for T5, with `<s>` for Bart, and with a language token for
a translation model. In training, the decoder reads its start token and then the target, so the
answer's first token follows the tokens that the tokenizer adds. The token for unknown words is a
special token, but it is not one of these added tokens. For causal models, see
`interp.scoring.answer_tokens`.
"""

import re
from collections.abc import Mapping

from interp.errors import ModelError, UserError, shortened
from interp.models.kinds import CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.prompts.answers import AnswerOption


def decoder_prefix(model: Model) -> tuple[int, ...]:
    """The tokens that the decoder reads before it writes its first token."""
    start = model.token_setting("decoder_start_token_id")
    if start is None:
        raise ModelError(
            f"{model.name} ({model.hf.config.model_type}) does not specify how its decoder "
            "begins; set decoder_start_token_id in its config.json"
        )
    opening = _opening(model)
    forced = model.token_setting("forced_bos_token_id")
    return (start, *(opening or (() if forced is None else (forced,))))


def target_tokens(model: Model, text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that the tokenizer adds before a target, and those of the target itself."""
    encoded = model.tokenizer(text_target=text, return_special_tokens_mask=True)
    ids, added = encoded["input_ids"], encoded["special_tokens_mask"]
    if all(added):
        return tuple(ids), ()
    first, last = added.index(0), len(ids) - added[::-1].index(0)
    return tuple(ids[:first]), tuple(ids[first:last])


def _opening(model: Model) -> tuple[int, ...]:
    """The tokens that the tokenizer adds before any target."""
    special = set(model.tokenizer.all_special_ids)
    for token in range(len(model.tokenizer)):
        text = "" if token in special else str(model.tokenizer.decode([token]))
        opening, target = target_tokens(model, text)
        if target:
            return opening
    raise ModelError(
        f"no token of the tokenizer of {model.name} is a target by itself; expected the "
        "tokenizer of a text-to-text model"
    )


def class_names(model: Model) -> Mapping[int, str]:
    """The names of a classifier's classes, by index into its logits."""
    labels = model.hf.config.id2label or {}
    return {int(index): str(label) for index, label in labels.items()}


def fixed_answers(model: Model, option: AnswerOption) -> tuple[int, ...] | None:
    """An option's indices in the answer logits; None for causal models: they depend on prompts."""
    if model.kind is CLASSIFIER:
        return _classes(model, option)
    if model.kind is TEXT_TO_TEXT:
        return _first_tokens(model, option)
    return None


def _classes(model: Model, option: AnswerOption) -> tuple[int, ...]:
    """The classes whose names match a form exactly or, failing that, up to case and punctuation."""
    labels = class_names(model)
    classes: dict[int, None] = {}
    for form in option.forms:
        exact = [index for index, label in labels.items() if label == form]
        similar = [index for index, label in labels.items() if _plain(label) == _plain(form)]
        classes |= dict.fromkeys(exact or similar)
    if option.forms and not classes:
        names = shortened(", ".join(labels.values()), 200)
        raise ModelError(
            f"no class of {model.name} matches the answer {option.name!r}: it has the classes "
            f"{names}; use a classifier with a class for each answer, name its classes so in its "
            "config.json (id2label), or give the answer a form that is the name of a class"
        )
    return tuple(classes)


def _plain(text: str) -> str:
    return " ".join(re.split(r"[\W_]+", text.casefold())).strip()


def _first_tokens(model: Model, option: AnswerOption) -> tuple[int, ...]:
    """The first token of each form, tokenized as a target.

    A lone "▁", with which any word may begin, and the token for unknown words do not count.
    """
    tokenizer = model.tokenizer
    written = [target_tokens(model, form)[1] for form in option.forms]
    firsts = dict.fromkeys(tokens[0] for tokens in written if tokens)
    recognizable = tuple(
        token
        for token in firsts
        if token != tokenizer.unk_token_id and str(tokenizer.decode([token])).strip()
    )
    if option.forms and not recognizable:
        raise UserError(
            f"the answer {option.name!r} cannot be recognized by its first token for {model.name}: "
            "every form begins with a white-space token or with the token for unknown words; add "
            "a form that begins with a unique token"
        )
    return recognizable
