"""A model's own thoughts, cut from generated tokens, and read before an answer."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

from interp.errors import UserError
from interp.models.model import Model
from interp.models.thinking import ThoughtMarks
from interp.prompts.prompt import Donor, Prompt
from interp.prompts.thought import Thought, is_part
from interp.reading.tokens import TokenizedPrompt, tokenize_whole


def after_thought(model: Model, prompt: Prompt, *, segments: Sequence[str] | None = None) -> Prompt:
    """The prompt with the model's first thought about it; unchanged if it already has a thought.

    If the model has several thoughts about the prompt, donors also replace the thought's sentences
    with those at the same positions in another thought. For a donor from another instance, this is
    another thought about the prompt; for the prompt's counterpart, it is the first thought about
    the counterpart. If the other thought has no such sentence, the sentence is removed. By default,
    donors replace all segments.
    """
    if prompt.thought is not None:
        return prompt
    if not model.thoughts.get(prompt.id):
        raise UserError(
            f"{model.name} has no thought on prompt {prompt.id}; generate thoughts on the same "
            "prompts (the same system, data, limit and seed)"
        )
    thought, *others = model.thoughts[prompt.id]
    parts = [name for name in thought.segments if segments is None or name in segments]
    if any(map(is_part, segments or ())) and not others:
        raise UserError(
            f"{model.name} has only one thought on prompt {prompt.id}, but sentences are replaced "
            "by those of another thought; generate at least two (--draws 2), or do not select "
            "sentences"
        )
    donors = prompt.donors
    if others and parts:
        drawn = cycle(others)
        pairs = ((donor, _other_thought(model, donor, drawn)) for donor in donors)
        donors = tuple(
            replace(donor, segments={**donor.segments, **{n: other.sentence(n) for n in parts}})
            for donor, other in pairs
            if other is not None
        )
    return replace(prompt, thought=thought, donors=donors)


def _other_thought(model: Model, donor: Donor, drawn: Iterator[Thought]) -> Thought | None:
    if donor.kind == "instance":
        return next(drawn)
    return next(iter(model.thoughts.get(donor.name, ())), None)


def marks_of(model: Model) -> ThoughtMarks:
    """The marks around thoughts, for a model that thinks."""
    marks = model.thought_marks
    assert marks is not None  # a model that thinks without marks was rejected earlier
    return marks


@dataclass(frozen=True, slots=True)
class Said:
    """The tokens that a model generated after a prompt, split at the end of the thought."""

    thought: Thought
    token_ids: tuple[int, ...]
    """The tokens of the thought, with its marks."""
    answer_ids: tuple[int, ...]
    """The tokens after the thought."""
    same_tokens: bool
    """Whether tokenizing prompt and thought as one text yields the same tokens."""


def cut_thought(model: Model, prompt: TokenizedPrompt, token_ids: Sequence[int]) -> Said:
    """Cut generated tokens directly after the end mark of the thought.

    The prompt is as read, up to the beginning of the thought; the token that ends the text is left
    out.
    """
    marks, text = marks_of(model), _text(model, prompt, token_ids)
    thought, _ = marks.cut(text)
    tokens = len(token_ids)
    if thought.ended:
        lengths = range(len(token_ids))
        tokens = bisect_left(
            lengths, True, key=lambda n: marks.end in _text(model, prompt, token_ids[:n])
        )
    thought_ids = tuple(token_ids[:tokens])
    # A thought without an end is tokenized only to compare its tokens.
    with_end = replace(prompt.prompt, thought=replace(thought, ended=True), segments={}, roles={})
    (read,) = tokenize_whole(model, [with_end])
    expected = prompt.token_ids + thought_ids
    same = read.token_ids[: len(expected)] == expected
    return Said(thought, thought_ids, tuple(token_ids[tokens:]), same)


def _text(model: Model, prompt: TokenizedPrompt, token_ids: Sequence[int]) -> str:
    """The text of the tokens that follow a prompt, including special tokens.

    SentencePiece drops a space at the beginning of a text, so the prompt is decoded as well.
    """
    before = _decoded(model, prompt.token_ids)
    text = _decoded(model, [*prompt.token_ids, *token_ids])
    return text[len(before) :] if text.startswith(before) else _decoded(model, token_ids)


def _decoded(model: Model, token_ids: Sequence[int]) -> str:
    return str(model.tokenizer.decode(list(token_ids), clean_up_tokenization_spaces=False))
