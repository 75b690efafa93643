"""What a comparison of logs shows: differences, their figure, a page and the pairs behind them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from interp.analysis.cautions.caution import LEFT_OUT, Caution
from interp.comparing.differences import ENDS, UNITS, Compared, compared
from interp.comparing.options import Comparing
from interp.errors import UserError, described
from interp.estimates.shown import ALL, Estimated
from interp.options import with_options_of
from interp.report.glance import Opening
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser
from interp.results.given import JUDGED
from interp.results.measured import About, InMemory
from interp.results.result import Result
from interp.stored.inspect_log import outputs_of_log


class Logs(InMemory):
    """The items that at least two logs have, as pairs whose sides are the logs.

    Metrics stand where other results have models, and scores are answers.
    """

    def __init__(self, compared: Compared) -> None:
        self._compared, self._facts = compared, {}

    @property
    def about(self) -> About:
        """The names of the logs."""
        return About("compare", {}, " and ".join(side.name for side in self._compared.sides))

    def names(self) -> list[str]:
        """The scores of each item are its answers."""
        return ["answers"]

    def rows(self, name: str) -> pd.DataFrame:
        """The table itself."""
        return self._made[name]

    @cached_property
    def _made(self) -> dict[str, pd.DataFrame]:
        return {"prompts": _items(self._compared), "answers": _scored(self._compared)}


def _items(compared: Compared) -> pd.DataFrame:
    """What each log says about the items that at least two have; answers follow texts."""
    rows, factors = [], compared.factors
    for side in compared.sides:
        read = outputs_of_log(side.log.archive) if side.log.archive else ()
        written = {(output.prompt_id, str(output.draw + 1)): output.text for output in read}
        for name, item in side.items.items():
            answer = written.get((item.item, item.epoch)) or item.answer
            text = "\n\n".join(filter(None, [item.text, answer]))
            rows.append((f"{name} ({side.name})", name, side.name, text, item.target, 1.0))
    columns = ["prompt_id", "pair_id", "side", "text", "gold", "weight"]
    items = pd.DataFrame(rows, columns=columns).set_index("pair_id", drop=False)
    return factors.join(items, how="inner")[[*columns, *factors]].reset_index(drop=True)


def _scored(compared: Compared) -> pd.DataFrame:
    rows = [
        (metric, f"{name} ({side.name})", f"{score:g}", score if score in (0, 1) else None, "")
        for metric, names in compared.metrics.items()
        for side, column in zip(compared.sides, names, strict=True)
        for name, score in side.scores[column].items()
        if name in compared.factors.index
    ]
    return pd.DataFrame(rows, columns=JUDGED).astype({"correct": "boolean"})


class Comparison(Result):
    """Logs of the same items, compared: what was aligned, and the differences of all scores."""

    def __init__(self, compared: Compared) -> None:
        super().__init__(Logs(compared))
        self.compared = compared

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The differences."""
        return (self.compared.differences,)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """How the items were paired, and what cannot be."""
        return tuple(Caution(LEFT_OUT, "", text) for text in self.compared.said)

    def to_frame(self) -> pd.DataFrame:
        """The differences: a row for each two logs, metric and subset."""
        return self.compared.differences.frame

    def items(self) -> Iterator[TableItem | FigureItem]:
        """The differences as a table and a figure."""
        yield from self.declared_items()
        yield self._figure

    @cached_property
    def _figure(self) -> FigureItem:
        def draw() -> Any:
            from interp.report.figures.bars_and_points import interval_points
            from interp.report.figures.style import say_if_nothing_is_shown

            rows = self.to_frame().copy()
            each = rows["metric"] + ": " + rows["subset"]
            rows["score"] = rows["metric"].where(rows["subset"] == ALL, each)
            rows["model"] = rows["model"].str.replace(" minus ", " minus\n", n=1)
            columns: dict[str, Any] = {"x": "difference", "y": "model", "hue": "score"}
            ax = interval_points(rows, n=UNITS, interval=ENDS, **columns)
            ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
            say_if_nothing_is_shown(ax, rows, ENDS)
            return ax

        note = "Dots with 95% intervals; right of 0, the log before minus scores higher."
        return FigureItem("differences", "All differences", draw, note)

    def browser(self) -> Browser:
        """The items on which logs disagree; all items if they agree on each."""
        browser, trials = super().browser(), self.compared.differences.trials
        apart = browser.prompts["pair_id"].isin(trials.loc[trials["difference"] != 0, "pair_id"])
        return replace(browser, prompts=browser.prompts[apart]) if apart.any() else browser

    def opening(self) -> Opening:
        """The sentence about the first two logs, and the differences over all items."""
        first, *others = self.compared.sentences()
        return replace(super().opening(), sentences=others, extent=first, figure=self._figure)


@with_options_of(Comparing)
def compare(*logs: str | Path, **options: Any) -> Comparison:
    """Compare logs of the same items, item by item: are the results different?

    Args:
        logs: at least two, in any mixture: folders of interp; lm-eval's samples_*.jsonl or a folder
            of its results; logs of Inspect (.eval, .json); tables with an item and a score.
        **options: how logs are compared.

    Returns:
        The result, with to_frame, plot, browse and report.

    Raises:
        UserError: a log cannot be read, or items cannot be paired honestly.
    """
    for log in logs:
        if not isinstance(log, str | Path):
            raise UserError(
                f"a log is {described(log)}; expected the path of a folder or file. "
                "interp.run(..., out=FOLDER) writes results to a folder"
            )
    return Comparison(compared([*map(Path, logs)], Comparing(**options)))
