"""Systems, the sources of prompts, are found through entry points, so anyone can add one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from interp.choices import DEFAULT_SYSTEM, OWN_PAIRS
from interp.console import echo
from interp.errors import UserError, described, shortened
from interp.plugins import SYSTEMS, load_plugin, misfit, plugins
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet, counting_notes

if TYPE_CHECKING:
    import pandas as pd

FACT_SIDE = "completion"
"""The side of prompts about facts."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A comparison of two levels of a factor, or of its best and worst levels."""

    factor: str
    """A factor of prompts, or "model"."""
    levels: tuple[str, str] | None = None
    """The levels `a` and `b` in the difference a - b; None compares the best level with the worst
    or, for models, all pairs of models.
    """


@dataclass(frozen=True, slots=True)
class Filter:
    """The pairs that a study leaves out if a model fails the fact of their cluster."""

    factor: str
    """A factor of prompts."""
    levels: tuple[str, ...]
    """Its levels to which the filter applies."""


class System(ABC):
    """A data set of reasoning prompts in minimal pairs. Only `prompts` is required."""

    default_limit: ClassVar[int | None] = 480
    """Default number of pairs; None means all."""
    cluster: ClassVar[str | None] = None
    """The factor that groups dependent prompts under any seed, such as their entity; the unit of
    tests.
    """
    unit: ClassVar[str | None] = None
    """The factor that groups dependent prompts under one seed only, such as an interpretation; the
    unit of tests if there is no `cluster`.
    """
    contrasts: ClassVar[tuple[Contrast, ...]] = ()
    """The comparisons planned before any model is measured; they require a `cluster`."""
    known: ClassVar[Filter | None] = None
    """The pairs that the system's study leaves out if a model does not know their fact."""

    @abstractmethod
    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: generated from `seed`, or read from a file, folder or hub name."""

    def load(self, *, limit: int | Literal["all"] | None, seed: int, data: str | None) -> PromptSet:
        """The checked prompts drawn under a limit (`load_prompts`)."""
        prompts = self.prompts(seed=seed, data=data)
        pairs = self.default_limit if limit is None else limit
        if pairs is not None and pairs != "all":
            prompts = prompts.spread(pairs, seed)
        prompts.check()
        return prompts

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """The generated data set, one row per instance, with the columns of published data, if any.

        By default, it has one row per prompt: id, pair_id, side, text, gold, the factors, and the
        text of each segment.
        """
        import pandas as pd

        rows = [
            {
                **{name: getattr(prompt, name) for name in ("id", "pair_id", "side", "text")},
                "gold": prompt.answer.gold,
                **prompt.factors,
                **{name: prompt.segment_text(name) for name in prompt.segments},
            }
            for prompt in self.prompts(seed=seed, data=None)
        ]
        return pd.DataFrame(rows)

    def facts(self, *, data: str | None) -> PromptSet | None:
        """One prompt per fact underlying the prompts, from published data if `data` is set.

        None if the system has no facts. A fact's prompt requires a completion: its only side is
        `FACT_SIDE`, and its answer is a `Completion`. Factors are category, entity_group, entity_a
        (the answer), entity_b (the subject of the fact), and text_NAME for each other wording.
        """
        return None

    def planted_probability(self, model: str, prompts: "pd.DataFrame") -> "pd.Series | None":
        """The planted probability, per prompt, that the ratio's first segment decides the answer.

        None if nothing is planted in the model.

        Args:
            model: name of the model.
            prompts: the prompts table of a run.
        """
        return None

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The columns of `interp models` for an organism of this system, from its card."""
        return {}


def system_names() -> list[str]:
    """Names of the installed systems."""
    return list(plugins(SYSTEMS))


def find_system(name: str) -> System:
    """The system with this name.

    Raises:
        UserError: no such system is installed, or the system cannot be loaded or is not a `System`.
    """
    system = load_plugin(SYSTEMS, "system", name)
    if not isinstance(system, System):
        expected = f"an instance of {System.__module__}.{System.__qualname__}"
        raise misfit(plugins(SYSTEMS)[name], system, expected)
    return system


def installed_system(name: str) -> System | None:
    """The system with this name; None if it is not installed."""
    return find_system(name) if name in system_names() else None


def base_system(variant: str) -> System | None:
    """The installed system that `variant` names or extends, as "name-mixed" extends "name"."""
    names = [name for name in system_names() if f"{variant}-".startswith(f"{name}-")]
    return find_system(max(names, key=len)) if names else None


def dependence_factor(system: str) -> str | None:
    """The factor that is the unit of tests: the system's `cluster` or, without one, its `unit`."""
    installed = installed_system(system)
    return None if installed is None else installed.cluster or installed.unit


def tell_counting(prompts: Sequence[Prompt]) -> None:
    """Say how the user's own prompts count: texts that occur several times, and lone prompts."""
    prompt_set = PromptSet.of(prompts)
    by_user = prompt_set.system == OWN_PAIRS or installed_system(prompt_set.system) is None
    if by_user and (note := counting_notes(prompt_set, dependence_factor(prompt_set.system))):
        echo(note)


def load_prompts(
    system: str = DEFAULT_SYSTEM,
    *,
    limit: int | Literal["all"] | None = None,
    seed: int = 0,
    data: str | None = None,
) -> PromptSet:
    """The prompts of a system, checked.

    Args:
        system: name of an installed system.
        limit: number of pairs, spread evenly over the system's strata, unit by unit of its design
            (`PromptSet.spread`), or "all"; None means the system's `default_limit`.
        seed: seed of the generated data and of the selection under a limit.
        data: CSV, JSON, JSONL or Parquet file, folder or hub name of published data, which replaces
            generated prompts.

    Raises:
        UserError: the system is unknown, the data cannot be read, ids occur twice, or a prompt
            lacks the other side of its pair.
    """
    from interp.prompts.own.table import holds_pairs

    for name, table in (("system", system), ("data", data)):
        if holds_pairs(table) if isinstance(table, str) else table is not None:
            raise UserError(f"{name} is {described(table)}; {_OWN_TABLE}")
    if system not in system_names() and Path(system).suffix:
        raise UserError(f"unknown system {shortened(system)!r}; {_OWN_TABLE}")
    for name, value, right in (
        ("seed", seed, isinstance(seed, int)),
        ("limit", limit, limit in (None, "all") or isinstance(limit, int)),
    ):
        if not right:
            raise UserError(f"{name} is {described(value)}; see help(interp.load_prompts)")
    return find_system(system).load(limit=limit, seed=seed, data=data)


_OWN_TABLE = (
    "expected the name of a system or of published data (see help(interp.load_prompts)); "
    "interp.read_pairs(table) reads your own pairs from a file or a data frame"
)


def load_facts(system: str = DEFAULT_SYSTEM, *, data: str | None = None) -> PromptSet:
    """The facts of a system as checked prompts.

    Raises:
        UserError: the system is unknown or has no facts, or the data cannot be read.
    """
    facts = find_system(system).facts(data=data)
    if facts is None:
        raise UserError(
            f"the system {system!r} has no facts to probe; expected one with a method "
            f"facts(*, data), such as {DEFAULT_SYSTEM}, or a table of your own facts (--data; in "
            "Python interp.read_facts)"
        )
    facts.check()
    return facts
