"""Estimates of all edge effects from a few backward passes.

The score of an edge is a sum over tokens: the difference between the writer's source and base
outputs, times the gradient of the metric with respect to the residual stream *through the reader
only*:

1. The base prompt is run with autograd, and the metric is differentiated with respect to the output
   of each query, key and value projection and of each MLP.
2. Each head's gradient is propagated back through that head's part of the projection to the
   attention's input, and through the model's own norm to the stream, for many readers at once. The
   gradient of an MLP's or a whole mixer's output is propagated back through it.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor

from interp.choices import INTEGRATION_STEPS, EdgeEstimate
from interp.circuits.exact import LayerRuns, ReaderOutputs, writing
from interp.circuits.graph import EdgeValues, Graph, StreamReader
from interp.circuits.streams import PairStreams, input_by_output, stream_read
from interp.models.backward_rules import GIM, PLAIN, backward_rules
from interp.models.model import Model
from interp.models.precision import wide
from interp.models.sites import Edit, LocatedEdit, Location, attention_by, edited, locate, recorded
from interp.patching.estimates import embeddings_of, middles
from interp.patching.passes import SiteKey, forward, logit_difference, with_answers

AT_ONCE = 2**19
"""Largest number of elements of the readers' gradients, or of the writers' vectors, that are
multiplied at once; raised to 1/32 of the writers' elements if that is more. Multiplying all
elements at once would need more memory than the backward pass."""


class EdgeEstimator:
    """Estimates the effects of one model's edges.

    Estimates:
        gradient: first order at the base prompt (edge attribution patching, Syed et al. 2023).
        integrated: mean gradient over points between the two prompts' embeddings
            (EAP-IG, Hanna et al. 2024).
        activations: mean gradient while the writer's own output moves from its base value to its
            source value (EAP-IG with activations, Mueller et al. 2025).
        softmax: first order, except that the attention weights under a patched query or key are
            computed exactly (AtP*, Kramar et al. 2024).
        gim: first order, with the backward rules of GIM (Edin et al. 2025).
    """

    def __init__(
        self, model: Model, graph: Graph, estimate: EdgeEstimate, *, steps: int = INTEGRATION_STEPS
    ) -> None:
        model.check_differentiable(f"the estimate {estimate!r}")
        self._model = model
        self._graph = graph
        self.estimate = estimate
        self._points = middles(steps)

    def effects(self, streams: PairStreams) -> EdgeValues:
        """The estimated change in the metric per patched edge; call within `answers_alone`."""
        return {
            "gradient": self._gradient,
            "integrated": self._integrated,
            "activations": self._activations,
            "softmax": self._softmax,
            "gim": self._gradient,
        }[self.estimate](streams)

    def _gradient(self, streams: PairStreams) -> EdgeValues:
        base, _ = self._embeddings(streams)
        rules = GIM if self.estimate == "gim" else PLAIN
        with backward_rules(self._model, rules):
            return first_order(self._model, self._graph, streams, base)

    def _integrated(self, streams: PairStreams) -> EdgeValues:
        base, written = self._embeddings(streams)
        points = (torch.lerp(base, written, step) for step in self._points)
        scores = [first_order(self._model, self._graph, streams, point) for point in points]
        return torch.stack(scores).mean(0)

    def _activations(self, streams: PairStreams) -> EdgeValues:
        base, _ = self._embeddings(streams)
        total = torch.zeros(self._graph.edges.shape, dtype=torch.float64)
        for step in self._points:
            for writers, location, change in self._writes(streams):
                moved = [(location, _adding(step * change))]
                scores = first_order(
                    self._model, self._graph, streams, base, edits=moved, writers=writers
                )
                total[:, writers] += scores[:, writers] / len(self._points)
        return total

    def _writes(self, streams: PairStreams) -> Iterator[tuple[slice, Location, Tensor]]:
        """Groups of writers, each with its location and its change from base to source."""
        model, differences = self._model, streams.differences
        yield slice(0, 1), locate(model, "resid_pre", 0), differences[0]
        for layer, shape in enumerate(self._graph.shapes):
            mixer = self._graph.heads_of(layer)
            groups = [(mixer, "attn_out")] * shape.mixer
            groups += [(slice(mixer.stop, mixer.stop + 1), "mlp_out")] * shape.mlp
            for writers, site in groups:
                yield writers, locate(model, site, layer), differences[writers].sum(0)

    def _softmax(self, streams: PairStreams) -> EdgeValues:
        model, graph = self._model, self._graph
        graph.check_heads("estimates with exact attention weights (softmax)")
        base, _ = self._embeddings(streams)
        layers = range(graph.layers)
        patterns = {("pattern", layer): locate(model, "pattern", layer) for layer in layers}
        with attention_by(model, "eager"):
            differentiated = _differentiated(model, graph, streams, base, also=patterns)
            scores, gradients, weights = differentiated
            with torch.no_grad():
                runs = LayerRuns(model, graph, streams)
                for layer in layers:
                    pattern, gradient = weights["pattern", layer][0], gradients["pattern", layer][0]
                    for readers in runs.outputs(layer, streams.differences):
                        if readers.site in ("q", "k"):
                            changed = _patterns(model, runs, streams, readers) - pattern
                            by_head = torch.einsum("whqk,hqk->hw", changed, gradient)
                            _, _, heads, _ = readers.outputs.shape
                            summed = by_head.view(heads, -1, by_head.shape[1]).sum(1)
                            rows = slice(readers.first, readers.first + heads)
                            scores[rows, : summed.shape[1]] = summed.to(scores)
        return scores

    def _embeddings(self, streams: PairStreams) -> tuple[Tensor, Tensor]:
        """The result of `embeddings_of` for the pair, from the first differing token on."""
        pair = streams.passes.pair
        base, written = embeddings_of(self._model, pair)
        return base[:, pair.shared :], written[:, pair.shared :]


def _adding(change: Tensor) -> Edit:
    return lambda tensor: tensor + change.to(tensor)


def _patterns(
    model: Model, runs: LayerRuns, streams: PairStreams, readers: ReaderOutputs
) -> Float[Tensor, "writer head query key"]:
    """Attention weights of a layer with patched queries or patched keys."""
    view = locate(model, readers.site, readers.layer).view
    stream = streams.at("resid_pre", readers.layer).expand(len(readers.outputs), -1, -1)
    edits = [(readers.site, writing(view, readers.outputs))]
    return runs.alone(readers.layer, stream, ["pattern"], edits)["pattern"]


def first_order(
    model: Model,
    graph: Graph,
    streams: PairStreams,
    embeddings: Float[Tensor, "1 token size"],
    *,
    edits: Sequence[LocatedEdit] = (),
    writers: slice = slice(None),
) -> EdgeValues:
    """Scores by one backward pass at `embeddings`, within `answers_alone`; NaN of other writers."""
    return _differentiated(model, graph, streams, embeddings, edits=edits, writers=writers)[0]


@torch.enable_grad()
def _differentiated(
    model: Model,
    graph: Graph,
    streams: PairStreams,
    embeddings: Float[Tensor, "1 token size"],
    *,
    also: Mapping[SiteKey, Location] = MappingProxyType({}),
    edits: Sequence[LocatedEdit] = (),
    writers: slice = slice(None),
) -> tuple[EdgeValues, Mapping[SiteKey, Tensor], Mapping[SiteKey, Tensor]]:
    """First-order scores, and gradients with respect to tensors at other locations, and those."""
    span = range(len(graph.writers))[writers]
    readers = [reader for reader in graph.readers if graph.writers_before(reader) > span.start]
    scores = torch.full(graph.edges.shape, torch.nan, dtype=torch.float64)
    pair, most = streams.passes.pair, max(AT_ONCE, streams.differences.numel() // 32)
    with (
        edited(*edits),
        recorded(_locations(model, graph, readers)) as values,
        recorded(also) as other_values,
    ):
        run = forward(
            model,
            pair.base,
            embeddings.requires_grad_(),
            start=pair.shared,
            past=streams.passes.prefix,
        )
    run = with_answers(model, pair.base, run, pair.answers)
    metric = logit_difference(run.logits, len(pair.answers.positive)).sum()
    outputs = [key for key in values if key[0] in ("q", "k", "v", *_OUTPUTS.values())]
    outputs.append(("resid_post", graph.layers - 1))
    wanted = {key: values[key] for key in outputs} | dict(other_values)
    derivatives = torch.autograd.grad(metric, list(wanted.values()), retain_graph=True)
    gradients = dict(zip(wanted, derivatives, strict=True))

    def fill(rows: slice, read: Float[Tensor, "some_readers token size"]) -> None:
        read = wide(read)
        before = range(span.start, min(span.stop, graph.writers_before(graph.readers[rows.start])))
        for some in _parts(before, read[0].numel(), most):
            written = streams.differences[some].to(read)
            scores[rows, some] = torch.einsum("rts,wts->rw", read, written).to(scores)

    for site, layer in values:
        if site == "attention_in":
            stream = values["resid_pre", layer]
            for rows, through in _through_projections(model, graph, layer, gradients, most):
                fill(rows, _through(values["attention_in", layer], stream, through))
    first = len(graph.readers) - len(readers)
    for row, reader in enumerate(readers, first):
        if reader.site in _OUTPUTS:
            # Nothing but this reader is between the stream and its own output.
            key = _OUTPUTS[reader.site], reader.layer
            stream = values[stream_read(graph, reader)]
            fill(slice(row, row + 1), _through(values[key], stream, gradients[key][None, 0]))
    fill(slice(len(graph.readers) - 1, None), gradients["resid_post", graph.layers - 1])
    return scores, gradients, other_values


_OUTPUTS: Mapping[str, str] = {"mixer": "attn_out", "mlp": "mlp_out"}
"""The site that a whole mixer or an MLP outputs."""


def _locations(
    model: Model, graph: Graph, readers: Sequence[StreamReader]
) -> dict[SiteKey, Location]:
    """Locations of projections and inputs of attention, of outputs, and of streams before norms."""
    locations: dict[SiteKey, Location] = {}
    for layer in dict.fromkeys(node.layer for node in readers if node.site in ("q", "k", "v")):
        for site in ("resid_pre", "q", "k", "v"):
            locations[site, layer] = locate(model, site, layer)
        heads = model.layers[layer].heads
        assert heads is not None
        view = locations["resid_pre", layer].view
        locations["attention_in", layer] = Location(heads.module, "input", view, layer)
    for reader in readers:
        if reader.site in _OUTPUTS:
            for key in ((_OUTPUTS[reader.site], reader.layer), stream_read(graph, reader)):
                locations[key] = locate(model, *key)
    locations["resid_post", graph.layers - 1] = locate(model, "resid_post", graph.layers - 1)
    return locations


def _through_projections(
    model: Model, graph: Graph, layer: int, gradients: Mapping[SiteKey, Tensor], most: int
) -> Iterator[tuple[slice, Float[Tensor, "reader token size"]]]:
    """Slices of readers, with each reader's gradient with respect to the attention's input."""
    heads = model.layers[layer].heads
    assert heads is not None
    first = graph.attention_readers(layer).start
    for site, module in zip(("q", "k", "v"), heads.qkv, strict=True):
        assert module is not None
        view = locate(model, site, layer).view
        weight = view(input_by_output(module)[None])[0]
        gradient = view(gradients[site, layer])[0]
        tokens, count, _ = gradient.shape
        for some in _parts(range(count), tokens * len(weight), most):
            through = torch.einsum("thd,shd->hts", gradient[:, some], weight[:, some].to(gradient))
            yield slice(first + some.start, first + some.stop), through
        first += count


def _parts(vectors: range, numbers: int, most: int) -> Iterator[slice]:
    """Slices of vectors with at most `most` numbers each, or one vector if it alone has more."""
    some = max(1, most // numbers)
    for start in range(vectors.start, vectors.stop, some):
        yield slice(start, min(start + some, vectors.stop))


def _through(
    output: Float[Tensor, "1 token size"],
    stream: Float[Tensor, "1 token size"],
    gradients: Float[Tensor, "reader token size"],
) -> Float[Tensor, "reader token size"]:
    """Gradients with respect to the stream, from those with respect to what is computed from it."""
    if len(gradients) == 1:  # batches of gradients cannot pass through every function
        return torch.autograd.grad(output, stream, gradients, retain_graph=True)[0]
    (batched,) = torch.autograd.grad(
        output, stream, gradients[:, None], retain_graph=True, is_grads_batched=True
    )
    return batched[:, 0]
