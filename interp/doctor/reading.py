"""How the tokenizer and the chat template write a prompt, and what would go wrong in plain use."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from interp.doctor.finding import Finding
from interp.models.architectures import CAUSAL
from interp.models.model import Model
from interp.prompts.answers import Label
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer

SHOWN = 8
"""Tokens that are shown of each end of a prompt."""


def reading(model: Model, prompts: Sequence[TokenizedPrompt]) -> Iterator[Finding]:
    """Findings on the first prompt, and on the segments of all."""
    first = prompts[0]
    tokens = model.tokenizer.convert_ids_to_tokens(list(first.token_ids))
    ends = f"{' '.join(tokens[:SHOWN])} ... {' '.join(tokens[-SHOWN:])}"
    written = "by the chat template" if first.chat.templated else "without a chat template"
    yield Finding("first prompt", f"{len(first)} tokens, written {written}: {ends}")
    yield from _beginning(model, first)
    yield from _special(model)
    yield Finding(
        "segments, tokens",
        ", ".join(f"{name} {end - start}" for name, (start, end) in first.segments.items()),
        _across(prompts),
    )
    yield from _answers(model, first)


def _beginning(model: Model, first: TokenizedPrompt) -> Iterator[Finding]:
    """Whether plain use would begin the prompt twice."""
    if model.kind is not CAUSAL or model.tokenizer.bos_token_id is None:
        return
    plain = model.tokenizer(first.chat.text)["input_ids"]
    begins = [own == model.tokenizer.bos_token_id for own in plain[:2]]
    if begins == [True, True]:
        note = "tokenizer(text) would write it a second time behind the template; here it is once"
    elif first.token_ids[0] != model.tokenizer.bos_token_id:
        note = "this prompt begins without it, as the template or tokenizer has it"
    else:
        note = ""
    yield Finding("beginning of text", str(model.tokenizer.bos_token), note)


def _special(model: Model) -> Iterator[Finding]:
    pad, end = model.tokenizer.pad_token, model.tokenizer.eos_token
    if pad is None:
        note = "no padding token: any token serves, since padding is masked"
    elif pad == end:
        note = "the same as the end of text: padding is masked by place, not by token"
    else:
        note = ""
    yield Finding("padding token", str(pad), note)


def _across(prompts: Sequence[TokenizedPrompt]) -> str:
    """Whether tokens belong to two segments at once."""
    shared = sum(
        any(start < end for (_, end), (start, _) in pairwise(spans))
        for spans in (sorted(own.segments.values()) for own in prompts)
    )
    return f"in {shared} of {len(prompts)} prompts a token belongs to two" if shared else ""


def _answers(model: Model, first: TokenizedPrompt) -> Iterator[Finding]:
    """The outputs that count for each option."""
    counted = AnswerTokenizer(model)(first)
    for name, ids in counted.of.items():
        if isinstance(first.prompt.answer, Label):
            shown = ", ".join(f"class {index}" for index in ids)
        else:
            tokens = model.tokenizer.convert_ids_to_tokens(list(ids))
            shown = ", ".join(f"{token} ({id_})" for token, id_ in zip(tokens, ids, strict=True))
        yield Finding(f"answer {name}", shown)
