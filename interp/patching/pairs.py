"""Pairs of a clean and a corrupt prompt, checked before any model is loaded."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from interp.errors import UserError
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import Prompts, PromptSet, at_places, on_sides


def in_pairs(
    prompts: Prompts, *, clean: str | None = None, sides: Sequence[str] | None = None
) -> Prompts:
    """The prompts, pair by pair, with each clean prompt before its corrupt counterpart.

    `clean` is the side whose prompts are clean (by default, the first of `sides`, or the first
    prompt's); `sides` are the two sides to take from groups that have more (`on_sides`).

    Raises:
        UserError: there are no prompts, a prompt has no counterpart, the prompts of a pair are
            identical or require different answers, or the side is unknown.
    """
    if not prompts:
        raise UserError("got no prompts; expected both sides of at least one pair")
    prompts = prompts if sides is None else on_sides(prompts, sides)
    chosen = sides or list(dict.fromkeys(prompt.side for prompt in prompts))
    clean = chosen[0] if clean is None else clean
    if clean not in chosen:
        raise UserError(f"the clean side is {clean!r}; expected one of {', '.join(chosen)}")
    order: list[int] = []
    members: defaultdict[str, list[int]] = defaultdict(list)
    for index, prompt in enumerate(prompts):
        members[prompt.pair_id].append(index)
    for pair_id, indices in members.items():
        indices.sort(key=lambda index: prompts[index].side != clean)
        _check_pair(pair_id, [prompts[index] for index in indices], clean)
        order += indices
    about = prompts.description if isinstance(prompts, PromptSet) else {}
    return at_places(prompts, order, description={**about, "clean": clean})


def _check_pair(pair_id: str, prompts: Sequence[Prompt], clean: str) -> None:
    sides = [prompt.side for prompt in prompts]
    if len(prompts) != 2 or sides.count(clean) != 1:
        more = f"; of more sides, name two: --sides {clean} OTHER, in Python sides=(..., ...)"
        raise UserError(
            f"pair {pair_id!r} has the prompts {', '.join(sides)}; patching requires one clean "
            f"prompt ({clean}) and one corrupt counterpart{more * (len(sides) > 2)}"
        )
    one, other = prompts
    if one.text == other.text:
        raise UserError(
            f"the prompts of pair {pair_id!r} are identical, so patching has no effect; expected "
            "two different prompts"
        )
    contrast_of(one, other)


def contrast_of(clean: Prompt, corrupt: Prompt) -> tuple[str, str]:
    """The two options whose logit difference is the metric of both prompts; the first is positive.

    They are the contrast that both prompts specify, if it includes the correct answers to both.
    Otherwise, they are the correct answers to the clean and the corrupt prompt.

    Raises:
        UserError: the prompts require generated text or different answers, or have the same correct
            answer without a contrast.
    """
    one, other = clean.answer, corrupt.answer
    if one.options != other.options:
        shown = " and ".join("/".join(o.name for o in answer.options) for answer in (one, other))
        raise UserError(
            f"the prompts of pair {clean.pair_id!r} have different answer options ({shown}); "
            "expected the same options, so that one logit difference measures both prompts"
        )
    golds = (one.gold, other.gold)
    if one.contrast == other.contrast and one.contrast and set(golds) <= set(one.contrast):
        return one.contrast
    if one.gold == other.gold:
        raise UserError(
            f"the prompts of pair {clean.pair_id!r} have the same correct answer, {one.gold!r}, "
            "and no contrast that includes it; expected Choice(..., contrast=(one, another "
            "option)) or, in a table of your own pairs, a column contrast"
        )
    return golds


def is_checked(pair_id: str, share: float) -> bool:
    """Whether a pair is in the share of pairs to check, which includes all smaller shares."""
    digest = hashlib.sha256(f"checked {pair_id}".encode()).digest()
    return int.from_bytes(digest[:8]) < share * 2**64
