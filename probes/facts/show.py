"""The tables that probes of facts show.

A fact that a model does not complete in one wording need not be unknown to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

from interp.analysis.cautions.caution import LEADING, Caution, ordered
from interp.console import counted, echo
from interp.errors import UserError
from interp.report.glance import Opening, headline
from interp.report.page import FigureItem, TableItem
from interp.results.result import Result
from interp.statistics.proportions import proportions
from interp_probes.facts.wordings import ASKED
from interp_probes.linear.halves import ENTITIES

FILTERED_GROUPS = ("geographical",)
"""Entity groups in which pairs with facts that a model fails are excluded. For categorical pairs,
models give many different correct answers, so the authors of the paper checked them by hand, and
excluded none (Appendix C).
"""

_GROUP = "entity_group"


def _described(facts: pd.DataFrame) -> pd.DataFrame:
    """The columns that identify a fact: the system's factors, or else its text and answer."""
    named = [name for name in ("category", _GROUP, *ENTITIES) if name in facts]
    return facts[["prompt_id", *(named or ["text", "gold"])]]


def _by_group(table: pd.DataFrame) -> list[str]:
    """The columns that a summary is grouped by: the model, the facts' group if any, the wording."""
    return ["model", *([_GROUP] if _GROUP in table else []), "wording"]


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


class _OfFacts(Result):
    """A result about facts, in a table of the same name."""

    of_facts: str
    """The table."""

    @cached_property
    def asked(self) -> pd.DataFrame:
        """The table, with a row for each fact and wording that could be measured.

        Raises:
            UserError: the table has no rows.
        """
        table = self.table(self.of_facts)
        if table.empty:
            raise UserError(
                "no fact could be measured; see models/ and workers/ in the run's folder"
            )
        return in_wordings(table)

    def noted(self) -> Mapping[str, object]:
        """Number of facts missing for each model; prints a line for each model that lacks any."""
        total, rows = len(self.prompts), self.asked.groupby("model", sort=False)
        lacking = total - rows["prompt_id"].nunique()
        for model, count in lacking[lacking > 0].items():
            echo(
                f"{model}: {count:,} of {total:,} facts, counted in each wording, are missing from "
                "the table because they failed or have not been measured yet"
            )
        return {str(model): {"facts_without_row": int(own)} for model, own in lacking.items()}


class FactFamiliarity(_OfFacts):
    """Familiarity of models with facts."""

    of_facts = "familiarity"
    question = "How probable is each fact to the models?"

    def opening(self) -> Opening:
        """Of the facts as asked: mean familiarity, and the share that is echoed."""
        table = as_asked(self.asked)
        names = {
            "familiarity": "familiarity",
            "whole_name": "familiarity of the whole name",
            "after_echo": "familiarity after an echo",
            "echoes": "replies that begin by an echo",
        }
        return replace(super().opening(), numbers=_means(table, names))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Familiarity of each fact, and its mean by model, entity group and wording."""
        table = flag_shared(self.asked, self.prompts)
        table = table.merge(_described(self.prompts), on="prompt_id")
        table_of_groups = table.assign(shared=table["shared_with"] > 0)
        groups = table_of_groups.groupby(_by_group(table), sort=False)
        summary = groups["familiarity"].agg(["mean", "median", "min", "max"])
        summary = summary.assign(
            median_rank=groups["rank"].median(),
            whole_name=groups["whole_name"].mean(),
            after_echo=groups["after_echo"].mean(),
            echoes=groups["echoes"].sum(min_count=1),
            facts=groups.size(),
            shared_first_token=groups["shared"].sum(),
        )
        title = (
            "Familiarity: P(first token of the answer), by wording; median_rank: median place of "
            "this token among all; whole_name: mean P(all its tokens); "
            "after_echo: mean P(first token) after a repetition of the sentence; echoes: facts "
            "whose most probable reply begins to repeat it"
        )
        yield TableItem("familiarity", title, table, narrow=[(title, summary.reset_index())])

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """Those of every measurement, and tokens that lead whatever the fact."""
        return ordered((*super().cautions, *leading(self.asked)))


class KnownFacts(_OfFacts):
    """Facts that models complete, and facts that they fail."""

    of_facts = "knowledge"
    question = "Which facts do the models complete?"

    @cached_property
    def by_wording(self) -> pd.DataFrame:
        """How often facts are completed: model, wording, completed (a share), low, high, facts."""
        by = ["model", "wording"]
        shares = proportions(self.asked, values=["known"], by=by, cluster="fact")
        table = shares.rename(columns={"share": "completed", "n": "facts"})
        return table[[*by, "completed", "low", "high", "facts"]]

    def opening(self) -> Opening:
        """The share of the facts that each model completes, in each wording."""
        tables = self.asked.groupby("wording", sort=False)
        numbers = [_means(rows, {"known": f"facts completed, {name}"}) for name, rows in tables]
        return replace(super().opening(), numbers=pd.concat(numbers))

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Facts that each model completes, and facts that at least one does not as asked."""
        facts, table = self.prompts, self.asked
        failed = excluded(table, facts)
        table = table.merge(_described(facts), on="prompt_id")
        known = table.groupby(_by_group(table), sort=False)["known"]
        summary = known.agg(completed="sum", facts="size", share="mean").reset_index()
        title = "Facts completed, by greedy completion and wording"
        yield TableItem("knowledge", title, table, narrow=[(title, summary)])
        listed = failed.drop(columns=["prompt_id", "failed_by"]).replace(
            {"excluded": {True: "yes", False: "no"}}
        )
        by_hand = " (check categorical facts by hand)" if _GROUP in listed else ""
        listed = listed.drop(columns=_GROUP, errors="ignore")
        title = f"Facts that a model does not complete as asked{by_hand}"
        yield TableItem("excluded", title, failed, narrow=[(title, listed)] if len(listed) else ())


def _means(table: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Headline numbers for each model: the mean of each column over the facts."""
    found = proportions(
        table, values=list(names), by=["model"], cluster="prompt_id", continuous=True
    )
    return pd.concat(
        headline(rows, names[str(measure)], value="share", n="n", unit="facts")
        for measure, rows in found.groupby("measure", sort=False)
    )


def leading(table: pd.DataFrame) -> Iterator[Caution]:
    """Cautions about wordings in which one token leads for most facts and begins no answer."""
    for (model, wording), rows in table.groupby(["model", "wording"], sort=False):
        tokens = rows.loc[rows["rank"] > 1, "leading"].value_counts()
        if len(rows) > 1 and tokens.max() > len(rows) / 2:
            token, count = str(tokens.index[0]), int(tokens.iloc[0])
            text = (
                f"{wording}: the most probable token is “{token}” for {count:,} of "
                f"{counted(len(rows), 'fact')}, whose answers begin otherwise. This wording "
                "then measures how the model goes on rather than which facts it knows; compare "
                "the rank of the answer and the other wordings."
            )
            numbers = {"wording": wording, "token": token, "facts": count, "of": len(rows)}
            yield Caution(LEADING, str(model), text, numbers=numbers)


def flag_shared(table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The familiarity table with `shared_with` instead of `token_ids`.

    `shared_with` is the number of the model's other answers that share a first token with this
    answer; familiarity cannot tell these answers apart.
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

    Columns are prompt_id; category, entity_group, entity_a and entity_b, or text and gold if the
    facts have none of these; excluded (only for facts in groups): whether their pairs are excluded;
    failed_by: the names of the models that fail; why: the completions of these models.
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
