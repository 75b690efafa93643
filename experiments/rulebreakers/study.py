"""The measurements in the study of RULEBREAKERS. Imports no torch, so `--help` is fast."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from interp import Attribute
from interp.extend import PromptSource, Stage, Study
from interp.extend.measuring import Target
from interp_probes.facts.wordings import worded
from interp_probes.specs import Familiarity, Knowledge, Residuals

if TYPE_CHECKING:
    from interp import Prompt, PromptSet

DEFAULT_LIMIT = 1440
"""Six rulebreakers per verb, under both rules and in ten phrasings: 72 entity pairs compare
rules."""

PROBED_PAIRS = 960
"""At most so many have a stored residual stream: one vector per layer and position."""

EXAMPLE_PAIRS = 8
"""Shown token by token in the browser of pairs."""


class RulebreakersStudy(Study):
    """The measurements of Sections 5 and 6 and of the appendices, and linear probes."""

    name = "rulebreakers"
    page = "interp_experiments.rulebreakers.page:report_of"
    default_limit = DEFAULT_LIMIT
    organisms = ("rulebreakers",)
    derives = ("interp_experiments.rulebreakers.accuracy:BY_GROUP",)

    target: Target = "predicted"
    """what is attributed: the predicted token, the gold answer, the contrast of the positive and
    the negative answer, or the margin of the model's own answer over the other"""

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Answers and attributions, knowledge, residual streams, and examples."""
        from interp import load_facts
        from interp.extend import find_system

        seed, data = source.seed, source.data
        whole = find_system("rulebreakers").prompts(seed=seed, data=data)
        prompts = source.drawn(whole, self.default_limit)
        prompts.check()
        facts = _about(prompts, load_facts("rulebreakers", data=data))
        probed = prompts.spread(min(PROBED_PAIRS, len(prompts) // 2), seed)
        examples = prompts.spread(min(EXAMPLE_PAIRS, len(prompts) // 2), seed)
        return (
            Stage("answers", prompts, Attribute(target=self.target)),
            Stage("familiarity", facts, Familiarity()),
            Stage("knowledge", worded(facts), Knowledge()),
            Stage("residuals", probed, Residuals(positions=("last_token", "premise2"))),
            Stage("examples", examples, Attribute(target=self.target, keep_tokens=True)),
        )


def _about(prompts: "PromptSet", facts: "PromptSet") -> "PromptSet":
    """The facts that prompts are about, in the order of the prompts, so that a study can grow."""
    about = {_entities(fact): number for number, fact in zip(facts.numbers, facts, strict=True)}
    drawn = dict.fromkeys(map(_entities, prompts))
    numbers = [about[names] for names in drawn if names in about]
    return replace(facts, numbers=numbers, drawn_from=facts.numbers)


def _entities(prompt: "Prompt") -> tuple[str, str]:
    return prompt.factors["category"], prompt.factors["entity_b"]
