"""Display of readings: how often the right word comes first, by layer, beside two controls."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float

from interp.analysis.cautions.caution import COPIED, EMBEDDED, LEFT_OUT, Caution, ordered
from interp.console import counted
from interp.errors import visible
from interp.estimates.compute import estimate
from interp.estimates.declared import Mean, Plain, Share, Table
from interp.estimates.pictures import curve
from interp.estimates.shown import Estimated
from interp.measurements.lens import tables
from interp.measurements.lens.ledger import (
    RETRIEVAL,
    ledger,
    ledger_table,
    retrieval_trials,
    retrieved,
)
from interp.report.formatting import segment_label
from interp.report.glance import MOST_NUMBERS, Opening, headline
from interp.report.page import FigureItem, TableItem
from interp.report.pairs import Browser, Grid, Panel, by_pair, with_sides
from interp.results.measured import ResultTables
from interp.results.result import Result
from interp.statistics.proportions import proportions
from interp.statistics.summaries import grouped
from interp.tables import TEXT, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIKELY = "positive: the layer makes the model likely to say the word"
_MORE = "positive: more is read than from the embedding"
_ALONE = "a layer of one model is no counterpart of another model's"

READINGS = Table(
    name="reading_table",
    title="Readings by layer",
    text="""Scores are centred: the mean of each word's score over the prompts of other clusters is
    subtracted. Layer -1 is the embeddings. A word that can be read need not be used.""",
    by=tables.PLACE,
    measured="lens_readings",
    numbers=[
        Share("accuracy", "readings whose highest score is the right word's", "share"),
        Share("embedding", "the same from the token's embedding alone", "share"),
        Share("beyond", "their difference", "share", _MORE, of="accuracy", minus="embedding"),
        Mean("log_odds", "log-odds of the right word", "logits", "positive: for it", aside=True),
        Plain("shuffled", "accuracy for the words of other clusters", "share", why="accuracy"),
        Plain("chance", "1 divided by the number of words", "share", why="accuracy", aside=True),
        Plain("raw_accuracy", "accuracy, not centred", "share", why="accuracy", aside=True),
        Plain(
            "margin", "right word's minus highest other score", "logits", why="accuracy", aside=True
        ),
    ],
    trials="readings",
    order=["readings", "clusters"],
    split=tables.PLACE[:3],
    alone=_ALONE,
)

WORDS = Table(
    name="word_table",
    title="Words by layer",
    text="Scores are not centred. Words with equal scores share the first place.",
    by=[*tables.PLACE, "side", "word"],
    measured="lens_readings",
    numbers=[
        Share("first", "readings in which the word has the highest score", "share"),
        Plain("score", "its mean score", "logits", _LIKELY, why="first"),
        Plain("embedding_score", "from the embedding alone", "logits", _LIKELY, why="first"),
    ],
    trials="readings",
    order=["readings"],
    split=tables.PLACE[:3],
    alone=_ALONE,
    more=[column("word", TEXT, "the word")],
)

_LINES = {
    "accuracy": "{method}",
    "embedding": "{method}, embedding alone",
    "shuffled": "{method}, shuffled",
}


class LensReadings(Result):
    """What lenses read at chosen tokens, by layer."""

    question = "What do the layers make the model likely to say?"

    def summary(self) -> pd.DataFrame:
        """One row per model, group of tokens, method and layer (`READINGS`).

        Of words of your own, none of which is right: one row per side and word too (`WORDS`).
        """
        return self.estimated[0].frame

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Curves over layers, grids of layers and tokens, and the tables behind them."""
        if not self._has_own_words:
            yield from self._figures()
        yield from self.declared_items()

    def _figures(self) -> Iterator[FigureItem]:
        title = "{}, {}: how often the right word comes first".format
        for number, (of, rows) in enumerate(grouped(self.summary(), ["model", "group"])):
            draw = partial(curve, READINGS, rows, x="layer", lines=_LINES, control="embedding")
            yield FigureItem(f"readings_{number}", title(*of.values()), draw)
        for number, (of, rows) in enumerate(grouped(self.summary(), ["model", "method"])):
            if rows["group"].nunique() > 1:
                name, draw = f"reading_grid_{number}", partial(_grid, rows)
                yield FigureItem(name, f"{title(*of.values())}, by token", draw)

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """How often words come first, and in how many prompts the right one is retrieved."""
        prompts = self.prompts[["prompt_id", "pair_id", "side"]]
        if self._has_own_words:
            trials = tables.word_trials(self.table("lens_readings", tables.COLUMNS))
            return (Estimated(WORDS, self.clustered(trials.merge(prompts, on="prompt_id"))),)
        answers = self.table("answers", ["model", "prompt_id", "correct"])
        retrieval = retrieval_trials(self.retrieved, answers)
        each = ((READINGS, self._judged), (RETRIEVAL, retrieval))
        return tuple(Estimated(table, rows.merge(prompts, on="prompt_id")) for table, rows in each)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and words left out, or that need not be retrieved."""
        cautions = (*self._left_out(), *self._embedded(), *copied(self.seen()))
        return ordered((*super().cautions, *cautions))

    def opening(self) -> Opening:
        """Each lens' mean accuracy over the middle layers, by group of tokens; the first curve."""
        by = ["group", "method", "model"]
        prompts = self._in_middle.groupby([*by, "prompt_id", "cluster"], sort=False)["accuracy"]
        means = prompts.mean().reset_index()
        shares = proportions(means, values=["accuracy"], by=by, cluster="cluster", continuous=True)
        parts = []
        for of, rows in grouped(shares, by[:2]):
            name = f"{of['method']} lens at {of['group']}, middle layers: right word first"
            parts.append(headline(rows, name, value="share", n="n", unit="prompts"))
        plain = replace(super().opening(), figure=next(self.figures, None))
        if not parts:
            return plain
        return replace(plain, numbers=pd.concat(parts[:MOST_NUMBERS], ignore_index=True))

    def browser(self) -> Browser:
        """With the first word by layer and token."""
        return self.browsed(partial(lens_panels, self.measured))

    @cached_property
    def retrieved(self) -> pd.DataFrame:
        """Whether each prompt retrieves its right word at each group of tokens (`ledger`)."""
        return retrieved(self.table("lens_readings", tables.COLUMNS), self._clusters)

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
        return tables.judged(self.table("lens_readings", tables.COLUMNS), self._clusters)

    @property
    def _in_middle(self) -> pd.DataFrame:
        """The readings of the middle layers; of all layers if none is one."""
        return tables.in_middle(self._judged.dropna(subset="accuracy"))

    def _left_out(self) -> Iterator[Caution]:
        columns = ["model", "prompt_id", "right", "left_out", "words"]
        rows = self.table("lens_readings", columns).drop_duplicates(columns[:2])
        for model, readings in rows.groupby("model", sort=False):
            most = int(readings["left_out"].max())
            if most:
                lost = 0 if self._has_own_words else int(readings["right"].isna().sum())
                prompts = f", among them the right word of {counted(lost, 'prompt')}" * bool(lost)
                total = int((readings["left_out"] + readings["words"].map(len)).max())
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
        table = estimate(replace(READINGS, by=tables.PLACE[:3], order=()), self._in_middle)
        for model, rows in table[table["beyond_low"] <= 0].groupby("model", sort=False):
            named = {
                f"{row['method']} at {row['group']} "
                f"({row['accuracy']:.2f} against {row['embedding']:.2f})": row["beyond"]
                for row in rows.to_dict("records")
            }
            text = (
                "in the middle layers, the right word was not shown to come first more often "
                "than in what the lens reads from the token's embedding alone: "
                f"{', '.join(named)}. Such readings do not show that the model retrieves the "
                "word there."
            )
            yield Caution(EMBEDDED, str(model), text, numbers=named)


def copied(seen: pd.DataFrame) -> Iterator[Caution]:
    """A caution about facts whose answer the prompt says before the token at which it is read."""
    for (model, group), rows in seen.dropna().groupby(["model", "group"], sort=False):
        if before := int(rows["seen"].sum()):
            text = (
                f"in {before:,} of {counted(len(rows), 'prompt')}, the right word stands before "
                f"{group}, so a reading there may be a copy and need not show that the model "
                "retrieves the fact."
            )
            yield Caution(COPIED, str(model), text, numbers={"seen": before, "of": len(rows)})


def _grid(rows: pd.DataFrame) -> "Axes":
    """The accuracy at each group of tokens and layer, above what the embedding alone gives."""
    from interp.report.figures.lines import matrix

    name, names = "right word first", {"accuracy": "", "embedding": ": embedding alone"}
    at = rows["group"].map(segment_label)
    parts = [rows.assign(**{"at": at + end, name: rows[share]}) for share, end in names.items()]
    each = pd.concat(parts).sort_index(kind="stable")
    return matrix(each, x="layer", y="at", value=name, n="readings")


_NOTE = """Each cell names the word with the highest score, which is not centred, and is shaded by
the log-odds of the right word{right} against the others."""


def lens_panels(measured: ResultTables, prompts: pd.DataFrame) -> Iterator[tuple[str, Panel]]:
    """The word that each layer makes the model likely to say, by token, for each side and lens."""
    columns = [*tables.PLACE, "prompt_id", "position", "token"]
    columns += ["words", "scores", "right", "log_odds"]
    rows = measured.table("lens_readings", columns, prompts=prompts["prompt_id"])
    first = [
        _first(list(words), scores)
        for words, scores in zip(rows["words"], rows["scores"], strict=True)
    ]
    rows = with_sides(rows.assign(first=first), prompts)
    for pair, of, readings in by_pair(rows, ["model", "method", "side"]):
        values, words = (
            readings.pivot_table(
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
        right = readings["right"].dropna().unique()
        note = _NOTE.format(right=f" ({right[0]})" if len(right) == 1 else "")
        layers = ["embeddings" if layer < 0 else f"layer {layer}" for layer in words.index]
        tokens = [f"{place.group} {visible(str(place.token))}" for place in places.itertuples()]
        cells, named = values.to_numpy(dtype=float).tolist(), words.fillna("").to_numpy().tolist()
        yield pair, Grid("Readings of a lens", of, layers, tokens, cells, named, note=note)


def _first(words: Sequence[str], scores: Float[np.ndarray, " word"]) -> str:
    """The word with the highest score, or all that have it."""
    (leads,) = tables.leading(scores[None], scores[None])
    return " = ".join(word for word, leader in zip(words, leads, strict=True) if leader)
