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


class _Selection(Options):
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
                from interp.prompts.own.table import holds_pairs

                return {**given, "system": OWN_PAIRS} if holds_pairs(data) else given
        return given

    @model_validator(mode="after")
    def _check_template(self) -> "_Selection":
        if self.template and self.system != OWN_PAIRS:
            raise UserError(
                f"a template composes your own pairs (--system {OWN_PAIRS}); the prompts of "
                f"{self.system} already have phrasings"
            )
        return self


class Around(Options):
    """What is written around prompts."""

    shots: Annotated[int, Field(ge=0, le=texts.MOST_SHOTS)] = 0
    """demonstrations before each prompt: N other prompts with their correct answers, from other
    clusters and without its entities, balanced over sides and answers, the same for both sides of a
    pair"""
    shots_seed: Seed = 0
    """seed of the draw and of the order of the demonstrations"""
    instruction: Annotated[str | None, FromText(texts.passage, "TEXT")] = None
    """a first line for each prompt, also for each demonstration"""
    answer_prefix: Annotated[str | None, FromText(texts.passage, "TEXT")] = None
    """beginning of the answer, such as "Answer:", after which it is read; also that of the
    demonstrations' answers"""

    @model_validator(mode="after")
    def _check_seed(self) -> "Around":
        if self.shots_seed and not self.shots:
            raise UserError("got a seed of shots, but no shots; name their number with --shots N")
        return self

    def around(self, prompts: "PromptSet") -> "PromptSet":
        """The prompts with the instruction, demonstrations and answer prefix that are asked for."""
        if not self.written:
            return prompts
        from interp.prompts.around import with_messages

        return with_messages(prompts, **self.written)

    @property
    def written(self) -> dict[str, Any]:
        """The options that ask for something around the prompts, with their values."""
        drawn = {"shots": self.shots, "shots_seed": self.shots_seed} if self.shots else {}
        texts = {"instruction": self.instruction, "answer_prefix": self.answer_prefix}
        return drawn | {name: text for name, text in texts.items() if text is not None}


class PromptSource(Around, _Selection):
    """The choice of a system, of its prompts, and of what is written around them."""

    def load(self) -> "PromptSet":
        """The prompts, drawn and checked, with what is written around them."""
        return self.around(self._system().load(limit=self.limit, seed=self.seed, data=self.data))

    def whole(self) -> "PromptSet":
        """All prompts to draw from, not yet checked."""
        return self._system().prompts(seed=self.seed, data=self.data)

    def _system(self) -> "System":
        if self.template:
            from interp.prompts.own.pairs import OwnPairs

            return OwnPairs(self.template)
        from interp.prompts.systems import find_system

        return find_system(self.system)

    def pairs(self, default: int | None) -> int | None:
        """Number of pairs to take; None for all."""
        return None if self.limit == "all" else self.limit or default

    def drawn(self, prompts: "PromptSet", default: int | None) -> "PromptSet":
        """The prompts of as many pairs as the limit allows, spread evenly (see `around`)."""
        pairs = self.pairs(default)
        return self.around(prompts if pairs is None else prompts.spread(pairs, self.seed))
