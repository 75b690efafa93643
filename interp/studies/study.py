"""Studies: stages, each of which measures one prompt set, and one report on the same models.

This module does not import torch, so that commands can read a study's options quickly.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import JsonValue

from interp.errors import UserError
from interp.measuring.spec import Stage
from interp.options import Options
from interp.plugins import STUDIES, load_plugin, named
from interp.prompts.source import PromptSource

if TYPE_CHECKING:
    from interp.report.page import Report
    from interp.studies.folder import StudyFolder


class Study(Options, ABC):
    """The measurements for a paper or a question, and the report on them.

    A subclass sets the names below, adds its own options as fields, and is registered under the
    entry point group `interp.studies`.
    """

    name: ClassVar[str]
    page: ClassVar[str]
    """The location, "module:function", of what makes the page from a `StudyFolder`."""
    default_limit: ClassVar[int]
    """Default number of pairs."""
    any_system: ClassVar[bool] = False
    """Whether the study accepts the prompts of any system."""
    derives: ClassVar[tuple[str, ...]] = ()
    """Locations of the declarations of its small tables (`interp.estimates`)."""
    organisms: ClassVar[tuple[str, ...]] = ()
    """Systems whose packaged organisms are the default models; all systems if empty."""

    def model_post_init(self, context: object) -> None:
        """Refuse a study without a page, before hours of measuring."""
        if type(self).report is Study.report and not hasattr(self, "page"):
            raise UserError(
                f"{type(self).__name__} makes no page; expected a location in its page, "
                '"module:function", or a method report'
            )

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The systems whose packaged organisms are the default models."""
        return self.organisms

    def identity(self) -> dict[str, JsonValue]:
        """The options for the record, which tell the study in a folder from others."""
        return self.as_json()

    @abstractmethod
    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """The measurements to make on every model."""

    def report(self, folder: "StudyFolder") -> "Report":
        """Tables and figures made from the study's results on disk."""
        report: Report = named(self.page)(folder)
        return report


def find_study(name: str) -> type[Study]:
    """The study with the given name."""
    study: type[Study] = load_plugin(STUDIES, "study", name, base=Study)
    return study
