"""Patching as a measurement of prompts that come in pairs."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from interp.choices import DIRECTIONS, ESTIMATES, GRANULARITIES, PATCHING_BACKENDS, POLICIES
from interp.errors import UserError, unknown
from interp.measurements.core import Measurement, PromptRows
from interp.models.model import Model
from interp.models.rotary import is_long
from interp.models.sites import check_sites
from interp.patching.alignment import check_alignments
from interp.patching.cells import Backend, Cell, PatchedMetrics, PatchingPair, cells_of
from interp.patching.checks import check_passes, check_patterns, check_sums
from interp.patching.estimates import Estimator
from interp.patching.tables import pair_row, patch_rows
from interp.patching.whole import check_causal, native_grid
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, pad
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.tables import SCHEMAS

CPU_CELL_TOKENS = 512
"""Default budget of tokens in one forward pass over many cells on a CPU. A pass begins at the first
token that any of its cells patches, so that smaller ones compute less: with 2,048 tokens a grid of
4 layers x 60 tokens took 1.5 times as long."""

EXACT = "exact"
"""The method of cells that were run; estimates go by their own names."""


@dataclass(frozen=True)
class PairMeasurement(Measurement):
    """A measurement whose batches are the two prompts of a pair, clean before corrupt."""

    policy: str
    """How tokens are aligned where they differ in number."""

    def unit(self, prompt: Prompt) -> str:
        """The id of what is measured as one: the pair."""
        return prompt.pair_id

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """Pair by pair; no pair is measured unless all can be aligned.

        Raises:
            UserError: prompts that do not stand pair by pair, pairs that the policy does not align.
        """
        pairs = [_pair(prompts[first : first + 2]) for first in range(0, len(prompts), 2)]
        check_alignments(pairs, self.policy)
        for index, pair in enumerate(pairs):
            yield [2 * index, 2 * index + 1], pad(self.model, pair)


def _pair(prompts: Sequence[TokenizedPrompt]) -> tuple[TokenizedPrompt, TokenizedPrompt]:
    if len({tokenized.prompt.pair_id for tokenized in prompts}) != 1 or len(prompts) != 2:
        ids = " and ".join(tokenized.prompt.id for tokenized in prompts)
        raise UserError(
            f"{ids} stand where the two prompts of a pair should; order the prompts by "
            "interp.patching.pairs.in_pairs"
        )
    one, other = prompts
    return one, other


def patching(
    model: Model,
    *,
    sites: Sequence[str] = ("resid_pre",),
    granularity: str = "role",
    direction: str = "denoising",
    policy: str = "last",
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    estimate: str | None = None,
    verify: int = 0,
    backend: str = "native",
    remote: bool = False,
    batch_tokens: int | None = None,
) -> PairMeasurement:
    """Measure what activations of one prompt of each pair do to the answer to the other.

    Raises:
        UserError: an unknown choice, a site, layer or head that the model lacks, choices that
            exclude each other.
    """
    _check_choices(granularity, direction, policy, estimate, backend)
    _check_combination(estimate, verify, backend, remote)
    check_sites(model, sites, layers=layers, heads=heads)
    if batch_tokens is None and model.device.type == "cpu":
        batch_tokens = CPU_CELL_TOKENS
    budget = token_budget(model, batch_tokens)
    exact = _exact_backend(model, backend, remote=remote, budget=budget)
    estimator = None if estimate is None else Estimator(model, estimate=estimate)
    answer_tokens = AnswerTokenizer(model)
    causal = model.architecture.causal
    checks = _checks(sites, estimate, verify, backend) if causal else []

    def measure_batch(batch: Batch) -> list[PromptRows]:
        clean, corrupt = batch.prompts
        base, source = (clean, corrupt) if direction == "noising" else (corrupt, clean)
        pair = PatchingPair.aligned(
            base,
            source,
            answer_tokens(base),
            policy=policy,
            whole=is_long(model, max(len(base), len(source))),
        )
        with model.measuring():
            # The first pair stands for all.
            while checks:
                checks[-1](model, pair)
                checks.pop()
        cells = list(
            cells_of(model, base, sites, granularity=granularity, layers=layers, heads=heads)
        )
        results = list(_patched(exact, estimator, pair, cells, verify=verify))
        patches = [
            row
            for method, chosen, metrics in results
            for row in patch_rows(model, pair, chosen, metrics, direction=direction, method=method)
        ]
        summary = pair_row(model, pair, results[0][2], direction=direction, cells=len(cells))
        # The rows of a pair stand with its first prompt.
        return [{"pairs": [summary], "patches": patches}, {"pairs": [], "patches": []}]

    parameters = {
        "sites": list(sites),
        "granularity": granularity,
        "direction": direction,
        "policy": policy,
        "layers": None if layers is None else list(layers),
        "heads": None if heads is None else list(heads),
        "estimate": estimate,
        "verify": verify,
        "backend": backend,
    }
    tables = {name: SCHEMAS[name] for name in ("pairs", "patches")}
    return PairMeasurement(model, "patch", parameters, tables, budget, measure_batch, policy)


def _checks(
    sites: Sequence[str], estimate: str | None, verify: int, backend: str
) -> list[Callable[[Model, PatchingPair], None]]:
    """What must hold of a model for its patching to be right."""
    exact = estimate is None or verify > 0
    checks: list[Callable[[Model, PatchingPair], None]] = []
    if exact and backend == "native" and "pattern" in sites:
        checks.append(check_patterns)
    if backend == "native" or estimate is not None:
        checks.append(check_passes)
    if backend != "transformer-lens" or estimate is not None:
        checks.append(partial(check_sums, sites=sites))
    return checks


def _patched(
    exact: Backend,
    estimator: Estimator | None,
    pair: PatchingPair,
    cells: Sequence[Cell],
    *,
    verify: int,
) -> Iterator[tuple[str, Sequence[Cell], PatchedMetrics]]:
    """Methods with the cells that they were used for and the metrics that they gave."""
    if estimator is None:
        yield EXACT, cells, exact.patch(pair, cells)
        return
    estimates = estimator.patch(pair, cells)
    yield estimator.estimate, cells, estimates
    if verify:
        chosen = [cells[index] for index in _largest(estimates, verify)]
        yield EXACT, chosen, exact.patch(pair, chosen)


def _largest(metrics: PatchedMetrics, count: int) -> list[int]:
    """The indices of the cells with the largest effects, whatever their sign."""
    defined = [index for index, metric in enumerate(metrics.cells) if math.isfinite(metric)]
    defined.sort(key=lambda index: -abs(metrics.cells[index] - metrics.base))
    return defined[:count]


def _exact_backend(model: Model, backend: str, *, remote: bool, budget: TokenBudget) -> Backend:
    if backend != "native":
        check_causal(model, f"the backend {backend}")
    if backend == "transformer-lens":
        from interp.backends.transformer_lens import TransformerLensBackend

        return TransformerLensBackend(model)
    if backend == "nnsight":
        from interp.backends.nnsight import NnsightBackend

        return NnsightBackend(model, remote=remote)
    return native_grid(model, budget=budget)


def _check_choices(
    granularity: str, direction: str, policy: str, estimate: str | None, backend: str
) -> None:
    choices: list[tuple[str, str, Iterable[str]]] = [
        ("granularity", granularity, GRANULARITIES),
        ("direction", direction, DIRECTIONS),
        ("policy", policy, POLICIES),
        ("backend", backend, PATCHING_BACKENDS),
    ]
    if estimate is not None:
        choices.append(("estimate", estimate, ESTIMATES))
    for kind, got, known in choices:
        if got not in known:
            raise UserError(unknown(kind, got, known))


def _check_combination(estimate: str | None, verify: int, backend: str, remote: bool) -> None:
    if verify < 0:
        raise UserError(f"{verify} cells to verify; expected 0 or more")
    if verify and estimate is None:
        raise UserError(
            "cells are to be verified, but nothing is estimated: exact patching needs no "
            "verification; give an estimate too, or leave verify out"
        )
    if remote and backend != "nnsight":
        raise UserError(f"the backend {backend} does not run remotely; give the backend nnsight")
