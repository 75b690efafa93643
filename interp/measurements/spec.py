"""Specs: what to measure, as data that can be checked, written down and sent to a worker.

A spec knows no model. It is checked when it is made, and bound to a model only to run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import Field, JsonValue

from interp import texts
from interp.options import Options
from interp.plugins import MEASUREMENTS, load_plugin

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.source import PromptSource

Prompts = TypeVar("Prompts", bound=Sequence[Any])
"""A sequence of prompts of some type, such as a list or a `PromptSet`."""

Indices = Annotated[
    tuple[Annotated[int, Field(ge=0, lt=texts.MOST_LAYERS)], ...], Field(min_length=1)
]
"""Layers or heads, by number."""


class Spec(Options, ABC):
    """A measurement: its options, and what it makes of a model.

    A subclass sets `name` and defines `bind`. One that is registered under the entry point group
    `interp.measurements` can be run by workers and reported on from its folder.
    """

    name: ClassVar[str]
    """What is measured, such as "evaluate"."""
    shard_prompts: ClassVar[int] = 240
    """Prompts in a shard: what is lost at most when a worker is killed, and what workers share
    out. The more a prompt costs, the fewer."""
    own_answers: ClassVar[bool] = True
    """Whether its answers are the model's own; those of random weights are not."""
    numberless: ClassVar[frozenset[str]] = frozenset()
    """Options that no number depends on, such as where something is computed."""
    unmerged: ClassVar[frozenset[str]] = frozenset()
    """Tables that stay in the shards, since the end of a run writes what they hold in another
    form."""
    result: ClassVar[str] = "interp.results.result:Result"
    """Where the class of its results is: "module:Class"."""

    @abstractmethod
    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model, under a budget of tokens in a batch.

        Raises:
            UserError: something that this model lacks, such as a layer.
        """

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """The tables that it fills, whatever its options, by name: see `interp.tables`.

        `interp tables` describes those that are named here.
        """
        return {}

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
        return self.model_dump(mode="json", exclude=set(self.numberless))

    def modules(self) -> Sequence[str]:
        """The modules whose code, with all that it imports, the numbers depend on."""
        return (type(self).__module__,)


def find_spec(name: str) -> type[Spec]:
    """The spec that is registered under a name.

    Raises:
        UserError: there is none.
    """
    spec: type[Spec] = load_plugin(MEASUREMENTS, "measurement", name, base=Spec)
    return spec
