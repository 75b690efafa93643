"""Adapters: what each library gives, by the names and calls of its own documentation.

Another package adds one by an entry point of the group `interp.conformance`, whose name is the
library's and which refers to a subclass of `Library`.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import ClassVar, Literal, NamedTuple

from torch import Tensor

from benchmarks.conformance.types import Ids, Subject

Reduced = Literal["entries", "sizes", "norm", "mean"]
"""What a gradient is for a token: all entries, their sizes, the L2 norm, or the mean size."""

Edges = dict[tuple[str, str], float]
"""First-order effects by writer and reader, named as in the toolkit's graphs."""


class Site(NamedTuple):
    """A site of a layer, by the toolkit's name, and the module of transformers that it is at."""

    name: str
    layer: int
    path: str


class Library:
    """What a library gives for one subject; of the methods, only those of its claims are called."""

    packages: ClassVar[tuple[str, ...]]
    """The distributions whose versions are told; the first is the library's own."""
    claims: ClassVar[tuple[str, ...]]
    """What its documentation says, by the names of claims (`sentences.csv` has the sentences)."""
    sites: ClassVar[tuple[str, ...]] = ("resid_pre", "resid_post", "attn_out", "mlp_out")
    by_module: ClassVar[bool] = True
    """Whether users name modules, so that no sums are promised."""
    one_column: ClassVar[bool] = False
    """Whether only one logit, not a difference of two, can be explained."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def activation(self, ids: Ids, site: Site) -> Tensor:
        """Values, (token, width)."""
        raise NotImplementedError

    def weights(self, ids: Ids, layer: int) -> Tensor:
        """Attention weights, (head, query, key)."""
        raise NotImplementedError

    def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
        """The metric of a prompt with another's activation at one token."""
        raise NotImplementedError

    def gradient(self, ids: Ids) -> tuple[Tensor, Reduced]:
        """The metric's gradient with respect to the embeddings, (token, ...)."""
        raise NotImplementedError

    def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
        """Scores, (token,), the baseline's tokens (`other` where one chooses), and the steps."""
        raise NotImplementedError

    def edges(self, base: Ids, other: Ids) -> Edges:
        """Effects on the base prompt of what writers give for the other."""
        raise NotImplementedError

    def together(self, given: Sequence[Ids]) -> list[Tensor]:
        """What it gives for several prompts at once, a tensor (token, ...) for each."""
        raise NotImplementedError

    def importance(self, ids: Ids) -> Tensor:
        """A score for each token by which tokens are ranked, of any sign."""
        raise NotImplementedError


PACKAGED = {
    "interp": "own:Interp",
    "inseq": "inseq:Inseq",
    "captum": "captum:Captum",
    "transformer-lens": "transformer_lens:TransformerLens",
    "nnsight": "nnsight:Nnsight",
    "nnterp": "nnterp:Nnterp",
    "interpreto": "interpreto:Interpreto",
    "lxt": "lxt:Lxt",
}


def adapters() -> dict[str, str]:
    """The module and class of each adapter, by its library; the packaged ones come first."""
    own = {name: f"{__name__}.{where}" for name, where in PACKAGED.items()}
    others = {point.name: point.value for point in entry_points(group="interp.conformance")}
    return {**own, **{name: value for name, value in others.items() if name not in own}}


def adapter(name: str) -> type[Library]:
    """The adapter of a library.

    Raises:
        Exception: the library, or what it needs, cannot be imported.
    """
    module, _, attribute = adapters()[name].partition(":")
    found: type[Library] = getattr(import_module(module), attribute)
    return found
