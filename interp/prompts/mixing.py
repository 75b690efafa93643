"""Prompts with donors, and prompts in which segments are replaced with those of donors."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import cast

from interp.choices import DEFAULT_SYSTEM
from interp.errors import UserError
from interp.prompts.prompt import Donor, DonorKind, Prompt, placed
from interp.prompts.prompt_set import Prompts, PromptSet
from interp.prompts.thought import Span


def with_donors(prompts: Prompts, *, count: int, segments: Sequence[str] | None = None) -> Prompts:
    """The prompts, with up to `count` donors each from other instances and one from the pair.

    The donor from the pair is the prompt on the other side, if the set includes it. Prompts that
    do not come from a system with donors keep the donors that they already have.

    Args:
        prompts: prompts from a system with donors, or prompts that already have donors.
        count: number of donors from other instances; a larger count includes the donors of a
            smaller count.
        segments: the segments that donors replace; by default, all segments with donors.

    Raises:
        UserError: the prompts have no donors, or the donors lack a requested segment.
    """
    if not isinstance(prompts, PromptSet):
        return cast("Prompts", [_narrowed(prompt, segments) for prompt in prompts])
    if prompts.donors is None and not any(prompt.donors for prompt in prompts[:1]):
        raise UserError(
            f"the prompts of {prompts.system} have no donors (replacements for their segments), "
            "without which the effect of a segment cannot be measured; expected two or more of "
            f"your own pairs, prompts of a system with donors, such as {DEFAULT_SYSTEM}, or "
            "Prompt(donors=...)"
        )
    source, build = prompts.donors, prompts.build
    pairs = [pair for pair in prompts.groups() if len(pair) == 2] if source is not None else []
    others = {one: other for a, b in pairs for one, other in ((a, b), (b, a))}

    def built(number: int) -> Prompt:
        prompt = build(number)
        if source is not None:
            donors = tuple(islice(source(number), count))
            if donors and number in others:
                donors = *donors, _counterpart(build(others[number]), donors[0].segments)
            prompt = replace(prompt, donors=donors)
        return _narrowed(prompt, segments)

    for number in prompts.numbers[:1]:
        built(number)  # report a wrong segment at once
    return cast("Prompts", replace(prompts, build=built))


def _counterpart(prompt: Prompt, segments: Iterable[str]) -> Donor:
    texts = {name: prompt.segment_text(name) for name in segments}
    roles: dict[str, dict[str, Span]] = {name: {} for name in texts}
    for name, inside in roles.items():
        first, last = prompt.segments[name]
        for role, (start, end) in prompt.roles.items():
            if first <= start and end <= last:
                inside[role] = (start - first, end - first)
    return Donor(prompt.id, "counterpart", texts, roles)


def _narrowed(prompt: Prompt, segments: Sequence[str] | None) -> Prompt:
    if segments is None or not prompt.donors:
        return prompt
    replaceable = prompt.donors[0].segments
    if absent := [name for name in segments if name not in replaceable]:
        raise UserError(
            f"the donors of prompt {prompt.id} have no segment {absent[0]!r}; they have "
            f"{', '.join(replaceable)}"
        )
    donors = []
    for donor in prompt.donors:
        texts = {name: donor.segments[name] for name in segments}
        roles = {name: donor.roles[name] for name in segments if name in donor.roles}
        donors.append(replace(donor, segments=texts, roles=roles))
    return replace(prompt, donors=tuple(donors))


def donors_of(prompt: Prompt, kind: DonorKind) -> tuple[Donor, ...]:
    """The donors of one kind.

    Raises:
        UserError: the prompt has no donors at all.
    """
    if not prompt.donors:
        raise UserError(
            f"prompt {prompt.id} has no donors (replacements for its segments): its sentences do "
            "not come from a template, or its system has no donors; omit the prompt"
        )
    return tuple(donor for donor in prompt.donors if donor.kind == kind)


def mixed(prompt: Prompt, donor: Donor, *, kept: Collection[str] = ()) -> Prompt:
    """The prompt with the donor's segments in place of its own, except segments in `kept`.

    The sentences of the prompt's thought are segments too. Replaced segments, which must not
    overlap, have the donor's roles; all other spans are shifted accordingly.
    """
    others = {
        name: text
        for name, text in donor.segments.items()
        if name not in kept and prompt.segment_text(name) != text
    }
    texts = {prompt.segments[n]: text for n, text in others.items() if n in prompt.segments}
    replaced = sorted(texts)
    if any(later[0] < earlier[1] for earlier, later in pairwise(replaced)):
        raise UserError(
            f"donors replace overlapping segments of prompt {prompt.id}; expected segments that do "
            "not overlap"
        )
    pieces, end = [], 0
    for start, stop in replaced:
        pieces += [prompt.text[end:start], texts[start, stop]]
        end = stop
    longer = {span: len(text) - (span[1] - span[0]) for span, text in texts.items()}
    segments = _moved(prompt.segments, longer)
    kept_roles = {
        name: (start, stop)
        for name, (start, stop) in prompt.roles.items()
        if not any(a < stop and start < b for a, b in replaced)
    }
    donor_roles = {
        name: donor.roles[name]
        for name, span in prompt.segments.items()
        if span in texts and name in donor.roles
    }
    return replace(
        prompt,
        text="".join([*pieces, prompt.text[end:]]),
        segments=segments,
        roles={**_moved(kept_roles, longer), **placed(segments, donor_roles)},
        donors=(),
        thought=prompt.thought and prompt.thought.exchanged(others),
    )


def _moved(spans: Mapping[str, Span], longer: Mapping[Span, int]) -> dict[str, Span]:
    """The spans, shifted by the changes in length of the replaced parts."""

    def moved(position: int) -> int:
        return position + sum(more for (_, end), more in longer.items() if end <= position)

    return {name: (moved(start), moved(stop)) for name, (start, stop) in spans.items()}
