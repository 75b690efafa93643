"""The measurements in the study of RuleBench. Imports no torch, so `--help` is fast."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from interp import Attribute, Generate, Spec, UserError
from interp.extend import PromptSource, Stage, Study, texts
from interp.extend.measuring import CHEAP_METHODS
from interp_experiments.rulebench import prompts
from interp_experiments.rulebench.items import Quantity
from interp_experiments.rulebench.layout import read_sets

FEW = prompts.Setting(quantity="few")


class RuleBenchStudy(Study):
    """The measurements of the paper's Section 4, on the authors' sets or on the generated sets."""

    name = "rulebench"
    page = "interp_experiments.rulebench.page:report_of"
    default_limit = 480
    organisms = ("rulebench",)
    derives = ("interp_experiments.rulebench.tables:ACCURACY",)

    rules: tuple[Quantity, ...] = Field(default=prompts.QUANTITIES, min_length=1)
    """how many rules are shown: none, the golden rule, few, or all; to show all rules, use a model
    that can read several thousand tokens"""
    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = 256
    """maximum number of tokens in a text with a chain of thought"""
    attribution: bool = True
    """also attribute answers to the rules, in prompts with few rules"""
    skip_broken: bool = False
    """omit broken items of the data instead of stopping"""

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Texts under each setting (direct, with demonstrations, with thought), and attributions.

        Raises:
            UserError: the data cannot be read or have broken items, or other demonstrations than
                the paper's are asked for.
        """
        if source.shots:
            raise UserError(
                "RuleBench compares questions without demonstrations with questions after "
                "demonstrations of its own (one or two by set, as in the paper), so others cannot "
                "be added to all of them; omit shots, or measure the questions without them: "
                "generate --system rulebench --shots N"
            )
        from interp_experiments.rulebench.results import ATTRIBUTION, STAGES
        from interp_experiments.rulebench.system import RuleBench, kinship_set, string_game_set

        if source.data is None:
            sets = [kinship_set(source.seed), string_game_set(source.seed)]
        else:
            sets = read_sets(Path(source.data), skip_broken=self.skip_broken)

        def stage(name: str, settings: Sequence[prompts.Setting], spec: Spec) -> Stage:
            system = RuleBench(f"rulebench {name}", tuple(settings), kinship_set)
            asked = system.prompts_of(sets, seed=source.seed, data=source.data)
            return Stage(name, source.drawn(asked, self.default_limit), spec)

        every = prompts.RULES + prompts.FORMS + prompts.THOUGHT + prompts.COUNTERFACTUAL
        settings = [one for one in dict.fromkeys(every) if one.quantity in self.rules]
        stages = []
        for name, (shots, thought) in STAGES.items():
            chosen = [one for one in settings if (one.shots, one.thought) == (shots, thought)]
            if chosen:
                tokens = self.max_new_tokens if thought else prompts.DIRECT_TOKENS
                stages.append(stage(name, chosen, Generate(max_new_tokens=tokens)))
        if self.attribution and FEW in settings:
            stages.append(stage(ATTRIBUTION, [FEW], Attribute(methods=CHEAP_METHODS)))
        return tuple(stages)
