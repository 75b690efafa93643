"""What documentation promises, each as a computation that gives a deviation and a tolerance.

Models are in float32, and derivatives of the truth in float64. A number of a few layers is rounded
some hundreds of times, so it may be off by 1,000 units of float32's precision. A central difference
cannot be better than the precision to the power 2/3 where norms compute in float32 (as those of
transformers do in any precision); a hundred times that is allowed. Deviations are shares of the
largest entry of the truth.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.conformance.libraries import Library, Site
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import Ids, Planted, organism

EPSILON = torch.finfo(torch.float32).eps
ROUNDED, DIFFERENCED = 1e3 * EPSILON, 1e2 * EPSILON ** (2 / 3)

SITES = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")

PLACE = 2
"""The token at which patches are compared: the first in which the prompts of a pair differ."""

PROMPTS, OFTEN = 12, 0.75
"""Prompts of each organism, and the least share of them in which the planted premise must lead:
by chance, 9 of 12 in both organisms happen once in 200 times."""


class Finding(NamedTuple):
    """How far a library is from the truth, how far it may be, and where that was."""

    deviation: float
    tolerance: float
    about: str = ""

    @property
    def holds(self) -> bool:
        """Whether the claim holds; a number that is not finite is no number."""
        return self.deviation <= self.tolerance


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
            for site in names:
                place = self.truth.place(site, layer)
                if place is not None and self.library.has(own := Site(site, layer, place[0])):
                    yield own

    def read(self, site: Site) -> Tensor:
        """What is true of a site, without the factor if users name the module themselves."""
        place = self.truth.place(site.name, site.layer)
        assert place is not None
        factor = place[2] if self.library.by_module else 1.0
        return self.truth.read(self.base, site.name, site.layer) / factor


def apart(got: Tensor, true: Tensor) -> float:
    """The largest difference as a share of the largest entry; infinite for another shape."""
    if got.shape != true.shape:
        return torch.inf
    difference = (got.detach().double() - true.detach().double()).abs().max()
    return float(difference / true.abs().max().clamp(min=1e-30).double())


def _worst(each: Iterator[tuple[float, str]], tolerance: float) -> Finding | None:
    found = list(each)
    if not found:
        return None
    # A number that is none is worse than any.
    deviation, about = max(found, key=lambda own: own[0] if own[0] == own[0] else torch.inf)
    return Finding(deviation, tolerance, about)


def sums(case: Case) -> Finding | None:
    """The library's own resid_pre + attn_out are its resid_mid, and with mlp_out its resid_post."""

    def each() -> Iterator[tuple[float, str]]:
        for layer in range(case.truth.layers):
            sites = [site for site in case.sites(*SITES) if site.layer == layer]
            own = {site.name: case.library.activation(case.base, site) for site in sites}
            if {"attn_out", "mlp_out"} <= own.keys():
                middle = own["resid_pre"] + own["attn_out"]
                if "resid_mid" in own:
                    yield apart(middle, own["resid_mid"]), f"resid_mid of layer {layer}"
                yield (
                    apart(middle + own["mlp_out"], own["resid_post"]),
                    f"resid_post of layer {layer}",
                )

    return _worst(each(), ROUNDED)


def _activations(case: Case, *names: str) -> Finding | None:
    each = (
        (apart(case.library.activation(case.base, site), case.read(site)), _told(site))
        for site in case.sites(*names)
    )
    return _worst(each, ROUNDED)


def _told(site: Site) -> str:
    return f"{site.name} of layer {site.layer}"


def stream(case: Case) -> Finding | None:
    """The stream before and after each layer equals what hooks at transformers' layers see."""
    return _activations(case, "resid_pre", "resid_post")


def added(case: Case) -> Finding | None:
    """What attention and MLP add, and the stream between, equal what hooks at modules see."""
    return _activations(case, "resid_mid", "attn_out", "mlp_out")


def weights(case: Case) -> Finding | None:
    """Attention weights equal those of transformers' plain attention."""
    each = (
        (apart(case.library.weights(case.base, layer), true), f"layer {layer}")
        for layer in range(case.truth.layers)
        if (true := case.truth.weights(case.base, layer)) is not None
    )
    return _worst(each, ROUNDED)


def patch(case: Case) -> Finding | None:
    """A patch of one token changes the answer as a plain hook does."""

    def each() -> Iterator[tuple[float, str]]:
        plain = abs(case.truth.metric(case.base))
        for site in case.sites(*SITES):
            # After the last layer no other token reads this one.
            if site.layer < case.truth.layers - 1 or site.name == "resid_pre":
                vector = case.truth.read(case.other, site.name, site.layer)[PLACE]
                true = case.truth.patched(case.base, site.name, site.layer, PLACE, vector)
                got = case.library.patched(case.base, case.other, site, PLACE)
                yield abs(got - true) / max(abs(true), plain), _told(site)

    return _worst(each(), ROUNDED)


def gradient(case: Case) -> Finding | None:
    """Gradients equal central differences of the embeddings in float64."""
    got, reduced = case.library.gradient(case.base)
    true = case.exact.gradient(case.base)
    if reduced != "entries":
        sizes = true.abs()
        true = {"sizes": sizes, "norm": true.norm(dim=-1), "mean": sizes.mean(-1)}[reduced]
    return Finding(apart(got, true), DIFFERENCED)


def complete(case: Case) -> Finding | None:
    """Integrated gradients add up to the change from their baseline, at their own steps.

    Twice the error is allowed that plain gradients have by the midpoint or the trapezoid rule with
    as many steps, whichever is worse, and rounding.
    """
    scores, baseline, steps = case.library.integrated(case.base, case.other)
    change, error = case.exact.between(case.base, baseline, steps)
    size = max(abs(change), float(scores.abs().max()))
    deviation = abs(float(scores.double().sum()) - change) / size
    return Finding(deviation, ROUNDED + 2 * error / size)


def edges(case: Case) -> Finding | None:
    """Scores of edges equal derivatives of exact patches of one edge at a time."""
    if not case.truth.parts.mlp:
        return None
    true = case.exact.edges(case.base, case.other)
    got = case.library.edges(case.base, case.other)
    size = max(map(abs, true.values()))
    each = (
        (abs(got.get(edge, torch.nan) - effect) / size, " to ".join(edge))
        for edge, effect in true.items()
    )
    return _worst(each, DIFFERENCED)


def batch(case: Case) -> Finding | None:
    """A prompt's numbers do not depend on other prompts, on padding or on their order."""
    given = list(case.truth.subject.ids)
    together = case.library.together(given)
    given = given[: len(together)]
    turned = case.library.together(given[::-1])[::-1]
    return _worst(
        (
            (apart(own, alone), f"prompt {place} {how}")
            for place, ids in enumerate(given)
            for alone in case.library.together([ids])
            for how, own in (("in a batch", together[place]), ("in another order", turned[place]))
        ),
        ROUNDED,
    )


def planted(library: type[Library]) -> Finding:
    """The premise that decides by construction gets the larger score, in each of two organisms.

    The deviation is the share of prompts in which it does not, in the worse of the two.
    """

    def missed(name: Planted) -> float:
        subject, premises = organism(name, PROMPTS // 2)
        made = library(subject)
        wrong = 0
        for ids, own in zip(subject.ids, premises, strict=True):
            scores = made.importance(ids)
            sizes = {premise: abs(float(scores[places].sum())) for premise, places in own.items()}
            wrong += max(sizes, key=sizes.__getitem__) != name
        return wrong / len(subject.ids)

    shares = {name: missed(name) for name in ("premise1", "premise2")}
    worst = max(shares, key=shares.__getitem__)
    return Finding(shares[worst], 1 - OFTEN, f"planted in {worst}")


CLAIMS: Mapping[str, Callable[[Case], Finding | None]] = {
    own.__name__: own
    for own in (sums, stream, added, weights, patch, gradient, complete, edges, batch)
}
"""Claims about the tiny models; `planted` is about organisms."""
