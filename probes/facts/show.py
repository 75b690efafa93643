"""The tables that probes of facts show.

A fact that a model does not complete in one wording need not be unknown to it.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from interp import Result, UserError
from interp.extend import counted, estimates
from interp.extend.cautions import LEADING, Caution, ordered, reply_text
from interp.extend.estimates import ALL, Estimated, Plain, Share, Table
from interp.extend.page import FigureItem, TableItem, echo
from interp.extend.statistics import weighted_median
from interp_probes.facts.wordings import ASKED
from interp_probes.linear.halves import ENTITIES

FILTERED_GROUPS = ("geographical",)
"""Entity groups in which pairs with facts that a model fails are excluded. Categorical pairs have
many correct answers, so the paper's authors checked them by hand, and excluded none (Appendix C).
"""

_GROUP = "entity_group"


def _described(facts: pd.DataFrame) -> pd.DataFrame:
    """The columns that identify a fact: the system's factors, or else its text and answer."""
    named = [name for name in ("category", _GROUP, *ENTITIES) if name in facts]
    return facts[["prompt_id", *(named or ["text", "gold"])]]


def in_wordings(table: pd.DataFrame) -> pd.DataFrame:
    """A table of facts; of folders of versions without some columns, what these would be."""
    older: dict[str, Any] = {"fact": table["prompt_id"], "wording": ASKED}
    if "familiarity" in table:
        older |= dict.fromkeys(("rank", "leading", "after_echo", "echoes"), float("nan"))
    return table.assign(**{name: what for name, what in older.items() if name not in table})


def as_asked(table: pd.DataFrame) -> pd.DataFrame:
    """The rows about facts as the data ask them."""
    table = in_wordings(table)
    return table[table["wording"] == ASKED].reset_index(drop=True)


_OF_GROUP = estimates.column(_GROUP, estimates.TEXT, "the facts' group, or `all`")

FAMILIAR = Table(
    name="familiarity_table",
    title="Familiarity",
    text="How probable the answer is, by wording and group of facts.",
    by=["model", _GROUP, "wording"],
    measured="familiarity",
    numbers=[
        Share("familiarity", "P(first token of the answer)", "probability", continuous=True),
        Share("whole_name", "P(all its tokens)", "probability", continuous=True),
        Share("after_echo", "P(first token) behind the sentence", "probability", continuous=True),
        Share("echoes", "facts whose most probable reply begins to repeat it", "share"),
        Plain(
            "median",
            "median familiarity",
            "probability",
            how=weighted_median,
            why="familiarity",
        ),
        Plain(
            "median_rank",
            "median place of this token",
            "place",
            how=weighted_median,
            why="familiarity",
        ),
        Plain("shared_first_token", "facts with this token in common", "share", why="familiarity"),
    ],
    trials="facts",
    split=["model"],
    headline=estimates.Largest(
        "familiarity",
        "familiarity",
        where={_GROUP: ALL, "wording": ASKED},
        also={
            "whole_name": "familiarity of the whole name",
            "after_echo": "familiarity after an echo",
            "echoes": "replies that begin by an echo",
        },
    ),
    more=[_OF_GROUP],
)

KNOWN = Table(
    name="knowledge_table",
    title="Facts completed",
    text="The greedy completion, by wording and group of facts.",
    by=["model", _GROUP, "wording"],
    measured="knowledge",
    numbers=[Share("completed", "facts whose completion names it", "share", ends=("low", "high"))],
    trials="facts",
    headline=estimates.Largest(
        "completed", "facts completed, {wording}", within=["wording"], where={_GROUP: ALL}
    ),
    more=[_OF_GROUP],
)


class _OfFacts(Result):
    """A result about facts, in a table of the same name."""

    of_facts: str

    def _by_group(self, table: Table, trials: pd.DataFrame) -> tuple[Estimated, ...]:
        """A small table of all facts, and of each group if there are groups."""
        trials = trials.drop(columns=_GROUP, errors="ignore")
        trials = trials.assign(**{"pair_id": trials["fact"], estimates.CLUSTER: trials["fact"]})
        parts = [trials.assign(**{_GROUP: ALL})]
        if _GROUP in self.prompts:
            groups = self.prompts.loc[self.prompts[_GROUP] != ALL, ["prompt_id", _GROUP]]
            parts.append(trials.merge(groups.dropna(), on="prompt_id"))
        return (Estimated(table, pd.concat(parts, ignore_index=True)),)

    @cached_property
    def asked(self) -> pd.DataFrame:
        """The table, with a row for each fact and wording measured (UserError: it has none)."""
        table = self.table(self.of_facts)
        if table.empty:
            raise UserError(
                "no fact could be measured; see models/ and workers/ in the run's folder"
            )
        return in_wordings(table)

    def noted(self) -> Mapping[str, object]:
        """Number of facts missing for each model; prints a line for each model that lacks any."""
        total = len(self.prompts)
        lacking = total - self.asked.groupby("model", sort=False)["prompt_id"].nunique()
        for model, count in lacking[lacking > 0].items():
            echo(
                f"{model}: {count:,} of {total:,} facts, counted in each wording, are missing from "
                "the table because they failed or have not been measured yet"
            )
        return {str(model): {"facts_without_row": int(number)} for model, number in lacking.items()}


class FactFamiliarity(_OfFacts):
    """Familiarity of models with facts."""

    of_facts = "familiarity"
    question = "How probable is each fact to the models?"

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Familiarity of each fact, and its mean by model, entity group and wording."""
        table = self._shared.merge(_described(self.prompts), on="prompt_id")
        yield TableItem("familiarity", "Familiarity of each fact", table, narrow=(), folded=True)
        yield from self.declared_items()

    @cached_property
    def _shared(self) -> pd.DataFrame:
        return flag_shared(self.asked, self.prompts)

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The mean familiarity of facts."""
        rows = self._shared
        rows = rows.assign(median=rows["familiarity"], median_rank=rows["rank"])
        return self._by_group(FAMILIAR, rows.assign(shared_first_token=rows["shared_with"] > 0))

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and tokens that lead whatever the fact."""
        return ordered((*super().cautions, *leading(self.asked)))


class KnownFacts(_OfFacts):
    """Facts that models complete, and facts that they fail."""

    of_facts = "knowledge"
    question = "Which facts do the models complete?"

    @cached_property
    def estimated(self) -> tuple[Estimated, ...]:
        """The share of facts that is completed."""
        return self._by_group(KNOWN, self.asked.rename(columns={"known": "completed"}))

    @cached_property
    def by_wording(self) -> pd.DataFrame:
        """How often facts are completed: model, wording, completed (a share), low, high, facts."""
        table = self.estimated[0].frame
        columns = ["model", "wording", "completed", "low", "high", "facts"]
        return table.loc[table[_GROUP] == ALL, columns].reset_index(drop=True)

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Facts that each model completes, and facts that at least one does not as asked."""
        table = self.asked.merge(_described(self.prompts), on="prompt_id")
        failed = excluded(self.asked, self.prompts)
        yield TableItem("knowledge", "Completion of each fact", table, narrow=(), folded=True)
        yield from self.declared_items()
        listed = failed.drop(columns=["prompt_id", "failed_by"]).replace(
            {"excluded": {True: "yes", False: "no"}}
        )
        by_hand = " (check categorical facts by hand)" if _GROUP in listed else ""
        listed = listed.drop(columns=_GROUP, errors="ignore")
        title = f"Facts that a model does not complete as asked{by_hand}"
        yield TableItem("excluded", title, failed, narrow=[(title, listed)] if len(listed) else ())


def leading(table: pd.DataFrame) -> Iterator[Caution]:
    """Cautions about wordings in which one token leads for most facts and begins no answer."""
    for (model, wording), rows in table.groupby(["model", "wording"], sort=False):
        tokens = rows.loc[rows["rank"] > 1, "leading"].value_counts()
        if len(rows) > 1 and tokens.max() > len(rows) / 2:
            token, count = str(tokens.index[0]), int(tokens.iloc[0])
            text = (
                f"{wording}: the most probable token is “{reply_text(token)}” for {count:,} of "
                f"{counted(len(rows), 'fact')}, whose answers begin otherwise. This wording "
                "then measures how the model goes on rather than which facts it knows; compare "
                "the rank of the answer and the other wordings."
            )
            numbers = {"wording": wording, "token": token, "facts": count, "of": len(rows)}
            yield Caution(LEADING, str(model), text, numbers=numbers)


def flag_shared(table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The familiarity table with `shared_with` instead of `token_ids`.

    `shared_with` counts the model's other answers that have a first token of this one.
    """
    joined = table[["model", "prompt_id", "token_ids"]].merge(
        facts[["prompt_id", "gold"]], on="prompt_id", how="left"
    )
    counted = joined.assign(row=range(len(joined))).explode("token_ids")
    shared = counted.merge(counted, on=["model", "token_ids"], suffixes=("", "_other"))
    answers = shared.groupby("row")["gold_other"].nunique()
    return table.drop(columns="token_ids").assign(shared_with=answers.to_numpy() - 1)


def excluded(knowledge_table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The facts that at least one model does not complete as asked, in the order of `facts`.

    prompt_id; category, entity_group, entity_a and entity_b, or text and gold; excluded (only for
    facts in groups): whether their pairs are; failed_by (models) and why (their completions).
    """
    asked = as_asked(knowledge_table)
    failed = asked[~asked["known"].astype(bool)]
    said = failed["model"] + " said " + failed["completion"].map(repr)
    by_fact = pd.DataFrame(
        {
            "failed_by": failed.groupby("prompt_id")["model"].agg(", ".join),
            "why": said.groupby(failed["prompt_id"]).agg("; ".join),
        }
    )
    named = _described(facts)
    rows = named.merge(by_fact, left_on="prompt_id", right_index=True)
    if _GROUP in rows:
        rows.insert(named.shape[1], "excluded", rows[_GROUP].isin(FILTERED_GROUPS))
    return rows.reset_index(drop=True)
