"""A model's own thoughts, cut from texts that another tool stored."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from interp.console import counted
from interp.errors import UserError, one_line
from interp.models.model import Model
from interp.models.thinking import ThoughtMarks
from interp.prompts.marks import MARK, ends_thought
from interp.prompts.prompt import Prompt
from interp.prompts.thought import Thought, split_sentences
from interp.reading.thoughts import marks_of
from interp.stored.matching import Matcher
from interp.stored.output import Output, StoredTexts
from interp.stored.read import read_outputs
from interp.stored.sources import matched_to


def stored_thoughts(
    model: Model, file: Path, prompts: Sequence[Prompt]
) -> tuple[Mapping[str, tuple[Thought, ...]], StoredTexts]:
    """The thoughts in a file that another tool stored, by prompt, and how they fit the prompts.

    Of a file with texts of several models, those of the model's name. Prompts may be there several
    times.
    """
    unique = list({prompt.id: prompt for prompt in prompts}.values())
    matched = matched_to(Matcher(unique), _of_model(model, file), f"{file.name}: ")
    by_prompt: dict[str, tuple[Thought, ...]] = {}
    without: list[str] = []
    for id_, outputs in matched.outputs.items():
        written = [output for output in outputs if not output.error]
        cut = [stored_thought(marks_of(model), output) for output in written]
        without += [
            output.where for output, thought in zip(written, cut, strict=True) if thought is None
        ]
        if thoughts := tuple(thought for thought in cut if thought is not None):
            by_prompt[id_] = thoughts
    if not by_prompt:
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
    return by_prompt, StoredTexts(file.name, matched.texts, matched.draws, tuple(problems))


def _of_model(model: Model, file: Path) -> list[Output]:
    """The texts of a model: all, if the file tells at most one name."""
    outputs = read_outputs(file)
    names = {output.model for output in outputs} - {None}
    if len(names) <= 1:
        return outputs
    same = (model.name, model.source.get("name"))
    if chosen := [output for output in outputs if output.model in same]:
        return chosen
    others = one_line(", ".join(sorted(map(str, names))), 200)
    raise UserError(
        f"{file} has no texts of {model.name}; it has texts of {others}. Name the model so "
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
