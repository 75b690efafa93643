"""The ledger of a study's models: entries of prompts, their shares, and curves over layers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from interp import LensReadings, Steered, StudyFolder
from interp.extend import counted
from interp.extend.cautions import COPIED, FEW_FAILURES, LEFT_OUT, NOTHING, Caution, ordered
from interp.extend.estimates import ALL, estimate
from interp.extend.prompts import PAIR
from interp.extend.results import STEERING, USED, copied, factors_of, ledger_table, steered_prompts
from interp.extend.statistics import FEWEST, proportions
from interp_probes.facts.show import KnownFacts
from interp_probes.ledger import STAGES

WRONG = "used and still wrong"
"""The entry `USED` of a wrong answer."""

MOST_VALUES = 4
"""Largest number of values of a factor by which shares are given."""


@dataclass(frozen=True)
class LedgerResults:
    """The three measurements of a study, and what they say together."""

    known: KnownFacts
    read: LensReadings
    steered: Steered

    @cached_property
    def models(self) -> list[str]:
        """The models whose prompts have been answered."""
        return [str(name) for name in self.answers["model"].unique()]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers to prompts whose failures are explained: model, prompt_id, correct."""
        asked = self.steered.table("steered", ["model", "prompt_id"])
        return self.read.table("answers", ["model", "prompt_id", "correct"]).merge(asked)

    @cached_property
    def entries(self) -> pd.DataFrame:
        """The ledger (`LensReadings.ledger`) with `seen`, and the prompts' factors."""
        entries = self.read.ledger(self.known, self.steered).merge(self.seen, how="left")
        prompts = self.read.prompts
        # The ledger has columns of its own about the fact.
        factors = [name for name in factors_of(prompts) if name not in entries]
        return entries.merge(prompts[["prompt_id", *factors]], on="prompt_id")

    @cached_property
    def clusters(self) -> str:
        """What the clusters are, how many, and whether several of them are about one fact."""
        rows = self.entries.drop_duplicates("prompt_id")
        prompts = self.read.prompts.set_index("prompt_id")
        pairs, of_pairs = prompts["pair_id"][rows["prompt_id"]], self.read.cluster in (None, PAIR)
        what = f"prompts with the same {self.read.cluster}"
        if of_pairs:
            alike = pairs.nunique() > rows["cluster"].nunique()
            what = "pairs of one cluster, or with the same texts" if alike else "pairs"
        number, facts = (rows[name].nunique() for name in ("cluster", "fact"))
        said = f"{what} ({counted(number, 'cluster')}, {counted(facts, 'fact')})"
        if facts < number:
            said += "; clusters about one fact count as independent, so intervals may be too narrow"
            said += ": a column cluster joins them" * of_pairs
        return said

    @cached_property
    def shares(self) -> pd.DataFrame:
        """`ledger_table`, by factors that have from two to `MOST_VALUES` values."""
        rows, prompts = self.entries, self.read.prompts.set_index("prompt_id")
        names = [name for name in factors_of(prompts) if name != ALL]
        values = {name: rows["prompt_id"].map(prompts[name]) for name in names}
        few = {name: cells for name, cells in values.items() if 2 <= cells.nunique() <= MOST_VALUES}
        table = ledger_table(rows, few)
        wrong = (table["answered"] == "wrong") & (table["entry"] == USED)
        table = table.assign(entry=table["entry"].mask(wrong, WRONG))
        order = table["model"].map(self.models.index).sort_values(kind="stable").index
        return table.loc[order].reset_index(drop=True)

    @cached_property
    def wordings(self) -> pd.DataFrame:
        """`KnownFacts.by_wording`, and judging: for how many facts "known" is taken from it."""
        by = ["model", "wording"]
        judging = self.entries.drop_duplicates(["model", "fact"])[by].value_counts()
        table = self.known.by_wording.join(judging.rename("judging"), on=by)
        return table.fillna({"judging": 0}).astype({"judging": int})

    @property
    def failures(self) -> pd.DataFrame:
        """The shares among all wrong answers: four rows for each model that has any."""
        rows = self.shares
        return rows[(rows["factor"] == ALL) & (rows["answered"] == "wrong")]

    @cached_property
    def sides(self) -> pd.DataFrame:
        """How often the fact is retrieved on each side, on one of which it may not be copied.

        model, side, retrieved (a share) with its interval, embedding (from the token's embedding
        alone), seen (share of prompts with the right word before the token), n, clusters.
        """
        facts = self.read.retrieved.merge(self.read.prompts[["prompt_id", "side"]])
        facts = facts.merge(self.seen, how="left").astype({"retrieved": "boolean"})
        by = ["model", "side"]
        shares = proportions(facts, values=["retrieved"], by=by, cluster="cluster")
        means = facts.astype({"embedding": float, "seen": float}).groupby(by)[["embedding", "seen"]]
        table = shares.rename(columns={"share": "retrieved"}).merge(means.mean().reset_index())
        return table[[*by, "retrieved", "low", "high", "embedding", "seen", "n", "clusters"]]

    @cached_property
    def seen(self) -> pd.DataFrame:
        """Whether the right word stands before the token that is read: model, prompt_id, seen."""
        rows = self.read.seen().drop(columns="group")
        return rows.drop_duplicates(["model", "prompt_id"], ignore_index=True)

    @cached_property
    def used(self) -> pd.DataFrame:
        """Effects of exchanges (`STEERING`), of all prompts together, whatever their side."""
        prompts = self.steered.prompts.assign(side=ALL)
        trials = steered_prompts(self.steered.table("steering_effects"), prompts)
        return estimate(STEERING, self.steered.clustered(trials)).astype({"layer": int})

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of the readings and of the exchanges, failures that are too few, lost prompts."""
        seen = self.read.seen().merge(self.answers[["model", "prompt_id"]])
        # The readings are of both sides; exchanges, perhaps of one, on which answers may be alike.
        read = (caution for caution in self.read.cautions if caution.kind != COPIED)
        changed = (caution for caution in self.steered.cautions if caution.kind == NOTHING)
        return ordered((*self._failing(), *self._lost(), *read, *copied(seen), *changed))

    def _failing(self) -> Iterator[Caution]:
        """A caution about each model with too few failures for intervals that say something."""
        failures = {str(row["model"]): row for row in self.failures.to_dict("records")}
        answered = self.answers.dropna(subset="correct")
        for model in self.models:
            row = failures.get(model)
            if row is None:
                correct = answered.loc[answered["model"] == model, "correct"]
                wrong = int((~correct.astype(bool)).sum())
                text = "it gives no wrong answer, so there is no failure to explain."
                if wrong:
                    counts = counted(wrong, "wrong answer")
                    text = f"none of its {counts} has an entry, so no share is given."
                yield Caution(FEW_FAILURES, model, text, numbers={"failures": 0})
            elif row["clusters"] < FEWEST:
                n, clusters = int(row["n"]), int(row["clusters"])
                counts = f"{counted(n, 'failure')} in {counted(clusters, 'cluster')} of prompts"
                text = f"it has {counts}; with fewer than {FEWEST}, there are counts and no shares."
                numbers = {"failures": n, "clusters": clusters}
                yield Caution(FEW_FAILURES, model, text, numbers=numbers)

    def _lost(self) -> Iterator[Caution]:
        """A caution about each model some of whose prompts have no entry."""
        with_entry = self.entries.dropna(subset="entry").groupby("model")["prompt_id"].nunique()
        for model, rows in self.answers.groupby("model", sort=False):
            asked, entered = rows["prompt_id"].nunique(), int(with_entry.get(model, 0))
            if entered < asked:
                text = (
                    f"{asked - entered:,} of {counted(asked, 'prompt')} have no entry: their right "
                    "word is left out, or an exchange or a completion is missing."
                )
                numbers = {"lost": asked - entered, "prompts": asked}
                yield Caution(LEFT_OUT, str(model), text, numbers=numbers)


def read_ledger(study: StudyFolder) -> LedgerResults:
    """The results of a study, finished or not (UserError: a measurement is missing)."""
    study.require(*STAGES)
    known, read, steered = (study.runs[stage] for stage in STAGES)
    return LedgerResults(KnownFacts.of(known), LensReadings.of(read), Steered.of(steered))
