"""A prompt as a game of its segments: each is kept, or replaced by donors' texts."""

from collections.abc import Callable, Sequence

import numpy as np

from interp.attribution.coalitions import Coalitions
from interp.attribution.games import Values
from interp.prompts.mixing import donors_of
from interp.prompts.prompt import Prompt


class SegmentGame:
    """v(S): the mean target over donors, the segments of S kept and the others from the donor.

    Donors are other instances of the prompt's template. What is read once is remembered.

    Raises:
        UserError: the prompt has no donors, or too many segments.
    """

    def __init__(self, prompt: Prompt, read: Callable[[Sequence[Prompt]], Sequence[float]]) -> None:
        self._coalitions = Coalitions(prompt, donors_of(prompt, "instance"))
        self._read = read
        self._known: dict[str, float] = {}

    @property
    def segments(self) -> tuple[str, ...]:
        """The players, in the order of the bits of a coalition."""
        return self._coalitions.segments

    def values(self, coalitions: Sequence[int] | None = None) -> Values:
        """The values of coalitions, of all 2^k if not given."""
        numbers = range(2 ** len(self.segments)) if coalitions is None else coalitions
        prompts = [[row[number] for number in numbers] for row in self._coalitions.prompts]
        new = {p.text: p for row in prompts for p in row if p.text not in self._known}
        self._known |= zip(new, self._read(list(new.values())), strict=True)
        rows = [[self._known[p.text] for p in row] for row in prompts]
        mean: Values = np.array(rows, dtype=np.float64).mean(0)
        return mean
