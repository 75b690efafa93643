"""Activations, as data: which sites are read, in which layers, and at which tokens."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from interp import texts
from interp.choices import RESERVED, VectorSite
from interp.errors import UserError, unknown
from interp.measurements.spec import Indices, Prompts, Spec
from interp.options import FromText

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model


class Activations(Spec):
    """Answers, and the vectors of some sites at some tokens of each prompt."""

    name: ClassVar[str] = "activations"
    shard_prompts: ClassVar[int] = 60
    unmerged: ClassVar[frozenset[str]] = frozenset({"activation_vectors"})
    result: ClassVar[str] = "interp.export.activations:Vectors"

    sites: Annotated[tuple[VectorSite, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        "resid_post",
    )
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v"""
    roles: Annotated[
        Annotated[tuple[str, ...], Field(min_length=1)] | None, FromText(texts.names, "NAME")
    ] = None
    """segments and roles whose tokens are read, such as premise2,last, or all for the whole prompt;
    prompts that lack one have no vector of it (default: the token at which the answer is read)"""
    tokens: Literal["last", "mean", "all"] = "last"
    """of a segment or role: its last token, the mean over its tokens, or all of them, one vector
    each"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts, some of which have each segment and role that is to be read.

        Raises:
            UserError: none has one of them.
        """
        known = dict.fromkeys(RESERVED)
        missing = set(self.roles or ()) - set(known)
        for prompt in prompts if missing else ():
            known |= dict.fromkeys((*prompt.segments, *prompt.roles))
            missing -= set(known)
            if not missing:
                break
        if missing:
            raise UserError(unknown("segment or role", min(missing), known))
        return prompts

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Answers and vectors."""
        from interp.tables import named

        return named("answers", "activation_vectors")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.activation_vectors import activation_vectors

        return activation_vectors(model, self, batch_tokens=batch_tokens)
