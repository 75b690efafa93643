"""The study of whether models that fail complete a fact, retrieve it in the prompt, and use it.

1. `knowledge`: greedy completions of the facts that the prompts are about, outside the prompts and
   in several wordings.
2. `readings`: what a lens reads at the fact's subject in the prompt, layer by layer.
3. `exchanges`: the effect on the answer of exchanging the fact's answer there for another word.

This module does not import torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from interp import Lens, Steer, UserError
from interp.extend import FromText, PromptSource, Stage, Study, shortened, texts
from interp.extend.measuring import Indices, ReadsAnswers
from interp.extend.prompts import DEFAULT_SYSTEM, OWN_PAIRS
from interp_probes.facts.wordings import worded
from interp_probes.ledger import EXCHANGES, KNOWLEDGE, READINGS
from interp_probes.specs import Knowledge

if TYPE_CHECKING:
    from interp import PromptSet

IN_RULEBREAKERS = {
    "read": "premise1_entity_b",
    "change": "premise1_entity_b+premise2_entity_b+conclusion_entity_b",
    "words": "entity_a",
    "side": "rulebreaker",
}
"""The options for rulebreakers, at their city or example; their country or kind is exchanged for
the one that stands in the other prompt of the pair."""


class Ledger(ReadsAnswers, Study):
    """The measurements behind the ledger of facts."""

    name = "ledger"
    page = "interp_probes.ledger.page:report_of"
    derives = ("interp.measurements.lens.ledger:LEDGER",)
    default_limit = 60
    any_system = True

    facts: Annotated[str | None, FromText(texts.name, "SOURCE")] = None
    """a system with facts, or a table of your own facts; one of each prompt's factors (columns) is
    a fact's id (default: the facts of --system)"""
    read: Annotated[str | None, FromText(texts.name, "NAME")] = None
    """the segment or role that names the fact's subject, at whose last token the fact's answer is
    read (default: of rulebreakers, premise1_entity_b)"""
    change: Annotated[str | None, FromText(texts.name, "NAME")] = None
    """the segment or role at whose tokens the answer is exchanged; several joined by + are changed
    together (default: as --read; of rulebreakers, entity_b in every sentence)"""
    words: Annotated[str | None, FromText(texts.name, "NAME")] = None
    """what is exchanged: options, or a segment or role, for its text in the pair's other prompt
    (default: options; of rulebreakers, entity_a)"""
    side: Annotated[str | None, FromText(texts.name, "SIDE")] = None
    """the side of each pair whose failures are explained (default: all; of rulebreakers,
    rulebreaker); all sides are read"""
    lens: Literal["jacobian", "own", "logit"] = "jacobian"
    """the lens that reads and whose rows are exchanged"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers are read and changed, one by one, such as 0,2,5 or 0-2 (default: all); effects
    are averaged over them"""

    def organisms_for(self, source: PromptSource) -> tuple[str, ...]:
        """The system of the prompts."""
        return (source.system,)

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Completions, readings and exchanges (UserError: no such fact, segment or role)."""
        from interp.extend.prompts import facts_about, find_facts

        # About as many facts as possible: several pairs about one are little more evidence.
        whole = source.whole()
        apart = replace(whole, unit=(), clusters=whole.clusters or whole.unit)
        prompts = source.drawn(apart, self.default_limit)
        prompts.check()
        facts, where = self._facts(source), self._where(source, prompts)
        read = Lens(
            roles=(where["read"],),
            methods=(self.lens,),
            layers=self.layers,
            facts=facts,
            answers=self.answers,
        )
        changed = Steer(
            roles=(where["change"],),
            words=where["words"],
            directions=(self.lens,),
            layers=self.layers,
            side=where["side"],
            answers=self.answers,
        )
        return (
            Stage(KNOWLEDGE, worded(facts_about(prompts, find_facts(facts))), Knowledge()),
            Stage(READINGS, read.arranged(prompts), read),
            Stage(EXCHANGES, changed.arranged(prompts), changed),
        )

    def _facts(self, source: PromptSource) -> str:
        if self.facts is not None:
            return self.facts
        from interp.extend import find_system

        own_pairs = source.system == OWN_PAIRS
        if own_pairs or find_system(source.system).facts(data=None) is None:
            raise UserError(
                f"the prompts of {source.system} come without facts; name a table of facts, one of "
                "whose ids stands in a column of each prompt: --facts facts.csv"
            )
        return source.system

    def _where(self, source: PromptSource, prompts: "PromptSet") -> dict[str, Any]:
        """The options of `IN_RULEBREAKERS` as given, or their defaults for the system."""
        usual = IN_RULEBREAKERS if source.system == DEFAULT_SYSTEM else {}
        where = usual | {name: own for name in IN_RULEBREAKERS if (own := getattr(self, name))}
        if "read" not in where:
            names = ", ".join(dict.fromkeys([*prompts[0].segments, *prompts[0].roles]))
            raise UserError(
                "it is not known where a prompt names what its fact is about; expected --read NAME "
                f"with one of its segments and roles: {shortened(names, 200)}"
            )
        return {"change": where["read"], "words": "options", "side": None, **where}
