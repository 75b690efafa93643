"""What documentation promises, each as a computation that gives deviations and a tolerance.

Models are in float32, and derivatives of the truth in float64. A number of a few layers is rounded
some hundreds of times, so it may be off by 1,000 units of float32's precision. A central difference
cannot be better than the precision to the power 2/3 where norms compute in float32 (as those of
transformers do in any precision); a hundred times that is allowed. Deviations are shares of the
largest entry of the truth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from benchmarks.conformance.libraries import Library, Site
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import Planted, organism
from tests.zoo.passes import Ids

EPSILON = torch.finfo(torch.float32).eps
ROUNDED, DIFFERENCED = 1e3 * EPSILON, 1e2 * EPSILON ** (2 / 3)

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")

PLACE = 2
"""The token at which patches are compared: the first in which the prompts of a pair differ."""

PROMPTS, OFTEN = 12, 0.75
"""Prompts of each organism, and the least share of them in which the planted premise must lead:
by chance, 9 of 12 in both organisms happen once in 200 times."""


class Finding(NamedTuple):
    """How far a library is from the truth, where that was, and how far it may be."""

    deviation: float
    about: str = ""
    tolerance: float = ROUNDED

    @property
    def holds(self) -> bool:
        """Whether the claim holds; a number that is not finite is no number."""
        return self.deviation <= self.tolerance


def worst(findings: Iterable[Finding]) -> Finding | None:
    """The largest deviation; a number that is none is worse than any."""
    return max(
        findings, key=lambda own: (own.deviation != own.deviation, own.deviation), default=None
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A library's adapter with a subject, and what is true of the same weights."""

    library: Any
    """An instance of `Library`."""
    truth: Truth
    exact: Truth
    """In float64."""

    @property
    def base(self) -> Ids:
        """The prompt that is explained or patched."""
        return self.truth.subject.ids[1]

    @property
    def other(self) -> Ids:
        """Its counterpart."""
        return self.truth.subject.ids[0]

    def sites(self, *names: str) -> Iterator[Site]:
        """The sites with these names that library and type have, layer by layer."""
        for layer in range(self.truth.layers):
            for name in [own for own in names if (own, layer) in self.truth.places]:
                site = Site(name, layer, self.truth.places[name, layer][0])
                if self.library.has(site):
                    yield site

    def read(self, site: Site) -> Tensor:
        """What is true of a site, without the factor if users name the module themselves."""
        _, _, factor = self.truth.places[site.name, site.layer]
        true = self.truth.read(self.base, site.name, site.layer)
        return true / factor if self.library.by_module else true


def apart(got: Tensor, true: Tensor) -> float:
    """The largest difference as a share of the largest entry; infinite for another shape."""
    if got.shape != true.shape:
        return torch.inf
    difference = (got.detach().double() - true.detach().double()).abs().max()
    return float(difference / true.abs().max().clamp(min=1e-30).double())


def sums(case: Case) -> Iterator[Finding]:
    """The library's own resid_pre + attn_out are its resid_mid, and with mlp_out its resid_post."""
    for layer in range(case.truth.layers):
        sites = [site for site in case.sites(*SITES) if site.layer == layer]
        own = {site.name: case.library.activation(case.base, site) for site in sites}
        if {"attn_out", "mlp_out"} <= own.keys():
            middle = own["resid_pre"] + own["attn_out"]
            after = middle + own["mlp_out"]
            if "resid_mid" in own:
                yield Finding(apart(middle, own["resid_mid"]), f"resid_mid of layer {layer}")
            yield Finding(apart(after, own["resid_post"]), f"resid_post of layer {layer}")


def stream(case: Case, *names: str) -> Iterator[Finding]:
    """The stream before and after each layer equals what hooks at transformers' layers see."""
    for site in case.sites(*(names or ("resid_pre", "resid_post"))):
        got = case.library.activation(case.base, site)
        yield Finding(apart(got, case.read(site)), f"{site.name} of layer {site.layer}")


def added(case: Case) -> Iterator[Finding]:
    """What attention and MLP add, and the stream between, equal what hooks at modules see."""
    return stream(case, "resid_mid", "attn_out", "mlp_out")


def weights(case: Case) -> Iterator[Finding]:
    """Attention weights equal those of transformers' plain attention."""
    for layer in range(case.truth.layers):
        if (true := case.truth.weights(case.base, layer)) is not None:
            yield Finding(apart(case.library.weights(case.base, layer), true), f"layer {layer}")


def patch(case: Case) -> Iterator[Finding]:
    """A patch of one token changes the answer as a plain hook does."""
    plain = abs(case.truth.metric(case.base))
    for site in case.sites(*SITES):
        # After the last layer no other token reads this one.
        if site.layer < case.truth.layers - 1 or site.name == "resid_pre":
            vector = case.truth.read(case.other, site.name, site.layer)[PLACE]
            true = case.truth.patched(case.base, site.name, site.layer, PLACE, vector)
            got = case.library.patched(case.base, case.other, site, PLACE)
            off = abs(got - true) / max(abs(true), plain)
            yield Finding(off, f"{site.name} of layer {site.layer}")


def gradient(case: Case) -> Iterator[Finding]:
    """Gradients equal central differences of the embeddings in float64."""
    got, reduced = case.library.gradient(case.base)
    true = case.exact.gradient(case.base)
    if reduced != "entries":
        sizes = true.abs()
        true = {"sizes": sizes, "norm": true.norm(dim=-1), "mean": sizes.mean(-1)}[reduced]
    yield Finding(apart(got, true), tolerance=DIFFERENCED)


def complete(case: Case) -> Iterator[Finding]:
    """Integrated gradients add up to the change from their baseline, at their own steps.

    Twice the error is allowed that plain gradients have by the midpoint or the trapezoid rule with
    as many steps, whichever is worse, and rounding.
    """
    scores, baseline, steps = case.library.integrated(case.base, case.other)
    change, error = case.exact.between(case.base, baseline, steps)
    size = max(abs(change), float(scores.abs().max()))
    deviation = abs(float(scores.double().sum()) - change) / size
    yield Finding(deviation, tolerance=ROUNDED + 2 * error / size)


def edges(case: Case) -> Iterator[Finding]:
    """Scores of edges equal derivatives of exact patches of one edge at a time."""
    if not case.truth.parts.mlp:
        return
    true = case.exact.edges(case.base, case.other)
    got = case.library.edges(case.base, case.other)
    size = max(map(abs, true.values()))
    for edge, effect in true.items():
        off = abs(got.get(edge, torch.nan) - effect) / size
        yield Finding(off, " to ".join(edge), DIFFERENCED)


def batch(case: Case) -> Iterator[Finding]:
    """A prompt's numbers do not depend on other prompts, on padding or on their order."""
    given = list(case.truth.subject.ids)
    together = case.library.together(given)
    given = given[: len(together)]
    turned = case.library.together(given[::-1])[::-1]
    for place, ids in enumerate(given):
        (alone,) = case.library.together([ids])
        yield Finding(apart(together[place], alone), f"prompt {place} in a batch")
        yield Finding(apart(turned[place], alone), f"prompt {place} in another order")


def planted(library: type[Library]) -> Iterator[Finding]:
    """The premise that decides by construction gets the larger score, in each of two organisms.

    The deviation is the share of prompts in which it does not.
    """
    for name in get_args(Planted):
        subject, premises = organism(name, PROMPTS // 2)
        made, wrong = library(subject), 0
        for ids, places in zip(subject.ids, premises, strict=True):
            scores = made.importance(ids)
            sizes = {premise: abs(float(scores[own].sum())) for premise, own in places.items()}
            wrong += max(sizes, key=sizes.__getitem__) != name
        yield Finding(wrong / len(subject.ids), f"planted in {name}", 1 - OFTEN)


CLAIMS: Mapping[str, Callable[[Case], Iterator[Finding]]] = {
    own.__name__: own
    for own in (sums, stream, added, weights, patch, gradient, complete, edges, batch)
}
"""Claims about the tiny models; `planted` is about organisms."""
