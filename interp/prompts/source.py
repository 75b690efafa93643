"""Where prompts come from, as data: a system, how many of its pairs, and a seed."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from interp import texts
from interp.options import FromText, Options

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet

DEFAULT_LIMIT = 480
"""Pairs that are taken where neither the user nor the system says how many."""


class PromptSource(Options):
    """Which prompts of which system."""

    system: Annotated[str, FromText(texts.system)] = "rulebreakers"
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

    def load(self) -> "PromptSet":
        """The prompts.

        Raises:
            UserError: an unknown system, or data that cannot be read.
        """
        from interp.prompts.systems import find_system, load_prompts

        default: int = getattr(find_system(self.system), "default_limit", DEFAULT_LIMIT)
        return load_prompts(self.system, limit=self.pairs(default), seed=self.seed, data=self.data)

    def pairs(self, default: int) -> int | None:
        """How many pairs are taken; None for all."""
        return None if self.limit == "all" else self.limit or default
