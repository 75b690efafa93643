"""A model's own thoughts, cut from generated tokens or stored texts, and read before an answer."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from interp.console import counted
from interp.errors import UserError, one_line
from interp.models.model import Model
from interp.models.thinking import ThoughtMarks
from interp.prompts.marks import MARK, ends_thought
from interp.prompts.prompt import Donor, Prompt
from interp.prompts.thought import Thought, is_part, split_sentences
from interp.reading.tokens import TokenizedPrompt, tokenize_whole
from interp.stored.matching import Matcher
from interp.stored.output import Output, StoredTexts
from interp.stored.read import read_outputs
from interp.stored.sources import matched_to


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
        pairs = ((own, _other_thought(model, own, drawn)) for own in donors)
        donors = tuple(
            replace(own, segments={**own.segments, **{n: other.sentence(n) for n in parts}})
            for own, other in pairs
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
    marks, whole = marks_of(model), _text(model, prompt, token_ids)
    thought, _ = marks.cut(whole)
    tokens = len(token_ids)
    if thought.ended:
        lengths = range(len(token_ids))
        tokens = bisect_left(
            lengths, True, key=lambda n: marks.end in _text(model, prompt, token_ids[:n])
        )
    own = tuple(token_ids[:tokens])
    # A thought without an end is tokenized only to compare its tokens.
    with_end = replace(prompt.prompt, thought=replace(thought, ended=True), segments={}, roles={})
    (read,) = tokenize_whole(model, [with_end])
    expected = prompt.token_ids + own
    same = read.token_ids[: len(expected)] == expected
    return Said(thought, own, tuple(token_ids[tokens:]), same)


def _text(model: Model, prompt: TokenizedPrompt, token_ids: Sequence[int]) -> str:
    """The text of the tokens that follow a prompt, including special tokens.

    SentencePiece drops a space at the beginning of a text, so the prompt is decoded as well.
    """
    before = _decoded(model, prompt.token_ids)
    whole = _decoded(model, [*prompt.token_ids, *token_ids])
    return whole[len(before) :] if whole.startswith(before) else _decoded(model, token_ids)


def _decoded(model: Model, token_ids: Sequence[int]) -> str:
    return str(model.tokenizer.decode(list(token_ids), clean_up_tokenization_spaces=False))


def stored_thoughts(
    model: Model, file: Path, prompts: Sequence[Prompt]
) -> tuple[Mapping[str, tuple[Thought, ...]], StoredTexts]:
    """The thoughts in a file that another tool stored, by prompt, and how they fit the prompts.

    Of a file with texts of several models, those of the model's name. Prompts may be there several
    times.
    """
    unique = list({prompt.id: prompt for prompt in prompts}.values())
    matched = matched_to(Matcher(unique), _of_model(model, file), f"{file.name}: ")
    found: dict[str, tuple[Thought, ...]] = {}
    without: list[str] = []
    for id_, outputs in matched.outputs.items():
        written = [own for own in outputs if not own.error]
        cut = [stored_thought(marks_of(model), own) for own in written]
        without += [own.where for own, thought in zip(written, cut, strict=True) if thought is None]
        if own := tuple(thought for thought in cut if thought is not None):
            found[id_] = own
    if not found:
        raise UserError(
            f"the texts in {file} hold no thoughts; expected a field such as reasoning_content, or "
            f"{marks_of(model).end!r} in the text (with vLLM, skip_special_tokens=False)"
        )
    problems = matched.problems()
    if without:
        problems.append(
            f"{len(without):,} of {counted(matched.texts, 'text')} have no thought, such as "
            f"{without[0]}"
        )
    return found, StoredTexts(file.name, matched.texts, matched.draws, tuple(problems))


def _of_model(model: Model, file: Path) -> list[Output]:
    """The texts of a model: all, if the file tells at most one name."""
    outputs = read_outputs(file)
    names = {own.model for own in outputs} - {None}
    if len(names) <= 1:
        return outputs
    same = (model.name, model.source.get("name"))
    if chosen := [own for own in outputs if own.model in same]:
        return chosen
    there = one_line(", ".join(sorted(map(str, names))), 200)
    raise UserError(
        f"{file} has no texts of {model.name}; it has texts of {there}. Name the model so "
        "(NAME=PATH), or use a file with the texts of one model"
    )


def stored_thought(marks: ThoughtMarks, output: Output) -> Thought | None:
    """The thought in a stored text, as the model's template writes it; None if there is none."""
    if output.thought is not None:
        text = output.thought.strip()
        if output.text.strip() or output.finished != "length":
            return marks.thought(text)
        return Thought(marks.begin, split_sentences(text), "", ended=False)
    text = output.text
    opened = MARK.match(text.lstrip())
    begun = opened is not None and not ends_thought(opened[0])
    if marks.end not in text and not (begun or output.cut or output.finished == "length"):
        return None
    if begun and opened is not None and not marks.begin:  # the prompt already ends with this mark
        text = text.lstrip()[opened.end() :].lstrip()
    thought, _ = marks.cut(text)
    same = thought.before.strip() == marks.begin.strip()
    return thought if same else replace(thought, before=marks.begin)
