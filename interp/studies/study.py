"""Studies: several measurements of the same models, and one report; found by entry point.

A study has stages, each a measurement of a prompt set, and turns their tables into a page. This
module needs no torch, so that a command knows a study's options at once.
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
    """Default number of pairs."""
    any_system: ClassVar[bool] = False
    """Whether it takes the prompts of any system."""
    organisms: ClassVar[tuple[str, ...]] = ()
    """The systems whose packaged organisms are measured if no model is named; all if empty."""

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The systems whose packaged organisms are measured if no model is named."""
        return self.organisms

    @abstractmethod
    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """What is measured for every model."""

    @abstractmethod
    def report(self, folder: "StudyFolder") -> "Report":
        """Tables and figures from what the study has on disk."""


def find_study(name: str) -> type[Study]:
    """The study of that name."""
    study: type[Study] = load_plugin(STUDIES, "study", name, base=Study)
    return study
