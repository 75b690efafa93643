"""What the browser of pairs shows about thoughts: sentences with their effects, and answers."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from interp.measurements.thoughts.tables import EFFECTS, READINGS
from interp.report.pairs import (
    Grid,
    Number,
    Panel,
    Shaded,
    Table,
    Text,
    by_pair,
    mean_by_pair,
    with_sides,
)
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_SENTENCES = """The first thought that ended. Change in the logit of the correct answer minus that
of the other answer: positive where the sentence supports the correct answer. left_out: the sentence
is removed; exchanged: replaced by another draw's; resampled: with it against without it."""

_EARLY = """The answer if the model must answer after its first sentences: the log-odds of the
correct answer, in logits. The last column of a draw is its whole thought."""

_READINGS = """Answers after whole thoughts and after texts in their place, by draw: the log-odds of
the correct answer, in logits."""

_TOTAL, _THROUGH = "total effect", "effect through the thought"


def thought_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """Thoughts by sentence, early answers, and answers after replacements of the thought."""
    ids = prompts["prompt_id"]
    sentences = with_sides(measured.table("sentence_effects", prompts=ids), prompts)
    for pair, of, own in by_pair(sentences, ["model"]):
        for measure in EFFECTS:
            texts = [
                Text(
                    str(side),
                    [f"{text} " for text in rows["text"]],
                    rows[measure].astype(float).tolist(),
                )
                for side, rows in own.sort_values("sentence").groupby("side", sort=False)
            ]
            labels = {**of, "measure": measure}
            yield pair, Shaded("Thought by sentence", labels, texts, note=_SENTENCES)
    answers = with_sides(measured.table("thought_answers", prompts=ids), prompts)
    answers = answers[answers["error"] == ""]
    early = answers[answers["reading"].isin(["empty", "first", "whole"])]
    for pair, of, own in by_pair(early, ["model", "side"]):
        yield pair, _early(own, of)
    readings = answers[answers["reading"].isin(READINGS)]
    for pair, of, own in by_pair(readings, ["model"]):
        draws = ["" if pd.isna(draw) else f"{draw:.0f}" for draw in own["draw"]]
        values = own["value"].astype(float)
        each = zip(own["side"], own["reading"], draws, own["answer"], values, strict=True)
        cells = list(map(list, each))
        columns = ["side", "text before the answer", "draw", "answer", "log-odds"]
        yield pair, Table("Readings", of, columns, cells, note=_READINGS)


def _early(rows: pd.DataFrame, labels: dict[str, str]) -> Grid:
    """Answers by draw and number of sentences read."""
    values = rows.pivot_table(index="draw", columns="sentence", values="value", dropna=False)
    said = rows.pivot_table(index="draw", columns="sentence", values="answer", aggfunc="first")
    said = said.reindex(index=values.index, columns=values.columns).fillna("")
    return Grid(
        "Early answers",
        labels,
        [f"draw {draw:.0f}" for draw in values.index],
        [f"{count:.0f} sentences" for count in values.columns],
        values.to_numpy(dtype=float).tolist(),
        said.to_numpy().tolist(),
        note=_EARLY,
    )


def thought_numbers(measured: ResultTables) -> Iterator[Number]:
    """Means over a pair of effects, total and through the thought."""
    prompts = measured.table("prompts", ["prompt_id", "pair_id"])
    effects = measured.table("thought_effects")
    names = ("own", "changed_under_other", "own_under_other")
    own, changed, other = (effects[name].map(_mean).astype(float) for name in names)
    effects = effects.assign(**{_TOTAL: own - changed, _THROUGH: own - other})
    for of, rows in grouped(effects, ["model", "donor_kind", "segment"]):
        labels = {name: str(value) for name, value in of.items()}
        for name in (_TOTAL, _THROUGH):
            headline = "mediated share" if labels["segment"] == "all" and name == _TOTAL else ""
            yield Number(name, labels, mean_by_pair(rows, prompts, name), headline=headline)


def _mean(values: object) -> float:
    found = np.asarray(values, dtype=float) if values is not None else np.array([])
    return float(found.mean()) if found.size else float("nan")
