"""Activation patching, as data: what is patched, where, and in which direction."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from pydantic import Field, model_validator

from interp import texts
from interp.choices import Granularity, Policy, SiteName
from interp.errors import UserError
from interp.measurements.spec import Indices, Prompts, Spec
from interp.options import FromText

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.measurements.core import Measurement
    from interp.models.model import Model


class Patch(Spec):
    """The effect on the answer of activations that come from the other prompt of a pair."""

    name: ClassVar[str] = "patch"
    shard_prompts: ClassVar[int] = 60
    numberless: ClassVar[frozenset[str]] = frozenset({"remote"})
    result: ClassVar[str] = "interp.results.patches:Patches"

    sites: Annotated[tuple[SiteName, ...], Field(min_length=1), FromText(texts.names, "NAME")] = (
        "resid_pre",
    )
    """resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, pattern"""
    granularity: Granularity = "role"
    """what is patched at once: the tokens of each role or segment together, each position alone, or
    all tokens"""
    direction: Literal["denoising", "noising"] = "denoising"
    """denoising: clean activations into the corrupt prompt; noising: the other way"""
    clean: str | None = None
    """the clean side of a pair (default: the system's first)"""
    policy: Policy = "last"
    """where differing spans have unequal numbers of tokens: last, mean, or all to refuse such
    pairs"""
    layers: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which layers, such as 0,2,5 or 0-2 (default: all)"""
    heads: Annotated[Indices | None, FromText(texts.numbers, "N")] = None
    """which heads, such as 0,2,5 or 0-2 (default: all)"""
    estimate: Literal["gradient", "integrated"] | None = None
    """estimate all effects from one backward pass (gradient) or five (integrated) instead of
    running each patch"""
    verify: Annotated[int, Field(ge=0, le=texts.MOST_TOKENS)] = 0
    """run the K cells with the largest estimates of each pair exactly"""
    guarantee: Annotated[float | None, Field(gt=0, lt=1), FromText(texts.share, "P")] = None
    """bound the effects that are only estimated: of a pair that is not checked, no effect at a site
    exceeds its bound, with probability P, such as 0.95"""
    checked: Annotated[float, Field(gt=0, lt=1), FromText(texts.share, "SHARE")] = 0.25
    """share of the pairs that a guarantee checks by running all of their cells exactly"""
    sets: bool = False
    """patch growing sets of cells at once, the largest effects first, and in a random order"""
    control: bool = False
    """run each patch a second time, from a control: the same prompt about other entities, with the
    same correct answer"""
    backend: Literal["native", "transformer-lens", "nnsight"] = "native"
    """native, transformer-lens or nnsight"""
    remote: bool = False
    """run a hub model on NDIF's servers, by nnsight"""

    @model_validator(mode="after")
    def _check_together(self) -> "Patch":
        if self.verify and self.estimate is None:
            raise UserError(
                "cells are to be verified, but nothing is estimated: exact patching needs no "
                "verification; give an estimate too, or leave verify out"
            )
        if self.guarantee is not None and (self.estimate is None or self.verify):
            raise UserError(
                "a guarantee bounds the errors of estimates, from pairs of which all cells are run "
                "exactly; give an estimate with it, and leave verify out"
            )
        if self.sets and (self.backend != "native" or "pattern" in self.sites):
            raise UserError(
                f"sets of cells are patched natively, and not at the site pattern; got the backend "
                f"{self.backend} and the sites {', '.join(self.sites)}. Leave the backend out, and "
                "give z for pattern"
            )
        if self.remote and self.backend != "nnsight":
            raise UserError(
                f"the backend {self.backend} does not run remotely; give the backend nnsight"
            )
        return self

    def arranged(self, prompts: Prompts) -> Prompts:
        """The prompts pair by pair, the clean one before the corrupt one; for controls with donors.

        Raises:
            UserError: prompts that are no pairs, or that have no donors to make controls of.
        """
        from interp.patching.pairs import in_pairs
        from interp.prompts.mixing import with_donors

        pairs = in_pairs(prompts, clean=self.clean)
        return cast("Prompts", with_donors(pairs, count=1) if self.control else pairs)

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """Pairs, patched cells, and with `sets` sets of them."""
        from interp.tables import named

        return named("pairs", "patches", "node_sets")

    def bind(self, model: "Model", *, batch_tokens: int | None = None) -> "Measurement":
        """The measurement of a model."""
        from interp.measurements.patching import patching

        return patching(model, self, batch_tokens=batch_tokens)
