"""Patching through nnsight: one session per pair, in this process or on NDIF's servers.

A session reads both prompts once, makes what each patch writes, runs the patched prompts in
batches, and returns the logits of the answers' tokens. A remote session is sent as source code with
the variables that it names. The server has the weights but not this package, so the variables are
plain data: paths of modules, positions, columns. The model here only lends the names of its
modules.

Importing nnsight adds a method to every Python object and replaces `Tensor.backward`, so only this
module imports it.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from copy import deepcopy
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers.pipelines import get_task

from interp.choices import SITES
from interp.console import echo
from interp.errors import ModelError, UserError, one_line
from interp.models.load import check_on_hub
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import layers_with, locate
from interp.patching.alignment import bring
from interp.patching.cells import (
    UNDEFINED,
    Cell,
    PatchedMetrics,
    PatchingPair,
    acts_at,
    has_counterpart,
)
from interp.patching.checks import SHARE, SUMS, wrong_sum
from interp.patching.passes import SiteKey, metrics_of
from interp.scoring.rounding import spacing_at

try:
    from httpx import HTTPError
    from nnsight import CONFIG, save
    from nnsight.intervention.backends.remote import RemoteError
    from nnsight.modeling.transformers import TransformersModel
    from websocket import WebSocketException
except ImportError as error:
    raise UserError(
        "the backend nnsight is not installed; run pip install 'interp[nnsight]'"
    ) from error

ROWS = 32
"""Largest number of cells in one pass."""

NDIF = "https://api.ndif.us"
"""The public server, which asks for a key; another server (NDIF_HOST) may not."""

Place = tuple[str, str]
"""A module's path, and the end at which a site is: input or output."""

_Rows = list[tuple[list[list[int]], list[int] | slice]]
"""The positions and columns that each row of a pass writes."""

_Patch = tuple[Place, Place, Place | None, _Rows]
"""Where cells of one site and layer are written, where the source is read, what of the base is
subtracted from it, and the cells' rows."""


class NnsightBackend:
    """Runs the cells of a pair in one session of nnsight.

    If `remote`, it runs on NDIF's servers, and the model's weights may be absent; a UserError says
    why no server can be asked. Passes have at most `ROWS` cells and `batch_tokens` tokens.
    """

    def __init__(
        self, model: Model, *, remote: bool = False, batch_tokens: int | None = None
    ) -> None:
        self._model = model
        self._batch_tokens = batch_tokens
        self._where: dict[str, Any] = {"remote": True} if remote else {}
        self._nnsight: Any = _served(model) if remote else _wrapped(model)
        self._paths = {module: path for path, module in model.hf.named_modules()}
        self._checked: set[str] = set()
        self._told = False

    def patch(self, pair: PatchingPair, cells: Sequence[Cell]) -> PatchedMetrics:
        """The metrics of a pair under each cell; a ModelError if a server, or a sum, fails."""
        cells_at: defaultdict[SiteKey, list[int]] = defaultdict(list)
        for index, cell in enumerate(cells):
            if has_counterpart(pair, cell):
                cells_at[cell.site, cell.layer].append(index)
        keys = sorted(cells_at)
        unchecked = sorted({site for site, _ in keys if site in SUMS} - self._checked)
        sums = [
            (site, layer)
            for site in unchecked
            for layer in ([] if self._model.anatomy.measured else layers_with(self._model, site))
        ]
        logits, wrong, kinds = self._session(
            pair,
            [self._patch(pair, key, [cells[index] for index in cells_at[key]]) for key in keys],
            [[self._place((part, layer)) for part in SUMS[site]] for site, layer in sums],
        )
        for key, differs in zip(sums, wrong, strict=True):
            if differs:
                raise wrong_sum(self._model, *key)
        self._checked.update(unchecked)
        if self._where and not self._told:
            self._tell_type(kinds, logits)
            self._told = True
        base, source, *patched = metrics_of(wide(logits), pair.answers)
        metrics = [UNDEFINED] * len(cells)
        for index, metric in zip((i for key in keys for i in cells_at[key]), patched, strict=True):
            metrics[index] = metric
        return PatchedMetrics(base, source, tuple(metrics))

    def _session(
        self, pair: PatchingPair, patches: Sequence[_Patch], sums: Sequence[Sequence[Place]]
    ) -> tuple[Float[Tensor, "row token"], list[bool], list[str]]:
        """Run a session: its block names nothing of this package.

        Returns the logits of the answers' tokens (base prompt, source prompt, each cell), whether
        each last place differs from the sum of the others, and the activations' type, if read.
        """
        model, scale, share = self._nnsight, self._model.residual_scale, SHARE
        tokens = [*pair.answers.positive, *pair.answers.negative]
        length, sources = len(pair.base), len(pair.source)
        unit = torch.eye(sources, dtype=torch.float64)[:, None]
        shares = bring(unit, pair.alignment, start=0)[:, 0]
        rows = max(1, min(ROWS, (self._batch_tokens or ROWS * length) // length))
        bases = [place for _, _, place, _ in patches if place is not None]
        prompts = [
            (torch.tensor([pair.base.token_ids]), sorted({*bases, *chain(*sums)})),
            (torch.tensor([pair.source.token_ids]), sorted({place for _, place, _, _ in patches})),
        ]
        with self._model.measuring(), self._answered(), model.session(**self._where):
            logits, acts, wrong = [], [], []
            with torch.no_grad():
                for ids, places in prompts:
                    modules = [model.get(path) for path, _ in places]
                    with model.trace({"input_ids": ids}) as tracer:
                        cache = tracer.cache(modules=modules, device=None, include_inputs=True)
                        logits.append(model.output.logits[:, -1, tokens].cpu())
                    values = {}
                    for (path, end), module in zip(places, modules, strict=True):
                        cached = cache[module.path]
                        value = cached.input if end == "input" else cached.output
                        values[path, end] = (value[0] if isinstance(value, tuple) else value)[0]
                    acts.append(values)
                for first, *added, last in sums:
                    parts = [acts[0][first].float()]
                    parts += [scale * acts[0][place].float().to(parts[0]) for place in added]
                    total = acts[0][last].float().to(parts[0])
                    error = (torch.stack(parts).sum(0) - total).norm(dim=-1)
                    size = torch.stack(parts).norm(dim=-1).sum(0)
                    wrong.append(bool((error > share * size).any()))
                for (path, end), source, beside, cells in patches:
                    written = shares.to(acts[1][source]) @ acts[1][source]
                    if beside is not None:
                        written = (written - acts[0][beside].to(written)) / scale
                    for start in range(0, len(cells), rows):
                        chunk = cells[start : start + rows]
                        ids = prompts[0][0].expand(len(chunk), -1)
                        with model.trace({"input_ids": ids}):
                            module = model.get(path)
                            value = module.input if end == "input" else module.output
                            patched = (value[0] if isinstance(value, tuple) else value).clone()
                            for row, (at, columns) in enumerate(chunk):
                                patched[row, at, columns] = written[at, columns].to(patched)
                            if end == "input":
                                module.input = patched
                            elif isinstance(value, tuple):
                                module.output = (patched, *value[1:])
                            else:
                                module.output = patched
                            logits.append(model.output.logits[:, -1, tokens].cpu())
                kinds = [str(value.dtype) for value in acts[1].values()][:1]
                saved = save([torch.cat(logits), wrong, kinds])
        return tuple(saved)

    def _patch(self, pair: PatchingPair, key: SiteKey, cells: Sequence[Cell]) -> _Patch:
        """What a session needs to patch some cells of one site and layer."""
        site, layer = SITES[key[0]], key[1]
        target = acts_at(cells[0])
        beside = None if site.beside is None else self._place((site.beside, layer))
        # Cells share these lists, so that a request holds each of them once.
        columns = {head: self._columns(target, head) for head in {cell.head for cell in cells}}
        at = {
            group: [[p] for p in group.positions if pair.alignment.sources[p]]
            for group in {cell.group for cell in cells}
        }
        rows = [(at[cell.group], columns[cell.head]) for cell in cells]
        return self._place(target), self._place(key), beside, rows

    def _place(self, key: SiteKey) -> Place:
        location, layer = locate(self._model, *key), self._model.layers[key[1]]
        scales = {part.scale for part in (*layer.mixer, *layer.mlp)}
        plain = scales <= {self._model.residual_scale} and layer.kept == 1.0
        if location.others or location.flat_in is not None or layer.streams > 1 or not plain:
            raise UserError(
                f"the backend nnsight cannot patch {key[0]} in layer {key[1]} of "
                f"{self._model.name} ({self._model.hf.config.model_type}), which is not one "
                "module's plain output; use --backend native"
            )
        return self._paths[location.module], location.end

    def _columns(self, key: SiteKey, head: int | None) -> list[int] | slice:
        """The columns of a module's tensor that belong to a head; all columns without a head."""
        if head is None:
            return slice(None)
        location = locate(self._model, *key)
        sizes = ("in_features", "nx") if location.end == "input" else ("out_features", "nf")
        width = next(getattr(location.module, n) for n in sizes if hasattr(location.module, n))
        columns: list[int] = location.view(torch.arange(width)[None, None])[0, 0, head].tolist()
        return columns

    def _tell_type(self, kinds: Sequence[str], logits: Float[Tensor, "row token"]) -> None:
        """Check that a server computes in the type on record, and say how this rounds logits."""
        for kind in kinds:
            used = kind.removeprefix("torch.")
            if used != self._model.dtype:
                raise ModelError(
                    f"the server computes {self._model.name} in {used}, but {self._model.dtype} is "
                    f"on record for it; pass --dtype {used}"
                )
        spacing = spacing_at(logits.abs().flatten().tolist(), self._model.dtype)
        if spacing is not None:
            echo(
                f"the server computes {self._model.name} in {self._model.dtype}, which rounds its "
                f"logits to multiples of {spacing:.3g}; effects of this size may be rounding"
            )

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """Turn the errors of a server, and of the way to it, into one message."""
        if not self._where:
            yield
            return
        try:
            # nnsight shows a job's status on standard output, which is for results.
            with redirect_stdout(sys.stderr):
                yield
        except (RemoteError, HTTPError, WebSocketException, OSError, ValueError) as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = one_line(lines[-1] if lines else type(error).__name__, 300)
            raise ModelError(
                f"{CONFIG.API.HOST} did not run {self._model.name}: {reason}. Finished pairs of a "
                "run are kept: repeat the command to continue it. nnsight.status() lists the "
                "models that are served, and --batch-tokens makes passes smaller"
            ) from error


def _wrapped(model: Model, **options: Any) -> Any:
    """The model as nnsight's: the same modules, and a tokenizer in which nnsight sets padding."""
    stays = {} if model.has_weights else {"device": "meta"}
    return TransformersModel(model.hf, tokenizer=deepcopy(model.tokenizer), **stays, **options)


def _served(model: Model) -> Any:
    """The model as nnsight's, under the name by which a server knows it."""
    check_on_hub(model)
    host, name = CONFIG.API.HOST, model.source["name"]
    if not host.startswith(("http://", "https://")):
        raise UserError(f"the server is {host!r} (NDIF_HOST); expected a URL, such as {NDIF}")
    if host == NDIF and not CONFIG.API.APIKEY:
        raise UserError(
            "NDIF asks for an API key; set NDIF_API_KEY, or store a key with nnsight login"
        )
    # Without a terminal, each change of nnsight's status line would be a new line.
    CONFIG.APP.REMOTE_LOGGING = CONFIG.APP.REMOTE_LOGGING and sys.stderr.isatty()
    revision = model.source["revision"]
    try:
        # A server knows a model by its task on the hub, too.
        served = _wrapped(
            model, task=get_task(name), revision=None if revision == "main" else revision
        )
        served.repo_id = name
        served.to_model_key()
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(
            f"the hub does not say what {name} is for, by which servers know it: "
            f"{one_line(str(error), 300)}"
        ) from error
    return served
