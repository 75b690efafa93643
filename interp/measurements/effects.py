"""Effects of segments, as data: which segments, and how many donors replace them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

from pydantic import Field

from interp import texts
from interp.measurements.spec import Prompts, Spec
from interp.options import FromText
from interp.prompts.donors import DONORS

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model

MOST_DONORS = 256


class Effects(Spec):
    """What each segment does to the answer, by donors that replace it."""

    name: ClassVar[str] = "effects"
    shard_prompts: ClassVar[int] = 60
    result: ClassVar[str] = "interp.results.effects:SegmentEffects"

    segments: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None, FromText(texts.names, "NAME")
    ] = None
    """which segments are exchanged, such as premise1,premise2; the others stay (default: all that
    the system has donors for)"""
    donors: Annotated[int, Field(ge=1, le=MOST_DONORS)] = DONORS
    """donors of each prompt from other instances of its template"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.attribution.coalitions import check_segments
        from interp.prompts.mixing import with_donors

        arranged = with_donors(prompts, count=self.donors, segments=self.segments)
        for donor in arranged[0].donors[:1]:
            check_segments(arranged[0], tuple(donor.segments))
        return cast("Prompts", arranged)

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Effects, and the values that they are computed from."""
        from interp.tables import named

        return named("segment_effects", "coalition_values")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.segment_effects import segment_effects

        return segment_effects(model, self, batch_tokens=batch_tokens)
