"""Where prompts come from: a system, a number of its pairs, and a seed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from interp import texts
from interp.choices import DEFAULT_SYSTEM, OWN_PAIRS
from interp.errors import UserError
from interp.options import FromText, Options

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet


class PromptSource(Options):
    """Which prompts of which system."""

    system: Annotated[str, FromText(texts.system)] = DEFAULT_SYSTEM
    """data set of prompts"""
    data: Annotated[str | None, FromText(texts.name, "SOURCE")] = None
    """published data instead of generated: a CSV, JSON, JSONL or Parquet file, a folder, or a hub
    name"""
    limit: Annotated[
        Annotated[int, Field(ge=1, le=texts.MOST_PAIRS)] | Literal["all"] | None,
        FromText(texts.limit, "N"),
    ] = None
    """take N pairs, both sides of each, spread evenly over what the system varies, all variants of
    an item together; or all (default: the system's or the study's own)"""
    seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """seed of data and selection"""
    template: Annotated[tuple[str, ...], FromText(texts.template, "TEXT")] = ()
    """phrasings of pairs of your own, such as "{premise1} {premise2}\\n{question}", in place of one
    segment per line; several make as many prompts of each"""

    @model_validator(mode="before")
    @classmethod
    def _own_pairs(cls, given: Any) -> Any:
        """Take the system that reads a user's own pairs if only a file of pairs is given."""
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
                f"a template composes pairs of your own (--system {OWN_PAIRS}); the prompts of "
                f"{self.system} have phrasings already"
            )
        return self

    def load(self) -> "PromptSet":
        """The prompts, drawn and checked.

        Raises:
            UserError: the system is unknown, or the data cannot be read.
        """
        from interp.prompts.systems import find_system

        prompts = self.drawn(self.whole(), find_system(self.system).default_limit)
        prompts.check()
        return prompts

    def whole(self) -> "PromptSet":
        """All prompts to draw from, not yet checked.

        Raises:
            UserError: the system is unknown, or the data cannot be read.
        """
        from interp.prompts.own.pairs import OwnPairs
        from interp.prompts.systems import find_system

        system = OwnPairs(self.template) if self.template else find_system(self.system)
        return system.prompts(seed=self.seed, data=self.data)

    def pairs(self, default: int | None) -> int | None:
        """How many pairs to take; None for all."""
        return None if self.limit == "all" else self.limit or default

    def drawn(self, prompts: "PromptSet", default: int | None) -> "PromptSet":
        """The number of these pairs that the limit sets, spread evenly."""
        pairs = self.pairs(default)
        return prompts if pairs is None else prompts.spread(pairs, self.seed)
