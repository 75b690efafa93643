"""The study of RobustLR: what is measured. Needs no torch, so its options are known at once."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from interp.attribution.registry import CHEAP_METHODS
from interp.measurements.spec import Spec, Stage
from interp.measurements.specs import Attribute, Evaluate
from interp.prompts.source import PromptSource
from interp.studies.study import Study

if TYPE_CHECKING:
    from interp.report.page import Report
    from interp.studies.folder import StudyFolder
    from interp_experiments.robustlr import system


class RobustLRStudy(Study):
    """Section 6 of the paper, for the models that were measured."""

    name: ClassVar[str] = "robustlr"
    default_limit: ClassVar[int] = 240
    organisms: ClassVar[tuple[str, ...]] = ("robustlr",)

    demonstrations: bool = False
    """show three answered questions before each, for causal language models that were not trained
    on such questions"""
    distractors: bool = True
    """also ask with all facts and rules that decide nothing, and the in-domain test split; such
    theories have up to 800 tokens and more"""

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Answers to the evaluation sets, with distractors too, and in-domain.

        In-domain theories are asked with increasing numbers of sentences that do not decide the
        statement; answers to short theories are attributed. With `--data` the evaluation sets are
        read, and there are no other stages.
        """
        from interp_experiments.robustlr import system
        from interp_experiments.robustlr.results import BARE, DISTRACTORS, IN_DOMAIN, SETS, SHORT

        stages = [self._stage(SETS, system.system, Evaluate(), source)]
        if source.data is None:
            stages.append(self._stage(BARE, system.bare, Evaluate(), source))
            attribute = Attribute(methods=CHEAP_METHODS)
            stages.append(self._stage(SHORT, system.short, attribute, source))
        if self.distractors and source.data is None:
            stages.append(self._stage(DISTRACTORS, system.distractors, Evaluate(), source))
            stages.append(self._stage(IN_DOMAIN, system.everything, Evaluate(), source))
        return tuple(stages)

    def _stage(
        self,
        name: str,
        asked: "system.EvaluationSets | system.TrainingSet",
        spec: Spec,
        source: PromptSource,
    ) -> Stage:
        shown = replace(asked, shown=self.demonstrations)
        prompts = shown.prompts(seed=source.seed, data=source.data)
        return Stage(name, source.drawn(prompts, self.default_limit), spec)

    def report(self, folder: "StudyFolder") -> "Report":
        """The page, from what the study has on disk."""
        from interp_experiments.robustlr.page import report_of

        return report_of(folder)
