"""Display of readings: how often the right word comes first, by layer, beside two controls."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pandas as pd

from interp.analysis.cautions.caution import COPIED, EMBEDDED, LEFT_OUT, Caution, ordered
from interp.console import counted
from interp.estimates.shown import Estimated
from interp.measurements.lens.ledger import ledger, ledger_table
from interp.measurements.lens.panels import lens_numbers, lens_panels
from interp.measurements.lens.retrieval import RETRIEVAL, retrieval_trials, retrieved
from interp.measurements.lens.tables import (
    COLUMNS,
    beyond,
    in_middle,
    judged,
    reading_table,
    word_table,
)
from interp.report.glance import MOST_NUMBERS, Opening, headline
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser
from interp.results.result import Result, summarize
from interp.statistics.proportions import proportions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_READ = """accuracy: share of readings in which the right word has the highest score, after the mean
of each word's score over the prompts of other clusters is subtracted. embedding: the same for what
the lens reads from the token's embedding alone, so that part of the fact which the lens itself
computes; beyond: accuracy minus embedding, within readings. shuffled: after shuffling the right
words among the clusters; chance: one divided by the number of words. Intervals (95%) are
clustered{by}. Layer -1 is the embeddings. A word that can be read need not be used."""

_WORDS = """first: share of readings in which the word has the highest score; score: its mean, in
logits; embedding_score: what the lens reads from the token's embedding alone. Scores are not
centred."""

_SHOWN = ["layer", "accuracy", "accuracy_low", "accuracy_high", "embedding", "shuffled", "beyond"]


class LensReadings(Result):
    """What lenses read at chosen tokens, by layer."""

    question = "What do the layers make the model likely to say?"

    def summary(self) -> pd.DataFrame:
        """One row per model, group of tokens, method and layer (`tables.reading_table`).

        Of words of your own, none of which is right: one row per word too (`tables.word_table`).
        """
        return self._words if self._has_own_words else self._readings

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Curves over layers, grids of layers and tokens, and the table behind them."""
        if self._has_own_words:
            yield TableItem("word_table", "Words by layer", self._words, _WORDS)
            return
        table = self._readings
        kinds = (("readings", "group", ""), ("reading_grid", "method", ", by token"))
        for stem, of, how in kinds:
            parts = enumerate(table.groupby(["model", of], sort=False))
            for number, ((model, name), rows) in parts:
                if of == "group" or rows["group"].nunique() > 1:
                    title = f"{model}, {name}: how often the right word comes first{how}"
                    draw = partial(_drawn, rows, grid=of == "method")
                    yield FigureItem(f"{stem}_{number}", title, draw)
        by = f" by {self.cluster}" if self.cluster else " by pair"
        narrow = [
            (", ".join(map(str, place)), rows[_SHOWN])
            for place, rows in table.groupby(["model", "group", "method"], sort=False)
        ]
        yield TableItem("reading_table", "Readings by layer", table, _READ.format(by=by), narrow)
        yield from self.declared_items()

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """In how many prompts the right word is retrieved."""
        if self._has_own_words:
            return ()
        answers = self.table("answers", ["model", "prompt_id", "correct"])
        trials = retrieval_trials(self.retrieved, answers)
        trials = trials.merge(self.prompts[["prompt_id", "pair_id"]], on="prompt_id")
        return (Estimated(RETRIEVAL, trials),)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and words left out, or that need not be retrieved."""
        found = (*self._left_out(), *self._embedded(), *copied(self.seen()))
        return ordered((*super().cautions, *found))

    def opening(self) -> Opening:
        """Each lens' mean accuracy over the middle layers, by group of tokens; the first curve."""
        found = self._in_middle
        parts = []
        for (group, method), rows in found.groupby(["group", "method"], sort=False):
            prompts = rows.astype({"right_first": float}).groupby(
                ["model", "prompt_id", "cluster"], sort=False
            )
            means = prompts["right_first"].mean().reset_index()
            shares = proportions(
                means, values=["right_first"], by=["model"], cluster="cluster", continuous=True
            )
            name = f"{method} lens at {group}, middle layers: right word first"
            parts.append(headline(shares, name, value="share", n="n", unit="prompts"))
        plain = replace(super().opening(), figure=next(self.figures, None))
        if not parts:
            return plain
        return replace(plain, numbers=pd.concat(parts[:MOST_NUMBERS], ignore_index=True))

    def browser(self) -> Browser:
        """With the first word by layer and token, and the log-odds of the right word."""
        numbers = (*lens_numbers(self.measured), *self.links())
        return self.browsed(partial(lens_panels, self.measured), numbers)

    def noted(self) -> Mapping[str, object]:
        """Each model's share of prompts without an answer, and its errors."""
        answers = self.table("answers", ["model", "answer", "prompt_id", "error"])
        return summarize(answers, cautions=self.cautions)

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        """Whether each prompt retrieves its right word at each group of tokens (`retrieval`)."""
        return retrieved(self.table("lens_readings", COLUMNS), self._clusters)

    def ledger(self, known: Result, steered: Result) -> pd.DataFrame:
        """For each prompt: is its fact known, retrieved in the prompt, and used for the answer?

        One row per model and prompt (`ledger.ledger`). These readings are of facts (`facts`), at
        one group of tokens and by one method.

        Args:
            known: the facts that the same models know, from `probe_knowledge`.
            steered: the effects of one change, such as a swap, on the same prompts, from
                `interp.steer`.

        Raises:
            UserError: there are several groups of tokens, methods or changes, or the three have no
                prompt in common.
        """
        return ledger(
            known.table("knowledge"),
            self.retrieved,
            steered.table("steering_effects"),
            self.table("answers", ["model", "prompt_id", "correct"]),
        )

    def ledger_shares(self, known: Result, steered: Result) -> pd.DataFrame:
        """The share of each entry of `ledger` among wrong and right answers, with intervals."""
        return ledger_table(self.ledger(known, steered))

    @property
    def _clusters(self) -> pd.Series:
        return self.prompts.set_index("prompt_id")[self.cluster or "pair_id"]

    @property
    def _has_own_words(self) -> bool:
        return self.measured.about.parameters.get("words") is not None

    @cached_property
    def _judged(self) -> pd.DataFrame:
        return judged(self.table("lens_readings", COLUMNS), self._clusters)

    @cached_property
    def _readings(self) -> pd.DataFrame:
        return reading_table(self._judged)

    @cached_property
    def _words(self) -> pd.DataFrame:
        return word_table(self.table("lens_readings", COLUMNS), self.prompts)

    @property
    def _in_middle(self) -> pd.DataFrame:
        """The readings of the middle layers; of all layers if none is one."""
        return in_middle(self._judged.dropna(subset="right_first"))

    def _left_out(self) -> Iterator[Caution]:
        columns = ["model", "prompt_id", "right", "left_out", "words"]
        rows = self.table("lens_readings", columns).drop_duplicates(columns[:2])
        for model, own in rows.groupby("model", sort=False):
            most = int(own["left_out"].max())
            if most:
                lost = 0 if self._has_own_words else int(own["right"].isna().sum())
                prompts = f", among them the right word of {counted(lost, 'prompt')}" * bool(lost)
                total = int((own["left_out"] + own["words"].map(len)).max())
                text = (
                    f"{most:,} of {counted(total, 'word')} begin with the same token as another "
                    f"and are left out{prompts}."
                )
                yield Caution(LEFT_OUT, str(model), text, numbers={"words": most, "prompts": lost})

    def seen(self) -> pd.DataFrame:
        """Whether the right word stands in each prompt before the token: one row per reading.

        Columns: model, group, prompt_id, seen. None in folders of versions that did not note it.
        """
        rows = self.table("lens_readings")
        if "seen" not in rows:
            rows = rows.assign(seen=None)
        rows = rows[rows["fact"].notna()]
        return rows[["model", "group", "prompt_id", "seen"]].drop_duplicates(ignore_index=True)

    def _embedded(self) -> Iterator[Caution]:
        """Readings in middle layers that are not shown to exceed those of the embedding alone."""
        if self._has_own_words:
            return
        found = self._in_middle
        for model, of_model in found.groupby("model", sort=False):
            named: dict[str, float] = {}
            for (group, method), rows in of_model.groupby(["group", "method"], sort=False):
                difference, low, _ = beyond(rows)
                if low <= 0:
                    own, alone = (float(rows[f"{n}_first"].mean()) for n in ("right", "embedding"))
                    named[f"{method} at {group} ({own:.2f} against {alone:.2f})"] = difference
            if named:
                text = (
                    "in the middle layers, the right word was not shown to come first more often "
                    "than in what the lens reads from the token's embedding alone: "
                    f"{', '.join(named)}. Such readings do not show that the model retrieves the "
                    "word there."
                )
                yield Caution(EMBEDDED, str(model), text, numbers=named)


def copied(seen: pd.DataFrame) -> Iterator[Caution]:
    """A caution about facts whose answer the prompt says before the token at which it is read.

    Args:
        seen: rows of `LensReadings.seen`.
    """
    for (model, group), rows in seen.dropna().groupby(["model", "group"], sort=False):
        if before := int(rows["seen"].sum()):
            text = (
                f"in {before:,} of {counted(len(rows), 'prompt')}, the right word stands before "
                f"{group}, so a reading there may be a copy and need not show that the model "
                "retrieves the fact."
            )
            yield Caution(COPIED, str(model), text, numbers={"seen": before, "of": len(rows)})


def _drawn(rows: pd.DataFrame, *, grid: bool) -> "Axes":
    from interp.measurements.lens.figures import layers_by_groups, over_layers

    return layers_by_groups(rows) if grid else over_layers(rows)
