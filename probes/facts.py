"""Facts as prompts: what a system must offer for its models' knowledge to be probed."""

from typing import Protocol, runtime_checkable

from interp.errors import UserError
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import find_system

SIDE = "completion"
"""The one side of a fact's prompt."""


@runtime_checkable
class SystemWithFacts(Protocol):
    """A system that can list the facts its prompts rest on."""

    def facts(self, *, data: str | None) -> PromptSet:
        """One prompt per fact, which asks for a completion; of published data if `data` is given.

        The prompts' only side is "completion", their answer is a `Completion`. Factors are
        category, entity_group, entity_a (the answer) and entity_b (what the fact is about).
        """


def load_facts(system: str = "rulebreakers", *, data: str | None = None) -> PromptSet:
    """The facts of a system as prompts, checked.

    Raises:
        UserError: an unknown system, a system without facts, data that cannot be read.
    """
    found = find_system(system)
    if not isinstance(found, SystemWithFacts):
        raise UserError(
            f"the system {system!r} has no facts to probe; expected one with a method "
            "facts(*, data), such as rulebreakers"
        )
    facts = found.facts(data=data)
    facts.check()
    return facts
