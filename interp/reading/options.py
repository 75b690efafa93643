"""Which answers of a model an option means, where that does not depend on the prompt.

A class, by its name; or the first token of a target. After the prompt of a causal model it depends
on the prompt which token an answer begins with (`interp.scoring.answer_tokens`).
"""

import re

from interp.errors import UserError, shortened
from interp.models.architectures import CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.prompts.answers import AnswerOption
from interp.reading.target import class_names, target_tokens


def fixed_answers(model: Model, option: AnswerOption) -> tuple[int, ...] | None:
    """The indices into the answer logits that represent an option; None for a causal model.

    Raises:
        UserError: an option that has forms, but no class or token.
    """
    if model.kind is CLASSIFIER:
        return _classes(model, option)
    if model.kind is TEXT_TO_TEXT:
        return _first_tokens(model, option)
    return None


def _classes(model: Model, option: AnswerOption) -> tuple[int, ...]:
    """The classes that a form names: as it is written, or else but for case and punctuation."""
    labels = class_names(model)
    found: dict[int, None] = {}
    for form in option.forms:
        exact = [index for index, label in labels.items() if label == form]
        alike = [index for index, label in labels.items() if _plain(label) == _plain(form)]
        found |= dict.fromkeys(exact or alike)
    if option.forms and not found:
        names = shortened(", ".join(labels.values()), 200)
        raise UserError(
            f"no class of {model.name} is the answer {option.name!r}; its classes are {names}. "
            "Give the option a form that is the name of a class"
        )
    return tuple(found)


def _plain(text: str) -> str:
    return " ".join(re.split(r"[\W_]+", text.casefold())).strip()


def _first_tokens(model: Model, option: AnswerOption) -> tuple[int, ...]:
    """The first token of each form as a target.

    A "▁" alone, which may begin anything, is none, nor is the token of unknown words.
    """
    tokenizer = model.tokenizer
    written = [target_tokens(model, form)[1] for form in option.forms]
    firsts = dict.fromkeys(tokens[0] for tokens in written if tokens)
    own = tuple(
        token
        for token in firsts
        if token != tokenizer.unk_token_id and str(tokenizer.decode([token])).strip()
    )
    if option.forms and not own:
        raise UserError(
            f"the answer {option.name!r} cannot be recognized by its first token for {model.name}: "
            "every form begins with a token of white space alone, or with that of unknown words; "
            "give it a form that begins with a token of its own"
        )
    return own
