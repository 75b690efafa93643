"""The specs of the probes: familiarity with facts, knowledge of facts, and residual streams."""

from typing import TYPE_CHECKING, Annotated, cast

from pydantic import Field

from interp import Completion, Spec, UserError
from interp.extend import FromText, shortened, texts, unknown
from interp.extend.measuring import OfPairs, Prompts, ReadsAnswers
from interp.extend.prompts import on_sides
from interp_probes.facts.wordings import worded

if TYPE_CHECKING:
    from interp import PromptSet
    from interp.extend import PromptSource

LAST_TOKEN = "last_token"
"""The name of the last position of the prompt, where causal models predict the answer."""


class OfFacts(Spec):
    """A measurement of all facts underlying a system's prompts, in order, in several wordings."""

    group = "probe"
    unused = ("shots", "shots_seed", "instruction", "answer_prefix")
    schemas = "interp_probes.tables:SCHEMAS"

    def prompts_of(self, source: "PromptSource") -> "PromptSet":
        """The facts in all wordings (UserError: there are none, or messages are around them)."""
        from interp import load_facts

        if source.written:
            raise UserError(
                f"facts are asked as they are; omit {', '.join(source.written)}, or put messages "
                "around them in Python (interp.with_messages)"
            )
        return self.arranged(source.drawn(load_facts(source.system, data=source.data), None))

    def arranged(self, prompts: Prompts) -> Prompts:
        """The facts in all wordings (UserError: a prompt asks for another kind of answer)."""
        for prompt in prompts:
            if not isinstance(prompt.answer, Completion):
                raise UserError(
                    f"prompt {shortened(prompt.id, 60)!r} is not a fact; expected facts, as "
                    "returned by interp.load_facts or interp.read_facts"
                )
        return cast("Prompts", worded(prompts))


class Familiarity(OfFacts):
    """The probability that a model's completion of each fact begins with the answer."""

    name = "probe-familiarity"
    help = "probability that each fact's completion begins with the answer, by wording"
    examples = ("probe familiarity --model organism/llama-shallow organism/gemma2",)
    written = "written to {folder}/familiarity.csv"
    measures = "interp_probes.facts.measure:familiarity"
    fills = ("familiarity",)
    derives = ("interp_probes.facts.show:FAMILIAR",)
    result = "interp_probes.facts.show:FactFamiliarity"


class Knowledge(OfFacts):
    """Facts whose greedy completion names the answer."""

    name = "probe-knowledge"
    help = "facts whose greedy completion does not name the answer, by wording"
    examples = ("probe knowledge --model organism/llama-shallow organism/gemma2",)
    written = "written to {folder}/knowledge.csv\nwritten to {folder}/excluded.csv"
    measures = "interp_probes.facts.measure:knowledge"
    fills = ("knowledge",)
    derives = ("interp_probes.facts.show:KNOWN",)
    result = "interp_probes.facts.show:KnownFacts"


class Residuals(ReadsAnswers, OfPairs, Spec):
    """Answers, and the residual stream at some positions, on which linear probes are trained."""

    name = "probe-linear"
    group = "probe"
    help = "whether a prompt's side is linearly readable from the residual stream"
    examples = (
        "probe linear --model organism/llama-shallow organism/gemma2",
        "probe linear --data pairs.csv --positions last_token question",
    )
    written = "written to {folder}/linear_probes.csv"
    measures = "interp_probes.linear.measure:residuals"
    fills = ("answers", "residuals")
    schemas = "interp_probes.tables:SCHEMAS"
    result = "interp_probes.linear.show:LinearProbes"

    positions: Annotated[tuple[str, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        LAST_TOKEN,
    )
    """tokens to read: last_token, or the name of a segment, for its last token"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts (UserError: not two sides, or a position that the first prompt lacks)."""
        prompts = prompts if self.sides is None else on_sides(prompts, self.sides)
        sides = list(dict.fromkeys(prompt.side for prompt in prompts))
        if len(sides) != 2:
            raise UserError(
                f"the prompts have the sides {shortened(', '.join(sides))}; linear probes "
                "predict which of two sides a prompt is on, and require pairs, such as those of "
                "rulebreakers or logical-forms, or your own; of more sides, name two: --sides A B, "
                "in Python sides=(..., ...)"
            )
        for position in self.positions:
            known = [LAST_TOKEN, *prompts[0].segments]
            if position not in known:
                raise UserError(unknown("position", position, known))
        return prompts
