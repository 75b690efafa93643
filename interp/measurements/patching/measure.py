"""The measurement of patching, on pairs of prompts."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from interp.choices import CONTROL, COUNTERPART, SITES, PatchEstimate
from interp.console import begin_part
from interp.errors import UserError
from interp.measurements.specs import NATIVE, PATCHING, Circuits, Edges, Patch, Steer
from interp.measuring.core import Measurement, PromptRows
from interp.models.model import Model
from interp.models.sites import check_sites
from interp.patching.alignment import check_alignments
from interp.patching.cells import Backend, Cell, PatchedMetrics, PatchingPair, cells_of, control_of
from interp.patching.checks import check_causal, check_passes, check_patterns, check_sums
from interp.patching.estimates import Estimator
from interp.patching.exact import ExactRows, native_grid
from interp.patching.pairs import contrast_of, is_checked
from interp.patching.passes import answers_behind, read_whole
from interp.patching.sets import patch_nested
from interp.patching.tables import pair_row, patch_rows, set_row
from interp.plugins import BACKENDS, load_plugin
from interp.prompts.prompt import Prompt
from interp.reading.budget import TokenBudget, token_budget
from interp.reading.tokens import Batch, TokenizedPrompt, pad, token_roles
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.tables import Row

CPU_CELL_TOKENS = 512
"""Default budget of tokens in one forward pass over many cells on a CPU. A pass begins at the first
token that any of its cells patches, so smaller passes compute less. With 2,048 tokens, a grid of
4 layers x 60 tokens took 1.5 times as long."""

_Patched = tuple[str, Sequence[Cell], PatchedMetrics]
"""A method, the cells to which it was applied, and the resulting metrics."""

EXACT = "exact"
"""The method name for cells that were run; estimates have names of their own."""


@dataclass(frozen=True)
class PairMeasurement(Measurement):
    """A measurement whose batches are the two prompts of a pair, clean before corrupt."""

    spec: Patch | Edges | Circuits | Steer
    unit_id = "pair_id"

    def batches(self, prompts: Sequence[TokenizedPrompt]) -> Iterator[tuple[list[int], Batch]]:
        """The pairs, each as a batch; no pair is measured unless all pairs can be aligned.

        Raises:
            UserError: the prompts are not ordered pair by pair, or the policy cannot align a pair.
        """
        pairs = [_pair(prompts[first : first + 2]) for first in range(0, len(prompts), 2)]
        if not isinstance(self.spec, Steer):  # which brings nothing from one prompt to the other
            check_alignments(pairs, self.spec.policy)
        for index, pair in enumerate(pairs):
            yield [2 * index, 2 * index + 1], pad(self.model, pair)


def _pair(prompts: Sequence[TokenizedPrompt]) -> tuple[TokenizedPrompt, TokenizedPrompt]:
    if len({tokenized.prompt.pair_id for tokenized in prompts}) != 1 or len(prompts) != 2:
        ids = " and ".join(tokenized.prompt.id for tokenized in prompts)
        raise UserError(
            f"got {ids}; expected the two prompts of a pair: order the prompts with "
            "interp.patching.pairs.in_pairs"
        )
    return prompts[0], prompts[1]


def patching(model: Model, spec: Patch, *, batch_tokens: int | None = None) -> PairMeasurement:
    """Measure how activations from one prompt of each pair change the answer to the other prompt.

    Raises:
        UserError: the model lacks a site, layer or head.
    """
    check_sites(model, spec.sites, layers=spec.layers, heads=spec.heads)
    budget = token_budget(model, batch_tokens, on_cpu=CPU_CELL_TOKENS)
    measure_batch = _Patching(model, spec, budget)

    def error_rows(prompt: Prompt, error: str) -> PromptRows:
        key: Row = {"model": model.name, "pair_id": prompt.pair_id, "direction": spec.direction}
        return {"pairs": [{**key, "error": error}]}

    return PairMeasurement(model, spec, budget, measure_batch, error_rows)


class _Patching:
    """Patches pair by pair: runs every cell, or estimates all cells and runs some of them."""

    def __init__(self, model: Model, spec: Patch, budget: TokenBudget) -> None:
        self._model, self._spec = model, spec
        self._exact = _exact_backend(model, spec, budget)
        self._estimator = None if spec.estimate is None else _estimator(model, spec.estimate)
        reading = None if spec.backend != NATIVE else answers_behind(model, spec.answers)
        self._answer_tokens = AnswerTokenizer(model, reading)
        self._absent = "" if spec.layers else "; ".join(_absent_sites(model, spec.sites))
        self._checks = _checks(spec) if model.architecture.causal else []

    def __call__(self, batch: Batch) -> list[PromptRows]:
        """The rows of the pair for its first prompt, and no rows for its second."""
        model, spec = self._model, self._spec
        clean, corrupt = batch.prompts
        base, source = (clean, corrupt) if spec.direction == "noising" else (corrupt, clean)
        answers = self._answer_tokens(base).contrast(*contrast_of(clean.prompt, corrupt.prompt))

        def aligned(source: TokenizedPrompt) -> PatchingPair:
            whole = read_whole(model, base, source)
            return PatchingPair.aligned(base, source, answers, policy=spec.policy, whole=whole)

        if spec.granularity != "all":
            token_roles(source)  # raises an error if one of its segments has no tokens
        pair = aligned(source)
        with model.measuring():
            for check in self._checks:
                check(model, pair)
            self._checks = []  # a single pair suffices
        only = {"layers": spec.layers, "heads": spec.heads}
        cells = list(cells_of(model, base, spec.sites, granularity=spec.granularity, **only))
        checked = spec.guarantee is not None and is_checked(base.prompt.pair_id, spec.checked)
        verify = len(cells) if checked else spec.verify
        begin_part(0, 1 + spec.control)
        results = list(self._patched(pair, cells, verify=verify))
        summary = pair_row(model, pair, results[0][2], direction=spec.direction, cells=len(cells))
        summary |= {} if spec.guarantee is None else {"checked": checked}
        summary |= {"absent": self._absent} if self._absent else {}
        rows: PromptRows = {"pairs": [summary], "patches": self._rows(pair, results, COUNTERPART)}
        if spec.control:
            name, prompt = control_of(model, base.prompt)
            control = aligned(prompt)
            begin_part(1, 2)
            controlled = list(self._patched(control, cells, verify=verify))
            metric = controlled[0][2].source
            summary |= {"control": name}
            summary |= {"control_metric": metric} if math.isfinite(metric) else {}
            rows["patches"] += self._rows(control, controlled, CONTROL)
        if spec.sets and isinstance(self._exact, ExactRows):
            key = {name: summary[name] for name in ("model", "pair_id", "direction")}
            key["sites"] = ",".join(spec.sites)
            rows["node_sets"] = [
                {**key, **set_row(nested, results[0][2])}
                for nested in patch_nested(self._exact, pair, results[0])
            ]
        return [rows, {}]

    def _rows(self, pair: PatchingPair, results: Sequence[_Patched], source: str) -> list[Row]:
        kind = {"direction": self._spec.direction, "source": source}
        return [
            row
            for method, chosen, metrics in results
            for row in patch_rows(self._model, pair, chosen, metrics, method=method, **kind)
        ]

    def _patched(
        self, pair: PatchingPair, cells: Sequence[Cell], *, verify: int
    ) -> Iterator[_Patched]:
        """The exact metrics, or the estimates and the exact metrics of the verified cells."""
        if self._estimator is None or self._spec.estimate is None:
            yield EXACT, cells, self._exact.patch(pair, cells)
            return
        estimates = self._estimator.patch(pair, cells)
        yield self._spec.estimate, cells, estimates
        if verify:
            chosen = [cells[index] for index in _largest(estimates, verify)]
            yield EXACT, chosen, self._exact.patch(pair, chosen)


def _estimator(model: Model, label: str) -> Estimator:
    name, options = PATCHING.parsed(label)
    return Estimator(model, estimate=cast("PatchEstimate", name), **dict(options))


def _absent_sites(model: Model, sites: Sequence[str]) -> Iterator[str]:
    """For each site and reason, the layers that lack the site."""
    for site in sites:
        lacking: dict[str, list[int]] = {}
        for index, layer in enumerate(model.layers):
            for needed in dict.fromkeys((site, SITES[site].patched_at)):
                if needed in layer.lacks:
                    lacking.setdefault(layer.lacks[needed], []).append(index)
                    break
        for reason, layers in lacking.items():
            named = f"layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"
            yield f"{site} in {named}: {reason}"


def _checks(spec: Patch) -> list[Callable[[Model, PatchingPair], None]]:
    """Checks of the conditions under which patching a model gives correct results."""
    exact = spec.estimate is None or spec.verify > 0 or spec.guarantee is not None
    checks: list[Callable[[Model, PatchingPair], None]] = []
    if exact and spec.backend == NATIVE and "pattern" in spec.sites:
        checks.append(check_patterns)
    if spec.backend == NATIVE or spec.estimate is not None:
        checks.append(check_passes)
    # The backend nnsight checks sums itself, in its own session; TransformerLens has other modules.
    if spec.backend not in ("transformer-lens", "nnsight") or spec.estimate is not None:
        checks.append(lambda model, pair: check_sums(model, pair.base, spec.sites))
    return checks


def _largest(metrics: PatchedMetrics, count: int) -> list[int]:
    defined = [index for index, metric in enumerate(metrics.cells) if math.isfinite(metric)]
    return sorted(defined, key=lambda index: -abs(metrics.cells[index] - metrics.base))[:count]


def _exact_backend(model: Model, spec: Patch, budget: TokenBudget) -> Backend:
    if spec.backend == NATIVE:
        return native_grid(model, budget=budget)
    check_causal(model, f"the backend {spec.backend}")
    make = load_plugin(BACKENDS, "backend", spec.backend)
    options = {"remote": True, "batch_tokens": budget.tokens} if spec.remote else {}
    backend: Backend = make(model, **options)
    return backend
