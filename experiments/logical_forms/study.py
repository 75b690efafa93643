"""The measurements in the study of LogicalForms. Imports no torch, so `--help` is fast."""

from collections.abc import Sequence

from interp import SoftScore
from interp.extend import PromptSource, Stage, Study
from interp_experiments.logical_forms import forms


class LogicalFormsStudy(Study):
    """The measurements of Section 4 and Appendix C of the paper."""

    name = "logical-forms"
    page = "interp_experiments.logical_forms.page:report_of"
    default_limit = 480
    """Default number of pairs: the 24 forms make 12 pairs, each under 40 interpretations."""
    organisms = ("logical-forms",)

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Soft scores of the questions, of their nonsense mirror, and of the sets of Appendix C.

        Every form of every set is asked under the same interpretations.
        """
        from interp_experiments.logical_forms import system as sets
        from interp_experiments.logical_forms.language import INTERPRETATIONS
        from interp_experiments.logical_forms.results import STAGES

        limit = source.pairs(self.default_limit)
        of_each = len(forms.main_forms()) // 2
        each = INTERPRETATIONS if limit is None else max(1, limit // of_each)
        # Interpretations are kept whole, so that every form is asked under each of them.
        pairs = each * of_each if limit is None else min(limit, each * of_each)
        limits = {
            sets.system: pairs,
            sets.nonsense: pairs,
            sets.introduction: each * len(forms.introduction_forms()),
            sets.distribution: each * len(forms.distribution_forms()),
        }
        stages = []
        for name, (chosen, some) in zip(STAGES, limits.items(), strict=True):
            prompts = chosen.prompts(seed=source.seed, data=source.data)
            stage_prompts = source.around(prompts.spread(some, source.seed))
            stages.append(Stage(name, stage_prompts, SoftScore()))
        return stages
