"""What the tables of each measurement tell of its models' answers (`interp.results.given`)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from interp.analysis.cautions.answers import FORCED
from interp.analysis.cautions.caution import Caution
from interp.analysis.cautions.models import GAP_COLUMNS, adds_up, completeness_table
from interp.analysis.reading_tables import Sample
from interp.analysis.told_apart import alone_cautions
from interp.attribution.registry import DEFAULT_METHODS
from interp.results.given import JUDGED, KEYS, Given

CHANGED = "changed_options"
"""Name of the table of changed prompts."""


def by_model(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each model."""
    return {str(model): rows for model, rows in table.groupby("model", sort=False)}


class Evaluated(Given):
    """Answers to prompts, and perhaps to changed prompts."""

    def others(self) -> Iterable[Caution]:
        """That models tell the sides apart without the premises, if that was measured."""
        if CHANGED not in self.measured.names():
            return ()
        options, changed = (self.measured.table(name) for name in (self.read_in, CHANGED))
        sample = Sample(self.measured.table("prompts"), options, self.measured.about.cluster)
        return alone_cautions(sample, by_model(options), by_model(changed))


class Completed(Given):
    """Generated texts; one without an answer counts as a reply outside the options."""

    def answers(self) -> pd.DataFrame:
        """The answers in the texts."""
        return self.measured.table("completions", [*JUDGED, "completion", "finished"])


class Attributed(Given):
    """Answers with scores of segments."""

    def methods(self) -> Sequence[str]:
        """The methods of attribution."""
        return tuple(self.measured.about.parameters.get("methods", DEFAULT_METHODS))

    def gaps(self) -> pd.DataFrame | None:
        """How far scores are from adding up; None if no method promises that."""
        if not any(map(adds_up, self.methods())):
            return None
        return completeness_table(self.measured.parts("segment_scores", GAP_COLUMNS))


class Thought(Given):
    """Answers after thoughts, of which that after the first whole one counts."""

    read_in = "thought_answers"

    def answers(self) -> pd.DataFrame:
        """The preferred options."""
        rows = self.measured.table(self.read_in, [*KEYS, "draw", "reading", "answer", "error"])
        rows = rows[rows["reading"] == "whole"].sort_values("draw").drop_duplicates(KEYS)
        return rows.assign(**{FORCED: True})


class Replaced(Given):
    """Answers beside those to prompts with replaced segments."""

    read_in = "segment_effects"

    def answers(self) -> pd.DataFrame:
        """The preferred options."""
        rows = self.measured.table(self.read_in, [*KEYS, "answer", "error"])
        return rows.drop_duplicates(KEYS).assign(**{FORCED: True})


class Changed(Given):
    """Log-odds of the correct answer before the stream is changed."""

    read_in = "steered"

    def answers(self) -> pd.DataFrame:
        """The preferred options."""
        rows = self.measured.table(self.read_in)
        other = rows["other_option"].where(rows["metric"].notna())
        answer = rows["gold_option"].where(rows["metric"] > 0, other)
        return rows[[*KEYS, "error"]].assign(answer=answer, **{FORCED: True})


class Paired(Given):
    """Log-odds of two options on both prompts of each pair."""

    read_in, unit = "pairs", "pair_id"

    def answers(self) -> pd.DataFrame:
        """The option that a model prefers on each prompt of its pairs."""
        pairs = self.measured.table(self.read_in)
        denoising = pairs["direction"] == "denoising"  # the corrupt prompt is then the base prompt
        options = pairs["positive_option"], pairs["negative_option"]
        parts = []
        for place, metric, other in (("clean", "source", "base"), ("corrupt", "base", "source")):
            value = pairs[f"{metric}_metric"].where(denoising, pairs[f"{other}_metric"])
            answer = pd.Series(np.where(value > 0, *options), pairs.index).where(value.notna())
            ids = {"prompt_id": pairs[f"{place}_prompt_id"], "answer": answer}
            parts.append(pairs[["model", "error"]].assign(**ids, **{FORCED: True}))
        return pd.concat(parts, ignore_index=True).drop_duplicates(KEYS)

    def differences(self) -> Mapping[str, float]:
        """The median difference of each model between the two prompts."""
        pairs = self.measured.table(self.read_in, ["model", "base_metric", "source_metric"])
        apart = (pairs["base_metric"] - pairs["source_metric"]).abs()
        medians = apart.groupby(pairs["model"], sort=False).median()
        return {str(model): float(median) for model, median in medians.items()}
