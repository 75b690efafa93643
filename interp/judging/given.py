"""Scores of other tools, as an option and as a measurement that computes nothing."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, InstanceOf

from interp import texts
from interp.errors import UserError, shortened
from interp.files import checksum
from interp.measuring.spec import Spec
from interp.options import FromText, Options

NAME = r"[\w.:+-]{1,60}"
"""Names of scores and targets, which cannot be mistaken for other labels of tables."""


class ScoresFile(Options):
    """A file of scores, and the name under which they are judged."""

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    file: Annotated[Path, FromText(texts.path)]

    @property
    def sha256(self) -> str:
        """The checksum of the file.

        Raises:
            UserError: there is no such file.
        """
        if not self.file.is_file():
            raise UserError(
                f"no file at {shortened(str(self.file))!r}; expected the scores of {self.name}"
            )
        return checksum(self.file.resolve())


def scores_file(text: str) -> ScoresFile:
    """A file from NAME=FILE.

    Raises:
        ValueError: the name or the path is invalid.
    """
    name, _, place = text.partition("=")
    if not re.fullmatch(NAME, name) or not place:
        raise ValueError(
            f"got {shortened(repr(text))}, expected NAME=FILE, such as inseq=scores.parquet, with "
            "a name of at most 60 letters, digits and . _ : + -"
        )
    return ScoresFile(name=name, file=texts.path(place))


class Given(Spec):
    """Scores of segments that other tools computed, beside which methods are judged."""

    name = "given"
    measures = "interp.judging.read_scores:given_scores"
    fills = ("segment_scores",)
    reads_thoughts = False
    own_answers = False
    excluded_from_identity = frozenset({"rows"})

    files: Mapping[str, str] = {}
    """the checksum of each file, by the name of its scores"""
    rows: InstanceOf[Mapping[str, Any]] = Field(default_factory=dict)
    """the rows of each prompt, by id; those without a model are for every model"""
