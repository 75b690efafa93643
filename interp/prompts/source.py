"""Options that select prompts: a system or a data source, a number of pairs, and a seed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from interp import texts
from interp.choices import DEFAULT_SYSTEM, OWN_PAIRS
from interp.errors import UserError
from interp.options import FromText, Options

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.systems import System

Seed = Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)]


class PromptSource(Options):
    """The choice of a system and of its prompts."""

    system: Annotated[str, FromText(texts.system)] = DEFAULT_SYSTEM
    """data set of prompts"""
    data: Annotated[str | None, FromText(texts.name, "SOURCE")] = None
    """published data to use instead of generated data: a CSV, JSON, JSONL or Parquet file, a
    folder, or a hub name
    """
    limit: Annotated[
        Annotated[int, Field(ge=1, le=texts.MOST_PAIRS)] | Literal["all"] | None,
        FromText(texts.limit, "N"),
    ] = None
    """take N whole pairs, spread evenly over the factors of the system, with all variants of an
    item together; or all (default: set by the system or study)
    """
    seed: Seed = 0
    """seed for generating and selecting the prompts"""
    template: Annotated[tuple[str, ...], FromText(texts.template, "TEXT")] = ()
    """phrasings of your own pairs, such as "{premise1} {premise2}\\n{question}", instead of one
    segment per line; each phrasing turns every row into a prompt"""

    @model_validator(mode="before")
    @classmethod
    def _own_pairs(cls, given: Any) -> Any:
        """Use the system that reads a user's own pairs if only a file of pairs is given."""
        if isinstance(given, Mapping) and "system" not in given:
            data = given.get("data")
            if isinstance(data, str):
                from interp.prompts.own.pairs import holds_pairs

                return {**given, "system": OWN_PAIRS} if holds_pairs(data) else given
        return given

    @model_validator(mode="after")
    def _check_template(self) -> "PromptSource":
        if self.template and self.system != OWN_PAIRS:
            raise UserError(
                f"a template composes your own pairs (--system {OWN_PAIRS}); the prompts of "
                f"{self.system} already have phrasings"
            )
        return self

    def load(self) -> "PromptSet":
        """The prompts, drawn and checked."""
        return self._system().load(limit=self.limit, seed=self.seed, data=self.data)

    def whole(self) -> "PromptSet":
        """All prompts to draw from, not yet checked."""
        return self._system().prompts(seed=self.seed, data=self.data)

    def _system(self) -> "System":
        from interp.prompts.own.pairs import OwnPairs
        from interp.prompts.systems import find_system

        return OwnPairs(self.template) if self.template else find_system(self.system)

    def pairs(self, default: int | None) -> int | None:
        """Number of pairs to take; None for all."""
        return None if self.limit == "all" else self.limit or default

    def drawn(self, prompts: "PromptSet", default: int | None) -> "PromptSet":
        """The prompts of as many pairs as the limit allows, spread evenly."""
        pairs = self.pairs(default)
        return prompts if pairs is None else prompts.spread(pairs, self.seed)
