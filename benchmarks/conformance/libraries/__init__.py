"""Adapters: what each library gives, by the names and calls of its own documentation.

Another package adds one by an entry point of the group `interp.conformance`, whose name is the
library's and which refers to a subclass of `Library`.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import ClassVar, Literal, NamedTuple

from benchmarks.conformance.types import Subject as Subject
from tests.zoo.passes import Ids as Ids

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
    """What a library gives for one subject, by those of these methods that its claims need.

    activation(ids, site): values, (token, width)
    weights(ids, layer): attention weights, (head, query, key)
    patched(base, other, site, position): the metric with another prompt's activation at one token
    gradient(ids): the metric's gradient by the embeddings, (token, ...), and what it is: `Reduced`
    integrated(ids, other): scores, (token,), the baseline's tokens (`other` where one chooses), and
        the number of steps
    edges(base, other): effects on the base prompt of what writers give for the other: `Edges`
    together(list of ids): what it gives for several prompts at once, (token, ...) for each
    importance(ids): a score for each token by which tokens are ranked, of any sign
    """

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

    def has(self, site: Site) -> bool:
        """Whether the library names a site in a layer."""
        return site.name in self.sites


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
    return own | others | own  # theirs come last, and replace none of ours


def adapter(name: str) -> type[Library]:
    """The adapter of a library; whatever the library raises when it is imported is raised."""
    found: type[Library] = EntryPoint(name, adapters()[name], "interp.conformance").load()
    return found
