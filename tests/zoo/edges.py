"""Effects of edges, compared with those of passes in which one part reads a changed stream."""

from collections.abc import Iterable, Mapping
from functools import partial

from tests.zoo.oracle import Oracle

STEPS = (0.03, 0.01, 0.003, 0.0003)
"""How far a stream is moved for a derivative: many norms compute in float32 in any precision, and
some activations have kinks."""

ROUGH = 0.1
"""Weight of an error of a derivative, which finite differences tell less exactly than passes."""

Effects = Mapping[tuple[str, str, str], float]
"""The effect of each edge, by method ("gradient" or "exact"), writer and reader."""


def edge_errors(oracle: Oracle, effects: Effects) -> tuple[float, float]:
    """The largest error of the effects, and the largest effect that was compared, in logits.

    Estimates by gradients of all edges into a part of a layer, from the input or from all writers,
    sum to a derivative; the exact effect of an edge is that of a pass, if it is the part's only one
    from the input. The second number is 0 if nothing could be compared.
    """
    worst, size = 0.0, 0.0
    for layer in range(len(oracle.layers) + 1):
        for part in ("mixer", "mlp") if layer < len(oracle.layers) else ("logits",):
            readers = _readers({reader for _, _, reader in effects}, part, layer)
            changes = {"input": oracle.stream_change(0)}
            if part != "mlp":
                changes["all"] = oracle.stream_change(layer)
            for writer, change in changes.items():
                whole = oracle.read(layer, part, change)
                if whole is None or not readers:
                    continue
                got = sum(
                    effect
                    for (method, own, reader), effect in effects.items()
                    if method == "gradient" and reader in readers and writer in (own, "all")
                )
                slopes = [oracle.slope_of_read(layer, part, change, step) for step in STEPS]
                slope = min(slopes, key=partial(_apart, got))
                # Where experts or top-k choices change nearby, only short steps are on this side.
                worst, size = max(worst, ROUGH * abs(got - slope)), max(size, abs(slope))
                if writer == "input" and len(readers) == 1:
                    effect = whole - oracle.metric
                    got = effects["exact", writer, readers[0]]
                    worst, size = max(worst, abs(got - effect)), max(size, abs(effect))
    return worst, size


def _readers(names: Iterable[str], part: str, layer: int) -> list[str]:
    """The readers of one part of a layer."""
    if part == "logits":
        return ["logits"]
    node = f"m{layer}" if part == "mlp" else f"a{layer}"
    return [name for name in names if name == node or name.startswith(f"{node}.")]


def _apart(one: float, other: float) -> float:
    return abs(one - other)
