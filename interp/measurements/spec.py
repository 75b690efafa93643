"""Specs: what to measure, as data that can be checked, written down and sent to a worker.

A spec knows no model. It is checked when it is made, and bound to a model only to run
(`interp.measurements.core.bind`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field, JsonValue

from interp import texts
from interp.options import Options
from interp.plugins import MEASUREMENTS, load_plugin, named

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.source import PromptSource

Prompts = TypeVar("Prompts", bound=Sequence[Any])
"""A sequence of prompts of some type, such as a list or a `PromptSet`."""

Indices = Annotated[
    tuple[Annotated[int, Field(ge=0, lt=texts.MOST_LAYERS)], ...], Field(min_length=1)
]
"""Layers or heads, by number."""


class Spec(Options):
    """A measurement: its options, and where everything else about it is.

    A subclass that is registered under the entry point group `interp.measurements` can be run by
    workers and reported on from its folder, and has a command if it has a `help`. Places are
    "module:name", imported when they are needed, so that specs are read without torch.
    """

    name: ClassVar[str]
    """What is measured, such as "evaluate"."""
    help: ClassVar[str] = ""
    """One line on the command; without it there is none of this name."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Command lines, without the program's name."""
    written: ClassVar[str] = "written to {folder}"
    """What the command says at its end; {tables} are its small tables, {program} is how it was
    started."""
    group: ClassVar[str] = ""
    """The command that its own is a part of, as `probe` is of `probe linear`."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Options of prompts that its command does not take."""
    measures: ClassVar[str]
    """Place of the function that measures: of a model, the spec and `batch_tokens`, it makes a
    `Measurement`."""
    fills: ClassVar[tuple[str, ...]] = ()
    """Names of the tables that it fills."""
    optional: ClassVar[Mapping[str, str]] = {}
    """Tables that are filled only with an option, by name: the option."""
    schemas: ClassVar[str] = "interp.tables:SCHEMAS"
    """Place of the descriptions of these tables, by name."""
    shard_prompts: ClassVar[int] = 240
    """Prompts in a shard: what is lost at most when a worker is killed, and what workers share
    out. The more a prompt costs, the fewer."""
    own_answers: ClassVar[bool] = True
    """Whether its answers are the model's own; those of random weights are not."""
    excluded_from_identity: ClassVar[frozenset[str]] = frozenset()
    """Options that no number depends on, such as where something is computed."""
    unmerged: ClassVar[frozenset[str]] = frozenset()
    """Tables that stay in the shards, since the end of a run writes what they hold in another
    form."""
    result: ClassVar[str] = "interp.results.result:Result"
    """Place of the class of its results, which says what is shown of them."""

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """The tables that it fills, whatever its options, by name: see `interp.tables`."""
        schemas = named(cls.schemas) if cls.fills else {}
        return {name: schemas[name] for name in cls.fills}

    def filled(self) -> "Mapping[str, pa.Schema]":
        """The tables that it fills with these options."""
        tables = self.tables()
        left_out = {name for name, option in self.optional.items() if not getattr(self, option)}
        return {name: tables[name] for name in tables if name not in left_out}

    def load(self, source: "PromptSource") -> "PromptSet":
        """The prompts of a source, as they are measured.

        Raises:
            UserError: they cannot be loaded, or lack what is measured of them.
        """
        return self.arranged(source.load())

    def arranged(self, prompts: "Prompts") -> "Prompts":
        """The prompts in the order in which they are measured.

        Raises:
            UserError: they lack what is measured of them.
        """
        return prompts

    def identity(self) -> dict[str, JsonValue]:
        """Everything but model and prompts that the numbers depend on, defaults included."""
        return self.model_dump(mode="json", exclude=set(self.excluded_from_identity))

    def modules(self) -> Sequence[str]:
        """The modules whose code, with all that it imports, the numbers depend on."""
        return (type(self).__module__, self.measures.partition(":")[0])


def find_spec(name: str) -> type[Spec]:
    """The spec that is registered under a name.

    Raises:
        UserError: there is none.
    """
    spec: type[Spec] = load_plugin(MEASUREMENTS, "measurement", name, base=Spec)
    return spec


@dataclass(frozen=True)
class Stage:
    """One measurement of one prompt set."""

    name: str
    prompts: "PromptSet"
    spec: Spec
