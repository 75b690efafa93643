"""Studies: several measurements of the same models in one report; found by entry point.

A study has stages, each one measurement of one prompt set (`interp.studies.plan` and `interp.runs`
execute them), and turns the tables on disk into a page of tables and figures. This module needs no
torch, so that a command knows a study's options at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from interp.measurements.spec import Stage
from interp.options import Options
from interp.plugins import STUDIES, load_plugin
from interp.prompts.source import PromptSource

if TYPE_CHECKING:
    from interp.report.page import Report
    from interp.studies.folder import StudyFolder


class Study(Options, ABC):
    """The measurements of a paper or a question, and the report on them.

    A subclass sets the names below, has its own options as fields, and is registered under the
    entry point group `interp.studies`.
    """

    name: ClassVar[str]
    default_limit: ClassVar[int]
    """Pairs that are taken by default."""
    any_system: ClassVar[bool] = False
    """Whether it takes the prompts of any system."""
    organisms: ClassVar[tuple[str, ...]] = ()
    """The systems whose packaged organisms are measured when no model is named; all organisms if
    empty."""

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The systems whose organisms are measured without any model named."""
        return self.organisms

    @abstractmethod
    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """What is measured of every model."""

    @abstractmethod
    def report(self, folder: "StudyFolder") -> "Report":
        """Tables and figures from what the study has on disk."""


def find_study(name: str) -> type[Study]:
    """The study of that name."""
    study: type[Study] = load_plugin(STUDIES, "study", name, base=Study)
    return study
