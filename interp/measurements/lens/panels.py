"""What the browser of pairs shows about readings of lenses: the first word by layer and token."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.errors import visible
from interp.measurements.lens.tables import leading
from interp.report.pairs import Grid, Panel, by_pair, with_sides
from interp.results.measured import ResultTables

_KEY = ["model", "group", "method", "layer"]

_NOTE = """Each cell names the word with the highest score, which is not centred, and is shaded by
the log-odds of the right word{right} against the others."""


def lens_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The word that each layer makes the model likely to say, by token, for each side and lens."""
    columns = [*_KEY, "prompt_id", "position", "token", "words", "scores", "right", "log_odds"]
    rows = measured.table("lens_readings", columns, prompts=prompts["prompt_id"])
    first = [
        _first(list(words), scores)
        for words, scores in zip(rows["words"], rows["scores"], strict=True)
    ]
    rows = with_sides(rows.assign(first=first), prompts)
    for pair, of, own in by_pair(rows, ["model", "method", "side"]):
        values, words = (
            own.pivot_table(
                index="layer",
                columns=["position", "group", "token"],
                values=name,
                aggfunc="first",
                sort=True,
            )
            for name in ("log_odds", "first")
        )
        values = values.reindex(index=words.index, columns=words.columns)
        places = words.columns.to_frame(index=False)
        right = own["right"].dropna().unique()
        note = _NOTE.format(right=f" ({right[0]})" if len(right) == 1 else "")
        grid = Grid(
            "Readings of a lens",
            of,
            ["embeddings" if layer < 0 else f"layer {layer}" for layer in words.index],
            [f"{own.group} {visible(str(own.token))}" for own in places.itertuples()],
            values.to_numpy(dtype=float).tolist(),
            words.fillna("").to_numpy().tolist(),
            note=note,
        )
        yield pair, grid


def _first(words: Sequence[str], scores: Float[np.ndarray, " word"]) -> str:
    """The word with the highest score, or all that have it."""
    (leads,) = leading(scores[None], scores[None])
    return " = ".join(word for word, leader in zip(words, leads, strict=True) if leader)
