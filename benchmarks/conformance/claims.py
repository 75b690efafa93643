"""What documentation promises, each as a computation that gives deviations and a tolerance.

Models are in float32, and the truth in float64. A number of a few layers is rounded
some hundreds of times, so it may be off by 1,000 units of float32's precision. A central difference
cannot be better than the precision to the power 2/3 where norms compute in float32 (as those of
transformers do in any precision); a hundred times that is allowed. Deviations are shares of the
largest entry of the truth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.conformance.libraries import Edges, Ids, Library, Site
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import PREMISES, organism

EPSILON = torch.finfo(torch.float32).eps
ROUNDED, DIFFERENCED = 1e3 * EPSILON, 1e2 * EPSILON ** (2 / 3)

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")

PLACE = 2
"""The token at which patches are compared, the first in which the prompts of a pair differ."""

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


class Case(NamedTuple):
    """A library's adapter with a subject, what is true of the same weights, and two prompts.

    The base prompt is explained or patched; the other is its counterpart.
    """

    library: Any
    truth: Truth
    base: Ids
    other: Ids

    def sites(self, *names: str) -> Iterator[Site]:
        """The sites with these names that library and type have, layer by layer."""
        for site in self.truth.sites.values():
            if site.name in names and self.library.has(site):
                yield site


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
        got, true = (own.activation(case.base, site) for own in (case.library, case.truth))
        true = true / site.factor if case.library.by_module else true
        yield Finding(apart(got, true), f"{site.name} of layer {site.layer}")


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
            asked = case.base, case.other, site, PLACE
            got, true = (own.patched(*asked) for own in (case.library, case.truth))
            off = abs(got - true) / max(abs(true), plain)
            yield Finding(off, f"{site.name} of layer {site.layer}")


def gradient(case: Case) -> Iterator[Finding]:
    """Gradients equal central differences of the embeddings in float64."""
    (got,) = case.library.gradients([case.base])
    true = case.truth.gradient(case.base)
    sizes = true.abs()
    kinds = {"entries": true, "sizes": sizes, "norm": true.norm(dim=-1), "mean": sizes.mean(-1)}
    yield Finding(apart(got, kinds[case.library.reduced]), tolerance=DIFFERENCED)


def complete(case: Case) -> Iterator[Finding]:
    """Integrated gradients add up to the change from their baseline, at their own steps.

    Twice the error that plain gradients have with as many steps is allowed, and rounding.
    """
    scores, baseline, steps = case.library.integrated(case.base, case.other)
    change, error = case.truth.between(case.base, baseline, steps)
    size = max(abs(change), float(scores.abs().max()))
    deviation = abs(float(scores.double().sum()) - change) / size
    yield Finding(deviation, tolerance=ROUNDED + 2 * error / size)


def edges(case: Case) -> Iterator[Finding]:
    """Scores of edges equal derivatives of exact patches of one edge at a time."""
    if not case.truth.parts.mlp:
        return
    true = case.truth.edges(case.base, case.other)
    got = case.library.edges(case.base, case.other)
    size = max(map(abs, true.values()))
    for edge, effect in true.items():
        off = abs(got.get(edge, torch.nan) - effect) / size
        yield Finding(off, " to ".join(edge), DIFFERENCED)


def batch(case: Case) -> Iterator[Finding]:
    """A prompt's numbers do not depend on other prompts, on padding or on their order."""
    given = list(case.truth.subject.prompts)
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
    for name in PREMISES:
        subject, premises = organism(name, PROMPTS // 2)
        made, wrong = library(subject), 0
        for ids, places in zip(subject.prompts, premises, strict=True):
            scores = made.importance(ids)
            sizes = {premise: abs(float(scores[own].sum())) for premise, own in places.items()}
            wrong += max(sizes, key=sizes.__getitem__) != name
        yield Finding(wrong / len(premises), f"planted in {name}", 1 - OFTEN)


CLAIMS: Mapping[str, Callable[[Case], Iterator[Finding]]] = {
    own.__name__: own
    for own in (sums, stream, added, weights, patch, gradient, complete, edges, batch)
}
"""Claims about the tiny models; `planted` is about organisms."""


@lru_cache(1)
def displaced(right: Any) -> type[Library]:
    """A negative control: an adapter whose numbers are of another layer, token, edge or prompt."""

    class Displaced(right):
        def activation(self, ids: Ids, site: Site) -> Tensor:
            turn = {"resid_mid": 1, "resid_post": 2}.get(site.name, 3)
            return super().activation(ids, site).roll(turn, 0)

        def weights(self, ids: Ids, layer: int) -> Tensor:
            return super().weights(ids, layer).roll(1, 0)

        def patched(self, base: Ids, other: Ids, site: Site, position: int) -> float:
            return float(super().patched(base, other, site, position + 6))

        def gradients(self, given: Sequence[Ids]) -> list[Tensor]:
            return [own.roll(1, 0) for own in super().gradients(given)]

        def integrated(self, ids: Ids, other: Ids) -> tuple[Tensor, Ids, int]:
            scores, baseline, steps = super().integrated(ids, other)
            return scores * (scores.abs() < scores.abs().max()), baseline, steps

        def edges(self, base: Ids, other: Ids) -> Edges:
            scores = super().edges(base, other)
            values = list(scores.values())
            return dict(zip(scores, [*values[1:], values[0]], strict=True))

        def together(self, given: Sequence[Ids]) -> list[Tensor]:
            return [own.roll(len(given) - 1, 0) for own in super().together(given)]

        def importance(self, ids: Ids) -> Tensor:
            scores = super().importance(ids)
            return scores.roll(len(scores) // 2, 0)

    return Displaced
