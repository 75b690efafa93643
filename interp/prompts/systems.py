"""Systems: the data sets that prompts come from, found by entry point: anyone can add one."""

from typing import Protocol, runtime_checkable

import pandas as pd

from interp.plugins import SYSTEMS, load_plugin, misfit, plugins
from interp.prompts.prompt_set import PromptSet


@runtime_checkable
class System(Protocol):
    """A data set of reasoning prompts in minimal pairs."""

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: generated from `seed`, or read from a file, folder or hub name."""

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """The generated data set in its published columns, one row an instance."""


def system_names() -> list[str]:
    """Names of the installed systems."""
    return list(plugins(SYSTEMS))


def find_system(name: str) -> System:
    """The system of that name.

    Raises:
        UserError: no such system is installed, or it cannot be loaded or makes no prompts.
    """
    system: System = load_plugin(SYSTEMS, "system", name)
    if isinstance(system, type) or not callable(getattr(system, "prompts", None)):
        expected = "an object with the methods of interp.prompts.systems.System, such as prompts"
        raise misfit(plugins(SYSTEMS)[name], system, expected)
    return system


def cluster_factor(system: str) -> str | None:
    """The factor by which prompts are clustered, such as the entity that they are about.

    It is the system's attribute `cluster`; None of a system without one, or that is not installed.
    """
    return getattr(find_system(system), "cluster", None) if system in system_names() else None


def dependence_factor(system: str) -> str | None:
    """The factor whose prompts depend on each other, so that tests take it as the unit.

    It is the system's `cluster`, or else its attribute `unit`: what prompts have in common under
    one seed alone, such as an interpretation. None of a system without either.
    """
    own = cluster_factor(system)
    known = own is None and system in system_names()
    return getattr(find_system(system), "unit", None) if known else own


def planted_second(system: str, model: str, prompts: pd.DataFrame) -> pd.Series | None:
    """By prompt, the planted probability that the first segment of the system's ratio decides.

    It is what the system's method `planted_second` says of a model and the prompts table; None of a
    model that nothing is planted in, or of a system without such a method.
    """
    if system not in system_names():
        return None
    known = getattr(find_system(system), "planted_second", None)
    found: pd.Series | None = None if known is None else known(model, prompts)
    return found


def load_prompts(
    system: str = "rulebreakers",
    *,
    limit: int | None = None,
    seed: int = 0,
    data: str | None = None,
) -> PromptSet:
    """The prompts of a system, checked.

    Args:
        system: name of an installed system.
        limit: take so many pairs, spread evenly over the system's strata, unit by unit of its
            design (`PromptSet.spread`); all if None.
        seed: decides the generated data and which pairs a limit takes.
        data: read the system's published data from this CSV, JSON, JSONL or Parquet file, folder
            or hub name instead of generating it.

    Raises:
        UserError: an unknown system, data that cannot be read, duplicate ids, unpaired prompts.
    """
    prompts = find_system(system).prompts(seed=seed, data=data)
    if limit is not None:
        prompts = prompts.spread(limit, seed)
    prompts.check()
    return prompts
