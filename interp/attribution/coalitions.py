"""Prompts in which some segments are kept and the others come from donors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from interp.attribution.games import members
from interp.errors import UserError
from interp.prompts.mixing import mixed
from interp.prompts.prompt import Donor, Prompt

MOST_SEGMENTS = 6
"""Segments of which every coalition is read: 2^k prompts for each donor."""


def check_segments(prompt: Prompt, segments: Sequence[str]) -> None:
    """Check that all coalitions of a prompt's segments can be read.

    Raises:
        UserError: there are too many segments.
    """
    if len(segments) > MOST_SEGMENTS:
        raise UserError(
            f"the donors of prompt {prompt.id} replace {len(segments)} segments; expected at most "
            f"{MOST_SEGMENTS}, since every combination of them is read. Name those to replace by "
            "interp effects --segments, or leave out methods that exchange segments"
        )


@dataclass(frozen=True)
class Coalitions:
    """A prompt with each donor in each coalition of segments that are kept."""

    prompt: Prompt
    donors: tuple[Donor, ...]
    """All of the same segments."""

    def __post_init__(self) -> None:
        """Refuse what cannot be read.

        Raises:
            UserError: no donor, or too many segments.
        """
        if not self.donors:
            raise UserError(
                f"prompt {self.prompt.id} has no donor from another instance of its template; "
                "expected at least one, which a larger set of prompts may have"
            )
        check_segments(self.prompt, self.segments)

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments that are kept or replaced; player i of the game is segment i."""
        return tuple(self.donors[0].segments)

    @cached_property
    def prompts(self) -> Sequence[Sequence[Prompt]]:
        """The mixed prompts, donor by donor, each by coalition.

        Many have the same text, such as those that keep everything.
        """
        coalitions = range(2 ** len(self.segments))
        return [[self._mixed(donor, kept) for kept in coalitions] for donor in self.donors]

    def _mixed(self, donor: Donor, coalition: int) -> Prompt:
        kept = [self.segments[player] for player in members(coalition, len(self.segments))]
        return mixed(self.prompt, donor, kept=kept)
