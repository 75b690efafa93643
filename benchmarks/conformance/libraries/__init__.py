"""Adapters: what each library gives, by the names and calls of its own documentation.

Another package adds one by an entry point of the group `interp.conformance`, whose name is the
library's and which refers to a subclass of `Library`.
"""

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from benchmarks.conformance.types import Site as Site
from benchmarks.conformance.types import Subject as Subject
from tests.zoo.passes import Ids as Ids

Edges = dict[tuple[str, str], float]
"""First-order effects by writer and reader, named as in the toolkit's graphs."""


class Library:
    """What a library gives for one subject, by those of these methods that its claims need.

    activation(ids, site): values, (token, width)
    weights(ids, layer): attention weights, (head, query, key)
    patched(base, other, site, position): the metric with another prompt's activation at one token
    gradients(list of ids): the metric's gradients by the embeddings, (token, ...) for each prompt
    integrated(ids, other): scores, (token,), the baseline's tokens (`other` where one chooses), and
        the number of steps
    edges(base, other): effects on the base prompt of what writers give for the other: `Edges`
    importance(ids): a score for each token by which tokens are ranked, of any sign
    """

    packages: ClassVar[tuple[str, ...]]
    """The distributions whose versions are told; the first is the library's own."""
    claims: ClassVar[tuple[str, ...]] = ()
    """What its documentation says, by the names of claims; of ours, those in `sentences.csv`."""
    sites: ClassVar[tuple[str, ...]] = ("resid_pre", "resid_post", "attn_out", "mlp_out")
    reduced: ClassVar[Literal["entries", "sizes", "norm", "mean"]] = "entries"
    """What a gradient is for a token: all entries, their sizes, the L2 norm, or the mean size."""
    by_module: ClassVar[bool] = True
    """Whether users name modules, so that no sums are promised."""
    one_column: ClassVar[bool] = False
    """Whether only one logit, not a difference of two, can be explained."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def has(self, site: Site) -> bool:
        """Whether the library names a site in a layer."""
        return site.name in self.sites

    def together(self: Any, given: Sequence[Ids]) -> Any:
        """What a library gives for several prompts at once, (token, ...) for each."""
        return self.gradients(given)


_QUOTED = pd.read_csv(Path(__file__).parents[1] / "sentences.csv")
PACKAGED: dict[str, tuple[str, ...]] = _QUOTED.groupby("library")["claim"].agg(tuple).to_dict()
"""The claims of the libraries that have a module here with a class `Adapter`."""


def adapters() -> dict[str, str]:
    """The module and class of each adapter, by its library; the packaged ones come first."""
    own = {name: f"{__name__}.{name.replace('-', '_')}:Adapter" for name in PACKAGED}
    others = {point.name: point.value for point in entry_points(group="interp.conformance")}
    return own | others | own  # theirs come last, and replace none of ours


def adapter(name: str) -> type[Library]:
    """The adapter of a library; whatever the library raises when it is imported is raised."""
    found: type[Library] = EntryPoint(name, adapters()[name], "interp.conformance").load()
    found.claims = PACKAGED.get(name, found.claims)
    return found
