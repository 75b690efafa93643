"""Generated texts, as data: how long, how sampled, where they stop."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from interp import texts
from interp.measurements.spec import Spec
from interp.options import FromText

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model

MAX_NEW_TOKENS = 256


class Generate(Spec):
    """What a model generates behind each prompt, judged by the prompt's own answer."""

    name: ClassVar[str] = "generate"
    shard_prompts: ClassVar[int] = 60
    result: ClassVar[str] = "interp.results.answers:Completions"

    max_new_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] = MAX_NEW_TOKENS
    """most tokens of a text"""
    temperature: Annotated[float, Field(ge=0), FromText(texts.number, "T")] = 0.0
    """0 takes the most probable token, above that tokens are sampled"""
    sampling_seed: Annotated[int, Field(ge=0, le=texts.LARGEST_SEED)] = 0
    """decides, with the prompt's id, what is sampled"""
    stop: tuple[Annotated[str, FromText(str, "TEXT")], ...] = ()
    """texts that end the generation; they and what follows are left out"""

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Generated texts."""
        from interp.tables import named

        return named("completions")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.generation import generation

        return generation(model, self, batch_tokens=batch_tokens)
