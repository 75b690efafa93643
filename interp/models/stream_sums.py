"""Find the sum that a stream is, from the numbers of one pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

Stream = Float[Tensor, "1 token size"]
Streams = Float[Tensor, "1 token stream size"]
"""Several parallel streams, which together are the residual stream (hyper-connections)."""

_MOST_PARTS = 3
"""Largest number of values that are added to a base."""
_MOST_WITH_MANY_BASES = 2
"""The same, for bases other than the first, since there are many combinations."""
_EXACT = 1e-5
"""Largest error of a sum that rounding explains in float32, relative to its summands."""
_PLAIN = 1e-3
"""Largest difference between two factors that rounding explains, relative to them."""
_ALIKE, _TINY = 10.0, 1e-12
"""Errors up to this many times the smallest one, or up to this error, are taken to be equal."""
_TRIED = 8
"""Number of sums of each size that are computed, those with the smallest estimated error first."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A stream as a base, times a factor, plus scaled values."""

    base: int
    factor: float
    parts: tuple[tuple[int, float], ...]
    """The index of each value, with its scale."""
    plain: bool = True
    """Whether the factor and the scales are the same for all channels; otherwise, they are 1
    here."""


@torch.no_grad()
def smallest_sum(
    target: Stream, bases: Sequence[Stream], values: Sequence[Stream], known: Sequence[float]
) -> Sum | None:
    """The sum with the fewest values that equals the target, up to rounding; None if there is none.

    One of the bases is in the sum, and some of the values. Among sums of equally many values, it is
    the one with the smallest error or, where errors are alike, with the first base. A factor that
    nearly equals a `known` one of the model is taken for it. A sum whose factors differ by channel
    is looked for only if no other is found.
    """
    if not values:
        return None
    target = target.cpu()  # where lstsq has a driver for matrices of any rank
    columns = torch.stack([x.to(target).flatten().double() for x in (*bases, *values, target)])
    products = columns @ columns.T
    for count in range(1, _MOST_PARTS + 1):
        chosen = torch.tensor(
            [
                [base, *(len(bases) + index for index in indices)]
                for base in range(len(bases))
                if base == 0 or count <= _MOST_WITH_MANY_BASES
                for indices in combinations(range(len(values)), count)
                if not any(values[index] is bases[base] for index in indices)
            ]
        )
        if not len(chosen):
            break
        best = _best(target, columns, products, chosen, known)
        if best is not None:
            parts = tuple((column - len(bases), scale) for column, scale in best.parts)
            return replace(best, parts=parts)
    return _by_channel(target, bases, values)


def _best(
    target: Stream,
    columns: Float[Tensor, "vector number"],
    products: Float[Tensor, "vector vector"],
    chosen: Tensor,
    known: Sequence[float],
) -> Sum | None:
    """The sum of chosen columns, its parts, with the smallest error, if rounding explains it."""
    square = products[chosen[:, :, None], chosen[:, None, :]]
    wanted = products[chosen, -1]
    factors = torch.linalg.lstsq(square, wanted[..., None], driver="gelsd").solution[..., 0]
    # Products cannot show errors as small as sums can.
    rest = (products[-1, -1] - (factors * wanted).sum(-1)).abs()
    tolerance = _tolerance(target.dtype)
    fitting: list[tuple[float, Sum]] = []
    for row in rest.argsort()[:_TRIED].tolist():
        if rest[row] > tolerance * products[-1, -1]:
            break
        first, *others = (_known(float(factor), known) for factor in factors[row])
        if abs(first) < _PLAIN or min(map(abs, others)) < _PLAIN:
            continue
        scales = torch.tensor([first, *others], dtype=columns.dtype, device=columns.device)
        summands = (scales[:, None] * columns[chosen[row]]).view(-1, *target.shape)
        error = error_of(summands.sum(0), target, summands)
        if error <= tolerance:
            base, *parts = chosen[row].tolist()
            fitting.append((error, Sum(base, first, tuple(zip(parts, others, strict=True)))))
    least = min((error for error, _ in fitting), default=0.0)
    alike = (sum_ for error, sum_ in fitting if error <= _ALIKE * least + _TINY)
    return min(alike, key=lambda sum_: sum_.base, default=None)


def _by_channel(target: Stream, bases: Sequence[Stream], values: Sequence[Stream]) -> Sum | None:
    """A base plus one value, each with a factor for every channel, plus a vector."""
    wide = [x.to(target)[0].T.double() for x in (*bases, *values, target)]
    for base in range(len(bases)):
        for index in range(len(values)):
            lhs = torch.stack([wide[base], wide[len(bases) + index], torch.ones_like(wide[-1])], -1)
            factors = torch.linalg.lstsq(lhs, wide[-1][..., None], driver="gelsd").solution
            summands = (lhs * factors.mT).permute(2, 1, 0)[:, None]
            needed = factors[:, :2, 0].abs().amax(0) > _PLAIN
            if needed.all() and error_of(summands.sum(0), target, summands) <= _EXACT:
                return Sum(base, 1.0, ((index, 1.0),), plain=False)
    return None


@torch.no_grad()
def mixed_of(
    target: Streams, bases: Sequence[Streams], values: Sequence[Stream]
) -> tuple[int, int] | None:
    """The base and the value of which all streams of the target are mixes; None if there are none.

    A mix is a sum in which each token has factors of its own (Zhu et al. 2024): from every stream
    of the base, and from the value, to every stream of the target.
    """
    (mix,) = target.cpu().double()
    streams, size = mix.shape[1:]
    tolerance = _tolerance(target.dtype)
    if size < 2 * (streams + 1):  # so few numbers are a mix of any others
        return None
    fitting: list[tuple[float, tuple[int, int]]] = []
    for index, base in enumerate(bases):
        for place, value in enumerate(values):
            columns = torch.cat([base[0].to(mix), value[0, :, None].to(mix)], 1).mT
            # The streams may be equal up to rounding, as they are behind the embeddings.
            factors = torch.linalg.lstsq(columns, mix.mT, rcond=tolerance, driver="gelsd").solution
            errors = (columns @ factors - mix.mT).norm(dim=1)
            sizes = columns.norm(dim=1)[..., None] * factors.abs()
            error = float((errors / sizes.sum(1).clamp(min=_TINY)).max())
            if error <= tolerance and bool((sizes[:, -1] > _PLAIN * sizes.sum(1)).any()):
                fitting.append((error, (index, place)))
    least = min((error for error, _ in fitting), default=0.0)
    return next((pair for error, pair in fitting if error <= _ALIKE * least + _TINY), None)


def _known(factor: float, known: Sequence[float]) -> float:
    return next((near for near in known if abs(factor - near) < _PLAIN * abs(near)), factor)


def error_of(
    computed: Stream, expected: Stream, summands: Float[Tensor, "summand 1 token n"]
) -> float:
    """The largest error of a token's vector, relative to the sizes of its summands."""
    difference = (computed.double() - expected.double()).norm(dim=-1)
    size = summands.double().norm(dim=-1).sum(0).clamp(min=torch.finfo(torch.float64).tiny)
    return float((difference / size).max())


def _tolerance(dtype: torch.dtype) -> float:
    return max(_EXACT, 4 * torch.finfo(dtype).eps)
