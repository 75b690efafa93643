"""Reading and writing edge scores in MIB's format, importances.json (Mueller et al. 2025).

MIB differentiates the negative logit difference, so its scores have the opposite sign: positive if
patching the edge would lower the metric.

MIB has a key reader and a value reader for each query head, whereas the model has one of each for
each key-value head. If n query heads h share a key-value head g, then for keys (and likewise for
values)

    written:  score(u -> h<k>) = -effect(u -> g.k) / n   for each h of g
    read:     effect(u -> g.k) = -sum over the h of g of score(u -> h<k>)

The gradient of a shared key is the sum of its copies' gradients, so to first order the model's own
effect is the sum over the copies; writing splits it equally among them. Writing and then reading
preserves effects, whereas reading and then writing replaces the scores of each group by their mean.
An edge into a key or value is in the circuit if any of its copies is. All other edges are identical
in the two graphs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, ValidationError

from interp.circuits.graph import Graph, StreamReader, graph_of
from interp.errors import UserError, one_line, shortened
from interp.files import check_fits, read_bytes, write_whole
from interp.models.model import Model
from interp.prompts.files import read_json

_WHAT = "graphs of MIB"

_Count = Annotated[int, Field(ge=1, le=2**20)]


class _Config(BaseModel, strict=True):
    n_layers: _Count
    n_heads: _Count
    parallel_attn_mlp: bool
    d_model: _Count


class _Node(BaseModel, strict=True):
    in_graph: bool


class _Edge(BaseModel, strict=True):
    score: Annotated[float, Field(allow_inf_nan=False)]
    in_graph: bool


class _Importances(BaseModel, strict=True):
    """The fields of the file that are read. MIB's tools may add others, such as neuron scores."""

    cfg: _Config
    nodes: dict[str, _Node | bool]
    edges: dict[str, _Edge]


def write_importances(file: str | Path, model: Model, edges: pd.DataFrame) -> None:
    """Write the effects of all edges of a model as MIB's importances.json.

    Args:
        file: where to write, usually MODEL_FOLDER/importances.json.
        model: the model.
        edges: the columns writer, reader and effect, such as the rows of one method in the edges
            table; effects are averaged over pairs. The optional column in_circuit says which edges
            belong to a circuit; without it, all do.

    Raises:
        UserError: an edge is missing or unknown, an effect is not finite, there are several models,
            directions or methods, or the file cannot be written.
    """
    graph = graph_of(model)
    graph.check_heads(_WHAT)
    if lacking := sorted({"writer", "reader", "effect"} - set(edges)):
        raise UserError(
            f"the edges have no column {shortened(lacking[0])}; expected writer, reader and effect"
        )
    if edges["effect"].dtype.kind not in "if":
        raise UserError(
            f"the effects have the type {edges['effect'].dtype}; expected a column of numbers"
        )
    for column in ("model", "direction", "method"):
        if column in edges and edges[column].nunique() > 1:
            found = ", ".join(map(str, edges[column].unique()))
            raise UserError(f"the edges have several {column}s ({found}); select the rows of one")
    if not np.isfinite(edges["effect"]).all():
        raise UserError("an effect is not a finite number; exclude pairs with such effects")
    kept = edges.assign(in_circuit=edges.get("in_circuit", True)).groupby(["writer", "reader"])
    effects, chosen = kept["effect"].mean().to_dict(), kept["in_circuit"].any().to_dict()
    known = {(writer, reader.name): names for writer, reader, names in _edges(graph)}
    _check_names("the table", set(map(_arrow, effects)), set(map(_arrow, known)))
    written = {
        name: {"score": -effects[ends] / len(names), "in_graph": bool(chosen[ends])}
        for ends, names in known.items()
        for name in names
    }
    nodes = dict.fromkeys([*graph.writers, "logits"], False)
    nodes |= {
        end: True for name, edge in written.items() if edge["in_graph"] for end in _ends(name)
    }
    content = {
        "cfg": _config(model, graph),
        "nodes": {name: {"in_graph": kept or name == "logits"} for name, kept in nodes.items()},
        "edges": written,
    }
    text = json.dumps(content, allow_nan=False)
    write_whole(Path(file), lambda path: path.write_text(text, encoding="utf-8"))


def read_importances(file: str | Path, model: Model) -> pd.DataFrame:
    """The effects of a model's edges from MIB's importances.json.

    Returns:
        One row per edge of the model's own graph, with the columns writer, reader, effect and
        in_circuit.

    Raises:
        UserError: the file cannot be read, does not fit its schema, or belongs to another graph.
    """
    graph, path = graph_of(model), Path(file)
    graph.check_heads(_WHAT)
    try:
        check_fits(path)
        found = _Importances.model_validate(read_json(read_bytes(path).decode()))
    except (ValidationError, ValueError, RecursionError) as error:
        reason = one_line(str(error), 300)
        raise UserError(f"{path} is not MIB's importances.json: {reason}") from error
    expected = _config(model, graph)
    if (own := found.cfg.model_dump()) != expected:
        raise UserError(f"{path} belongs to a model with {own}; {model.name} has {expected}")
    _check_names(
        str(path), set(found.edges), {name for *_, names in _edges(graph) for name in names}
    )
    return pd.DataFrame(
        {
            "writer": writer,
            "reader": reader.name,
            "effect": -sum(found.edges[name].score for name in names),
            "in_circuit": any(found.edges[name].in_graph for name in names),
        }
        for writer, reader, names in _edges(graph)
    )


def _config(model: Model, graph: Graph) -> dict[str, int | bool]:
    return {
        "n_layers": graph.layers,
        "n_heads": graph.shapes[0].heads,
        "parallel_attn_mlp": graph.shapes[0].parallel,
        "d_model": int(model.text_config.hidden_size),
    }


def _edges(graph: Graph) -> Iterator[tuple[str, StreamReader, list[str]]]:
    """Writer, reader and MIB's names for each edge; edges into keys and values may have several."""
    copies = graph.heads_per_key
    for reader in graph.readers:
        ends = [reader.name]
        if reader.site in ("q", "k", "v"):
            own = 1 if reader.site == "q" else copies
            heads = range(reader.head * own, (reader.head + 1) * own)
            ends = [f"a{reader.layer}.h{head}<{reader.site}>" for head in heads]
        for writer in graph.writers[: graph.writers_before(reader)]:
            yield writer, reader, [f"{writer}->{end}" for end in ends]


def _arrow(ends: Any) -> str:
    return " -> ".join(map(str, ends))


def _ends(name: str) -> list[str]:
    """The two nodes of an edge in MIB's graph."""
    return name.partition("<")[0].split("->")


def _check_names(what: str, found: set[str], expected: set[str]) -> None:
    for names, state in ((expected - found, "lacks"), (found - expected, "has an unknown edge,")):
        if names:
            first = shortened(min(names), 60)
            raise UserError(
                f"{what} {state} {first} ({len(names):,} such edges); expected the "
                f"{len(expected):,} edges of the model, each once"
            )
