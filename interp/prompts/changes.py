"""Prompts without content, a segment or all premises, or with their options in another order.

They serve as baselines: what a model prefers anyway, and what it answers without reading a part.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from interp.choices import ALL_PREMISES
from interp.prompts.mixing import mixed
from interp.prompts.prompt import Donor, Prompt

_ASKING = re.compile(r"(?:instruction|question|query|conclusion|statement|hypothesis|claim)\d*")
"""Names of segments that ask rather than tell."""

_TELLING = re.compile(r"(?:premise|fact|rule|context|evidence)s?\d*")
"""Names of segments that are premises wherever they stand."""

CONTENT_FREE: tuple[str, ...] = ("N/A", "", "[MASK]")
"""Texts without content (Zhao et al. 2021, Calibrate Before Use, Section 5)."""

_BETWEEN = r"""\s*["'”’)]*\s*(?:[,;/|]|\b(?:or|and|oder|und|ou|et|o|y|e)\b|\s)+\s*["'“‘(]*\s*"""
"""What stands between two options of a list, such as ", " and " or "."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a prompt, and the changed prompt, which has no segments."""

    kind: Literal["content-free", "without", "swapped"]
    what: str
    """The text in place of the content, the segment that is left out, or nothing."""
    prompt: Prompt


def content_free(prompt: Prompt) -> Iterator[Change]:
    """The prompt with each text of `CONTENT_FREE` in place of its content, unless nothing is left.

    The content is what donors replace: the segments that differ between prompts of one phrasing.
    """
    if not prompt.donors:
        return
    names = [name for name in prompt.donors[0].segments if name in prompt.segments]
    for text in CONTENT_FREE:
        if text:
            texts = Donor(text, "instance", dict.fromkeys(names, text))
            yield Change("content-free", text, _bare(prompt, mixed(prompt, texts).text))
        elif left := _without(prompt, names):
            yield Change("content-free", text, _bare(prompt, left))


def without_segments(prompt: Prompt) -> Iterator[Change]:
    """The prompt without each of its segments in turn, unless nothing is left.

    What begins every message, such as the instruction, is left out of demonstrations too.
    """
    for name, (start, _) in prompt.segments.items():
        if left := _without(prompt, [name]):
            lead = prompt.segment_text(name) if start == 0 else ""
            yield Change("without", name, _bare(prompt, left, partial(_cut, lead)))


def without_premises(prompt: Prompt) -> Iterator[Change]:
    """The prompt without all of its premises; none if it has no premises, or nothing else."""
    if (names := premises(prompt)) and (left := _without(prompt, names)):
        yield Change("without", ALL_PREMISES, _bare(prompt, left))


def premises(prompt: Prompt) -> list[str]:
    """The segments that tell something: all but those that ask, such as the question.

    Where no name says which those are, the last segment asks if hardly anything follows it.
    """
    names = sorted(prompt.segments, key=lambda name: prompt.segments[name])
    asking = [name for name in names if _ASKING.fullmatch(name)]
    if names and not asking and not _TELLING.fullmatch(names[-1]):
        rest = prompt.text[prompt.segments[names[-1]][1] :]
        # Longer text after the last segment asks the question itself.
        if "?" not in rest and len(rest.split()) <= 2:
            asking = names[-1:]
    return [name for name in names if name not in asking]


def swapped_options(prompt: Prompt) -> Iterator[Change]:
    """The prompt with each list of its options in reverse order; none without such a list.

    A list names every option once, in one form each, such as "Yes or No" and "True, False or
    Unknown". Lists in the questions of demonstrations are reversed too.
    """
    forms = {form: option.name for option in prompt.answer.options for form in option.forms}
    count = len(prompt.answer.options)
    longest = sorted(forms, key=len, reverse=True)
    any_form = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)"
    listed = re.compile(rf"{any_form}(?:{_BETWEEN}{any_form}){{{count - 1}}}")

    def reverse(match: re.Match[str]) -> str:
        named = re.findall(any_form, match[0])
        if len({forms[form] for form in named}) < count:
            return match[0]
        order = iter(reversed(named))
        return re.sub(any_form, lambda _: next(order), match[0])

    of_lists = partial(listed.sub, reverse)
    if count > 1 and (text := of_lists(prompt.text)) != prompt.text:
        yield Change("swapped", "", _bare(prompt, text, of_lists))


def _without(prompt: Prompt, names: list[str]) -> str:
    """The text without these segments and without the white space that they leave doubled."""
    text = prompt.text
    for start, end in sorted((prompt.segments[name] for name in names), reverse=True):
        before, after = text[:start], text[end:]
        if after.startswith("\n") or not after:
            before = before.rstrip(" ")
        if not before or before[-1].isspace():
            after = after[1:] if after[:1].isspace() else after
        text = before + after if after else before.rstrip()
    return text if text.strip() else ""


def _cut(lead: str, text: str) -> str:
    """A message without its beginning, if it begins so and more follows."""
    rest = text.removeprefix(lead).lstrip() if lead and text.startswith(lead) else ""
    return rest or text


def _bare(prompt: Prompt, text: str, of_shots: Callable[[str], str] = str) -> Prompt:
    """The prompt with another text, and with the questions of its demonstrations changed."""
    messages = prompt.messages
    new = tuple(replace(shot, question=of_shots(shot.question)) for shot in messages.demonstrations)
    messages = replace(messages, demonstrations=new)
    return replace(prompt, text=text, segments={}, roles={}, donors=(), messages=messages)
