"""The table and the figure that linear probes show."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial

import pandas as pd

from interp import Result
from interp.extend.page import FigureItem, Opening, TableItem, echo, headline, p_text
from interp_probes.linear.probes import held_out, linear_probes

_ANSWERS = ["model", "prompt_id", "answer", "correct", "error"]


class LinearProbes(Result):
    """Linear probes of the prompt's side, trained on residual streams."""

    question = "Does the residual stream encode the prompt's side?"

    def opening(self) -> Opening:
        """The accuracy at the best layer for each position, on all prompts."""
        rows = self._table[self._table["prompts"] == "all"].dropna(subset="accuracy")
        ends = ("accuracy_low", "accuracy_high")
        shown = partial(headline, value="accuracy", interval=ends, n="n_prompts", unit="prompts")
        parts = []
        for position, layers in rows.groupby("position", sort=False):
            by_model = layers.groupby("model", sort=False)["accuracy"]
            best = layers.loc[by_model.idxmax()]
            # The layer is chosen, so p is corrected for all layers and positions.
            tied = best["model"].map(by_model.agg(lambda right: int((right == right.max()).sum())))
            which = ("layer " + best["layer"].astype(str)).where(
                tied == 1, tied.astype(str) + " layers alike"
            )
            p = best["p_family"].map(lambda p: "" if pd.isna(p) else f", p = {p_text(p)}")
            label = which + p + ":"
            title = f"best accuracy at {str(position).replace('_', ' ')} (chance: 0.50)"
            parts.append(shown(best.assign(label=label), title))
        plain = super().opening()
        return replace(plain, numbers=pd.concat(parts, ignore_index=True)) if parts else plain

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Accuracy by model, position and layer."""
        from interp_probes.linear.figures import probe_accuracy

        title = "Accuracy of linear probes of the prompt's side; p: above chance at any layer"
        note = (
            f"The two halves share no {held_out(self.prompts, self.cluster)}. The interval is that "
            "of the accuracy. p has none: it is the share of control labels that are predicted as "
            "well, at any layer, so it may exceed .05 beside an interval that excludes one half."
        )
        narrow = [(title, _narrow(self._table))]
        yield TableItem("linear_probes", title, self._table, note, narrow)
        yield FigureItem("linear_probes", title, partial(probe_accuracy, self._table))

    def noted(self) -> Mapping[str, object]:
        """Shares of prompts without an answer, errors, and why some probes are undefined."""
        everything = self._table[self._table["prompts"] == "all"]
        for note in everything.loc[everything["accuracy"].isna(), "note"].unique():
            echo(f"linear probes: {note}")
        return super().noted()

    @cached_property
    def _table(self) -> pd.DataFrame:
        prompts, answers = self.prompts, self.table("answers", _ANSWERS)
        rows, seed = self.measured.rows("residuals"), self.measured.about.seed
        return linear_probes(rows, prompts, answers, unit=self.cluster, seed=seed)


def _narrow(table: pd.DataFrame) -> pd.DataFrame:
    """One row per model, position and layer: accuracy by subset; interval and p on all prompts."""
    key = ["model", "position", "layer"]
    subsets = table.pivot(index=key, columns="prompts", values="accuracy")
    named = {"accuracy_low": "low", "accuracy_high": "high"}
    named |= {"control_accuracy": "control", "p_family": "p"}
    rows = table[table["prompts"] == "all"].set_index(key)[[*named]].rename(columns=named)
    columns = ["all", "low", "high", "recognized", "failed", "control", "p"]
    return rows.join(subsets)[columns].reset_index()
