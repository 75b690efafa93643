"""What the browser of pairs shows about answers: probabilities of options, and texts."""

from collections.abc import Iterator

import pandas as pd

from interp.errors import visible
from interp.report.pairs import Bars, Panel, Shaded, Text, by_pair, with_sides
from interp.results.measured import ResultTables

_OPTIONS = "Summed probability of the texts or first tokens with which an answer may begin."


def option_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The probability of each option, as bars for each side; none if options were not read."""
    if "option_probabilities" not in measured.names():
        return
    columns = ["model", "prompt_id", "option", "probability"]
    rows = measured.table("option_probabilities", columns, prompts=prompts["prompt_id"])
    for pair, labels, options in by_pair(with_sides(rows, prompts), ["model"]):
        groups = {
            str(side): list(zip(each["option"], each["probability"], strict=True))
            for side, each in options.groupby("side", sort=False)
        }
        yield pair, Bars("Probabilities of the options", labels, groups, note=_OPTIONS)


def text_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The texts that models generated, and their thoughts, if any."""
    ids = prompts["prompt_id"]
    rows = measured.table("completions", ["model", "prompt_id", "completion"], prompts=ids)
    for pair, labels, own in by_pair(with_sides(rows, prompts), ["model"]):
        texts = [
            Text(str(side), [visible(text) if isinstance(text, str) else ""], [float("nan")])
            for side, text in zip(own["side"], own["completion"], strict=True)
        ]
        yield pair, Shaded("Generated text", labels, texts)
    if "thoughts" not in measured.names():
        return
    columns = ["model", "prompt_id", "draw", "before", "sentences", "after"]
    thoughts = measured.table("thoughts", columns, prompts=ids)
    for pair, labels, own in by_pair(with_sides(thoughts, prompts), ["model", "draw"]):
        texts = [
            Text(str(row["side"]), pieces, [float("nan")] * len(pieces))
            for row in own.dropna(subset="sentences").to_dict("records")
            if (pieces := [own for own in (row["before"], *row["sentences"], row["after"]) if own])
        ]
        yield pair, Shaded("Thought", labels, texts)
