"""A base theory beside one minimal edit that changes its label: pairs to patch between."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

from interp_experiments.robustlr.contrast import CONTRAST_SETS
from interp_experiments.robustlr.evaluation_sets import GroupMaker
from interp_experiments.robustlr.instances import Instance
from interp_experiments.robustlr.language import Verdict

SIDES = ("base", "edited")

EditPair = tuple[Instance, Instance]


@dataclass(frozen=True)
class EditPairMaker:
    """Makes the pairs of one contrast set, any of them alone."""

    groups: GroupMaker

    versions: ClassVar[tuple[str, ...]] = SIDES

    @property
    def set(self) -> str:
        """The contrast set."""
        return self.groups.set

    def __len__(self) -> int:
        return len(self.groups) * len(self._edits)

    def theory_id(self, index: int) -> str:
        """The id of a pair: its group's, and the edit."""
        place, edit = divmod(index, len(self._edits))
        return f"{self.groups.theory_id(place)}/{self._edits[edit]}"

    def group(self, index: int) -> EditPair:
        """The base and one edit, the same for a seed on every platform."""
        place, edit = divmod(index, len(self._edits))
        return tuple(pairs_of(self.groups.group(place)))[edit]

    @property
    def _edits(self) -> list[str]:
        edits = CONTRAST_SETS[self.set]
        return [edit.version for edit in edits if edit.label is not Verdict.TRUE]


def pairs_of(members: Sequence[Instance]) -> Iterator[EditPair]:
    """The base of a group, which is its first member, beside each edit of another label."""
    base, *edits = members
    for edit in edits:
        if edit.label is not base.label:
            id_ = f"{base.theory_id}/{edit.version}"
            yield (
                replace(base, theory_id=id_, version=SIDES[0]),
                replace(edit, theory_id=id_, version=SIDES[1]),
            )


def pairs_of_all(instances: Iterable[Instance]) -> list[Instance]:
    """The members of the pairs of all groups, whose members follow each other."""
    return [
        member
        for _, group in groupby(instances, key=lambda one: one.theory_id)
        for pair in pairs_of(tuple(group))
        for member in pair
    ]
