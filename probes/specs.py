"""What the probes measure, as data: familiarity with facts, knowledge of them, residual streams."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from interp import texts
from interp.errors import UserError, unknown
from interp.measurements.spec import Prompts, Spec
from interp.options import FromText

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.source import PromptSource

LAST_TOKEN = "last_token"
"""The position of the last prompt token, at which causal models give the answer."""

ENTITIES = ("entity_a", "entity_b")
"""The factors by which linear probes are held out."""


class OfFacts(Spec):
    """A measurement of all facts that a system's prompts rest on, in the order of the data."""

    def load(self, source: "PromptSource") -> "PromptSet":
        """The facts as prompts."""
        from interp_probes.facts import load_facts

        return load_facts(source.system, data=source.data)


class Familiarity(OfFacts):
    """The probability that a model begins to say each fact."""

    name: ClassVar[str] = "probe-familiarity"
    result: ClassVar[str] = "interp_probes.results:FactFamiliarity"

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """How likely each fact is."""
        from interp_probes.tables import FAMILIARITY

        return {"familiarity": FAMILIARITY}

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp_probes.familiarity import familiarity

        return familiarity(model, self, batch_tokens=batch_tokens)


class Knowledge(OfFacts):
    """Facts whose greedy completion names the answer."""

    name: ClassVar[str] = "probe-knowledge"
    result: ClassVar[str] = "interp_probes.results:KnownFacts"

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """How the model completes each fact."""
        from interp_probes.tables import KNOWLEDGE

        return {"knowledge": KNOWLEDGE}

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp_probes.knowledge import knowledge

        return knowledge(model, self, batch_tokens=batch_tokens)


class Residuals(Spec):
    """Answers, and the residual stream at some positions, which linear probes are trained on."""

    name: ClassVar[str] = "probe-linear"
    result: ClassVar[str] = "interp_probes.results:LinearProbes"

    positions: Annotated[tuple[str, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        LAST_TOKEN,
        "premise2",
    )
    """tokens to read: last_token, or a segment, which is read at its last token"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, which must have entities, and every segment that is to be read."""
        if not set(ENTITIES) <= set(prompts[0].factors):
            raise UserError(
                "the prompts name no entities, by which linear probes are held out; "
                f"expected the factors {' and '.join(ENTITIES)}, as rulebreakers has them"
            )
        for position in self.positions:
            known = [LAST_TOKEN, *prompts[0].segments]
            if position not in known:
                raise UserError(unknown("position", position, known))
        return prompts

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Answers and residual streams."""
        from interp.tables import named
        from interp_probes.tables import RESIDUALS

        return {**named("answers"), "residuals": RESIDUALS}

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp_probes.residuals import residuals

        return residuals(model, self, batch_tokens=batch_tokens)
