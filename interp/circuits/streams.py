"""Contributions of writers to the residual stream, in the base prompt and the source prompt.

All tensors start at the first token at which the base prompt differs from the source prompt. A head
adds its slice of the output projection, times the scale of the norm after the attention if there is
one (Gemma 2, OLMo 2). Each prompt's own scale is used, so the writers' differences add up exactly
to the difference between the streams.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from interp.circuits.graph import Graph, StreamReader
from interp.errors import UserError
from interp.models.backward_rules import norm_form
from interp.models.layers import Layer
from interp.models.model import Model
from interp.patching.alignment import bring
from interp.patching.cells import PatchingPair
from interp.patching.passes import PairPasses, SiteKey, entrance, run_pair

Written = Float[Tensor, "writer token size"]
"""Contribution of each writer to the residual stream at each token."""


def writer_sites(graph: Graph) -> list[SiteKey]:
    """The sites from which the writers' contributions are computed."""
    sites: list[SiteKey] = [("resid_pre", 0)]
    for layer, shape in enumerate(graph.shapes):
        mixer = ("z" if shape.heads else "attn_out", layer)
        sites += [mixer] * shape.mixer + [("mlp_out", layer)] * shape.mlp
    return sites


def written_by_heads(
    layer: Layer, z: Float[Tensor, "row token width"]
) -> Float[Tensor, "head row token size"]:
    """Contribution of each head of a layer, from the outputs of all heads."""
    assert layer.heads is not None
    projection: Any = layer.heads.out
    weight = input_by_output(projection).to(z)
    by_head = z.view(*z.shape[:-1], layer.heads.count, -1)
    each = torch.einsum(
        "rthd,hds->hrts", by_head, weight.view(layer.heads.count, -1, weight.shape[1])
    )
    added = layer.mixer[0].module
    if added not in (layer.heads.module, projection):
        total = projection.forward(z)  # without hooks, one of which may call this
        each = norm_form(added, total).parts(each, total)
    return layer.mixer[0].scale * each


def input_by_output(module: nn.Module) -> Float[Tensor, "input output"]:
    """The weight of a linear module."""
    if isinstance(module, Conv1D):
        return module.weight.detach()
    if type(module) is nn.Linear:
        return module.weight.detach().T
    raise UserError(
        f"edges need the plain weights of attention projections, got {type(module).__name__}; "
        "load the model without quantization or offloading"
    )


@dataclass(frozen=True, slots=True)
class PairStreams:
    """The passes of both prompts of a pair, and the difference in each writer's contribution."""

    passes: PairPasses
    differences: Written
    """Source minus base at each base token; zero at tokens without a counterpart."""

    @classmethod
    def of(cls, model: Model, graph: Graph, pair: PatchingPair) -> "PairStreams":
        """Run a pair; call within `answers_alone`."""
        entrances = [entrance(model, layer) for layer in range(graph.layers + 1)]
        read = [stream_read(graph, reader) for reader in graph.readers]
        passes = run_pair(model, pair, [*writer_sites(graph), *entrances, *read])
        streams = cls(passes, _differences(model, graph, passes))
        streams._check(model, graph)
        # From here on, only the streams of the base prompt are needed.
        return replace(streams, passes=replace(passes, source=replace(passes.source, values={})))

    def at(self, site: str, layer: int) -> Float[Tensor, "1 token size"]:
        """The base prompt's residual stream at a site."""
        return self.passes.base.values[site, layer]

    def _check(self, model: Model, graph: Graph) -> None:
        key = entrance(model, graph.layers)
        base, source = (run.values[key] for run in (self.passes.base, self.passes.source))
        difference = _difference(base, source, self.passes.pair)[0]
        error = (self.differences.sum(0).to(difference) - difference).norm(dim=-1)
        size = self.differences.norm(dim=-1).sum(0).to(difference)
        # Where nothing but rounding differs, sums may be off by 16 roundings of the stream.
        eps = torch.finfo(difference.dtype).eps
        rounding = 16 * eps * base[0].norm(dim=-1).to(difference)
        if bool((error > max(1e-3, 4 * eps) * size + rounding).any()):
            raise UserError(
                f"{model.name} ({model.hf.config.model_type}) adds more to the residual stream "
                "than the outputs of its heads and MLPs, so effects of edges would be wrong; patch "
                "resid_pre, which is valid in every architecture"
            )


def _differences(model: Model, graph: Graph, passes: PairPasses) -> Written:
    """The differences of all writers; only one site's outputs are in memory at a time."""
    first_stream = passes.base.values["resid_pre", 0]
    differences = first_stream.new_empty(len(graph.writers), *first_stream.shape[1:])
    first = 0
    for site, layer in writer_sites(graph):
        base, source = (run.values[site, layer] for run in (passes.base, passes.source))
        if site == "z":
            block = model.layers[layer]
            base, source = (written_by_heads(block, z)[:, 0] for z in (base, source))
        end = first + len(base)
        differences[first:end] = _difference(base, source, passes.pair)
        first = end
    return differences


def _difference(
    base: Written, source: Float[Tensor, "writer source_token size"], pair: PatchingPair
) -> Written:
    """Source minus base at the base's tokens; zero at tokens without a counterpart."""
    brought = bring(source.transpose(0, 1), pair.alignment, start=pair.shared).transpose(0, 1)
    sources = pair.alignment.sources[pair.shared :]
    paired = torch.tensor([bool(tokens) for tokens in sources], device=base.device)
    return torch.where(paired[None, :, None], brought - base, 0)


def stream_read(graph: Graph, reader: StreamReader) -> SiteKey:
    """The site at which a reader reads the residual stream."""
    if reader.site == "logits":
        return "resid_post", graph.layers - 1
    shape = graph.shapes[reader.layer]
    between = reader.site == "mlp" and shape.mixer and not shape.parallel
    return ("resid_mid" if between else "resid_pre"), reader.layer
