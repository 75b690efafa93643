"""Models that ship with the package, each in a folder with its card.

Organisms are whole models (`interp.models.organisms`). Grafts are LoRA adapters of a published
model, with a planted cause of its answers; their base does not ship with the package, so --base
names it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interp.errors import UserError, nearest, shortened


@dataclass(frozen=True, slots=True)
class Packaged:
    """The packaged models of one kind."""

    kind: str
    """What such a model is called, such as organism."""
    place: Path
    """The folder that holds a folder with a card for each model."""

    @property
    def prefix(self) -> str:
        """Prefix of the models' names, such as organism/."""
        return f"{self.kind}/"

    def names(self) -> list[str]:
        """The models' names, with their prefix."""
        return sorted(self.prefix + card.parent.name for card in self.place.glob("*/card.json"))

    def folder(self, name: str) -> Path:
        """The folder of a model; a UserError if there is none of this name."""
        names = self.names()
        if name not in names:
            near = self.nearest(name)
            listed = f"there are {', '.join(names)}"
            hint = f"did you mean {near}? `interp models` lists all" if near else listed
            raise UserError(f"no packaged {self.kind} {shortened(name)!r}; {hint}")
        return self.place / name.removeprefix(self.prefix)

    def nearest(self, name: str) -> str | None:
        """The model with the name most similar to the given name, if any is similar."""
        bare = [model.removeprefix(self.prefix) for model in self.names()]
        # A user may remember only the first part of a name.
        parts = {model.partition("-")[0]: model for model in reversed(bare)}
        wanted = name.removeprefix(self.prefix)
        near = nearest(wanted, bare) or parts.get(nearest(wanted, parts) or "")
        return self.prefix + near if near else None

    def card(self, name: str) -> dict[str, Any]:
        """A model's card: its recipe, what was planted in it, and how it scored after training."""
        file = self.folder(name) / "card.json"
        card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return card


ORGANISMS = Packaged("organism", Path(__file__).parent / "organisms")
GRAFTS = Packaged("graft", Path(__file__).parent / "grafts")


def packaged(name: str) -> Packaged | None:
    """The kind of packaged model that a name's prefix announces; None for all other models."""
    return next((kind for kind in (ORGANISMS, GRAFTS) if name.startswith(kind.prefix)), None)
