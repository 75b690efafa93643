"""One case: a folder with damaged or odd files in it, and a command line that meets them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.material import Material


@dataclass(frozen=True)
class Case:
    """What is tried, and what may come of it."""

    argv: list[str]
    damage: str = ""
    """What was done to the files, in words."""
    asked: tuple[Path, ...] = ()
    """Places outside the scratch folder that the command line itself asks to be written."""
    refused: bool = False
    """Whether to end well would be wrong: numbers would rest on what is not there."""


Make = Callable[[Random, int, Material, Path], Case]
"""Makes a case from chance, its number, and the valid things, in an empty folder."""
