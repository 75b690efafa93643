"""Leave-one-out of segments (Li et al. 2016): by donors' texts, and by deletion."""

from dataclasses import replace

from interp.attribution.explained import ExplainedPrompt
from interp.attribution.method import SegmentScores
from interp.errors import UserError
from interp.models.model import Model
from interp.reading.tokens import TokenizedPrompt


class ByDonor:
    """The target minus its mean over donors that replace one segment."""

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def attribute(self, explained: ExplainedPrompt) -> SegmentScores:
        """Signed, in the target's unit; they need not add up."""
        segments = explained.game.segments
        everyone = 2 ** len(segments) - 1
        left = [everyone ^ 1 << player for player in range(len(segments))]
        whole, *without = explained.game.values([everyone, *left]).tolist()
        return SegmentScores({n: whole - v for n, v in zip(segments, without, strict=True)})


class ByDeletion:
    """The target minus that without the tokens of one segment; the others close up."""

    def __init__(self, model: Model) -> None:
        """Take any model."""

    def attribute(self, explained: ExplainedPrompt) -> SegmentScores:
        """Signed, in the target's unit; they need not add up."""
        prompt = explained.prompt
        shorter = [without(prompt, [name]) for name in prompt.segments]
        whole, *left = explained.values_of([prompt, *shorter])
        return SegmentScores({n: whole - v for n, v in zip(prompt.segments, left, strict=True)})


def without(prompt: TokenizedPrompt, names: list[str]) -> TokenizedPrompt:
    """The prompt without the tokens of some segments, which it no longer has.

    Raises:
        UserError: nothing is left.
    """
    gone = {token for name in names for token in range(*prompt.segments[name])}
    kept = tuple(token for place, token in enumerate(prompt.token_ids) if place not in gone)
    if not kept:
        raise UserError(
            f"prompt {prompt.prompt.id} is nothing but its segment {names[0]!r}, so that nothing "
            "is left without it; leave the method out"
        )
    return replace(prompt, token_ids=kept, segments={}, roles={})
