"""What the browser of pairs shows about answers: probabilities of options, and texts."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from interp.errors import visible
from interp.report.pairs import Bars, Panel, Shaded, Text, with_sides
from interp.results.measured import ResultTables
from interp.statistics.summaries import grouped

_OPTIONS = "Summed probability of the texts or first tokens with which an answer may begin."


def option_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The probability of each option, as bars for each side; none if options were not read."""
    if "option_probabilities" not in measured.names():
        return
    columns = ["model", "prompt_id", "option", "probability"]
    rows = measured.table("option_probabilities", columns, prompts=prompts["prompt_id"])
    for key, own in grouped(with_sides(rows, prompts), ["pair_id", "model"]):
        groups = {
            str(side): list(zip(each["option"], each["probability"], strict=True))
            for side, each in own.groupby("side", sort=False)
        }
        title = "Probabilities of the options"
        yield str(key["pair_id"]), Bars(title, {"model": str(key["model"])}, groups, note=_OPTIONS)


def text_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The texts that models generated, and their thoughts, if any."""
    ids = prompts["prompt_id"]
    rows = measured.table("completions", ["model", "prompt_id", "completion"], prompts=ids)
    for key, own in grouped(with_sides(rows, prompts), ["pair_id", "model"]):
        texts = [
            Text(str(side), [visible(text) if isinstance(text, str) else ""], [float("nan")])
            for side, text in zip(own["side"], own["completion"], strict=True)
        ]
        yield str(key["pair_id"]), Shaded("Generated text", {"model": str(key["model"])}, texts)
    if "thoughts" not in measured.names():
        return
    columns = ["model", "prompt_id", "draw", "before", "sentences", "after"]
    thoughts = measured.table("thoughts", columns, prompts=ids)
    for key, own in grouped(with_sides(thoughts, prompts), ["pair_id", "model", "draw"]):
        texts = [
            Text(str(row["side"]), pieces, [float("nan")] * len(pieces))
            for row in own.to_dict("records")
            if (pieces := _pieces(row["before"], row["sentences"], row["after"]))
        ]
        of = {"model": str(key["model"]), "draw": str(key["draw"])}
        yield str(key["pair_id"]), Shaded("Thought", of, texts)


def _pieces(before: Any, sentences: Any, after: Any) -> list[str]:
    """The parts of a thought as texts; empty if it failed."""
    own = list(sentences) if hasattr(sentences, "__len__") else []
    return [str(part) for part in (before, *own, after) if isinstance(part, str) and part]
