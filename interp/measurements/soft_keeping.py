"""Attribution with tokens kept by their scores, as data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from interp.measurements.attribute import Attribute
from interp.measurements.spec import Prompts
from interp.prompts.prompt import DONORS

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model


class SoftKeeping(Attribute):
    """Attribution, and how much of the target is left when tokens are kept by their scores."""

    name: ClassVar[str] = "soft-keeping"
    shard_prompts: ClassVar[int] = 60

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts with their donors."""
        from interp.prompts.mixing import with_donors

        return cast("Prompts", with_donors(prompts, count=DONORS))

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Those of attribution, and what is left of the target."""
        from interp.tables import named

        return {**super().tables(), **named("soft_keeping")}

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.soft_attribution import soft_attribution

        return soft_attribution(model, self, batch_tokens=batch_tokens)
