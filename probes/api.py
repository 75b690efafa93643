"""Functions that run the probes from a notebook, like those of `interp.api`."""

from collections.abc import Sequence
from typing import Any

from interp.api import api_call, measured_in_memory
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp_probes.facts.show import FactFamiliarity, KnownFacts
from interp_probes.linear.show import LinearProbes
from interp_probes.specs import Familiarity, Knowledge, Residuals


@api_call(Residuals)
def probe_linear(
    model: Model, prompts: Sequence[Prompt], *, batch_tokens: int | None = None, **options: Any
) -> LinearProbes:
    """Predict a prompt's side from the residual stream with linear probes, layer by layer."""
    return measured_in_memory(LinearProbes, Residuals(**options), model, prompts, batch_tokens)


@api_call(Familiarity)
def probe_familiarity(
    model: Model, prompts: Sequence[Prompt], *, batch_tokens: int | None = None, **options: Any
) -> FactFamiliarity:
    """The probability that a model's completion of each fact begins with the answer, by wording.

    `prompts` must be facts.
    """
    return measured_in_memory(FactFamiliarity, Familiarity(**options), model, prompts, batch_tokens)


@api_call(Knowledge)
def probe_knowledge(
    model: Model, prompts: Sequence[Prompt], *, batch_tokens: int | None = None, **options: Any
) -> KnownFacts:
    """Whether a model's greedy completion states each fact, in several wordings.

    `prompts` must be facts.
    """
    return measured_in_memory(KnownFacts, Knowledge(**options), model, prompts, batch_tokens)
