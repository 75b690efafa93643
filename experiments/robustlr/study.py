"""The measurements in the study of RobustLR. Imports no torch, so `--help` is fast."""

from collections.abc import Sequence
from dataclasses import replace

from interp import Attribute, Evaluate, Spec
from interp.extend import PromptSource, Stage, Study
from interp.extend.measuring import CHEAP_METHODS


class RobustLRStudy(Study):
    """The measurements of Section 6 of the paper."""

    name = "robustlr"
    page = "interp_experiments.robustlr.page:report_of"
    default_limit = 240
    organisms = ("robustlr",)
    derives = ("interp_experiments.robustlr.results:SCORES",)

    demonstrations: bool = False
    """show three answered questions before each question, for causal language models that were not
    trained on such questions"""
    distractors: bool = True
    """also measure whole theories, including the facts and rules that decide nothing, on the
    evaluation sets and the in-domain test split; whole theories can exceed 800 tokens"""

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Answers to the evaluation sets, with and without distractors, and to the test split.

        Statements of the test split come with ever more sentences that do not decide them;
        answers to short theories are attributed. With `--data`, only the evaluation sets count.
        """
        from interp_experiments.robustlr import system
        from interp_experiments.robustlr.results import BARE, DISTRACTORS, IN_DOMAIN, SETS, SHORT

        measured: list[tuple[str, system.RobustLR, Spec]] = [(SETS, system.system, Evaluate())]
        if source.data is None:
            measured += [
                (BARE, system.bare, Evaluate()),
                (SHORT, system.short, Attribute(methods=CHEAP_METHODS)),
            ]
            if self.distractors:
                measured += [
                    (DISTRACTORS, system.distractors, Evaluate()),
                    (IN_DOMAIN, system.everything, Evaluate()),
                ]
        stages = []
        for name, one, spec in measured:
            shown = replace(one, shown=self.demonstrations)
            prompts = shown.prompts(seed=source.seed, data=source.data)
            stages.append(Stage(name, source.drawn(prompts, self.default_limit), spec))
        return stages
