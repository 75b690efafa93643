"""The tables that probes of facts show."""

from collections.abc import Iterator, Mapping

import pandas as pd

from interp.console import echo
from interp.errors import UserError
from interp.report.glance import headline
from interp.report.page import FigureItem, TableItem
from interp.results.result import Result
from interp.statistics.proportions import proportions
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
    """The columns that a summary is grouped by: the model, and the facts' group if there is one."""
    return ["model", *([_GROUP] if _GROUP in table else [])]


class FactFamiliarity(Result):
    """Familiarity of models with facts."""

    question = "How probable is each fact to the models?"

    def headline(self) -> pd.DataFrame:
        """Mean familiarity over the facts, and the share of replies that repeat the sentence."""
        table = _with_echoes(_measured(self, "familiarity"))
        names = {
            "familiarity": "familiarity",
            "whole_name": "familiarity of the whole name",
            "after_echo": "familiarity after an echo",
            "echoes": "replies that begin by an echo",
        }
        return _means(table, names)

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Familiarity of each fact, and its mean by model and entity group."""
        table = flag_shared(_with_echoes(_measured(self, "familiarity")), self.prompts)
        table = table.merge(_described(self.prompts), on="prompt_id")
        table_of_groups = table.assign(shared=table["shared_with"] > 0)
        groups = table_of_groups.groupby(_by_group(table), sort=False)
        summary = groups["familiarity"].agg(["mean", "median", "min", "max"])
        summary = summary.assign(
            whole_name=groups["whole_name"].mean(),
            after_echo=groups["after_echo"].mean(),
            echoes=groups["echoes"].sum(min_count=1),
            facts=groups.size(),
            shared_first_token=groups["shared"].sum(),
        )
        title = (
            "Familiarity: P(first token of the answer); whole_name: mean P(all its tokens); "
            "after_echo: mean P(first token) after a repetition of the sentence; echoes: facts "
            "whose most probable reply begins to repeat it"
        )
        yield TableItem("familiarity", title, table, narrow=[(title, summary.reset_index())])

    def noted(self) -> Mapping[str, object]:
        """The number of facts that have no row."""
        return _lacking(self.prompts, _measured(self, "familiarity"))


class KnownFacts(Result):
    """Facts that models complete, and facts that they fail."""

    question = "Which facts do the models complete?"

    def headline(self) -> pd.DataFrame:
        """The share of the facts that each model completes."""
        return _means(_measured(self, "knowledge"), {"known": "facts known"})

    def items(self) -> Iterator[TableItem | FigureItem]:
        """Facts that each model knows, and facts that at least one model fails."""
        facts, table = self.prompts, _measured(self, "knowledge")
        failed = excluded(table, facts)
        table = table.merge(_described(facts), on="prompt_id")
        known = table.groupby(_by_group(table), sort=False)["known"]
        summary = known.agg(known="sum", facts="size", share="mean").reset_index()
        title = "Facts known, by greedy completion"
        yield TableItem("knowledge", title, table, narrow=[(title, summary)])
        listed = failed.drop(columns=["prompt_id", "failed_by"]).replace(
            {"excluded": {True: "yes", False: "no"}}
        )
        by_hand = " (check categorical facts by hand)" if _GROUP in listed else ""
        listed = listed.drop(columns=_GROUP, errors="ignore")
        title = f"Facts that a model fails{by_hand}"
        yield TableItem("excluded", title, failed, narrow=[(title, listed)] if len(listed) else ())

    def noted(self) -> Mapping[str, object]:
        """The number of facts that have no row."""
        return _lacking(self.prompts, _measured(self, "knowledge"))


def _means(table: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Headline numbers for each model: the mean of each column over the facts."""
    found = proportions(
        table, values=list(names), by=["model"], cluster="prompt_id", continuous=True
    )
    return pd.concat(
        headline(rows, names[str(measure)], value="share", n="n", unit="facts")
        for measure, rows in found.groupby("measure", sort=False)
    )


def _lacking(facts: pd.DataFrame, table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Number of facts missing for each model; prints a line for each model that lacks any."""
    lacking = len(facts) - table.groupby("model", sort=False)["prompt_id"].nunique()
    for model, count in lacking[lacking > 0].items():
        echo(
            f"{model}: {count:,} of {len(facts):,} facts are missing from the table because they "
            "failed or have not been measured yet"
        )
    return {str(model): {"facts_without_row": int(count)} for model, count in lacking.items()}


def _measured(result: Result, name: str) -> pd.DataFrame:
    """A table with a row for each fact that could be measured.

    Raises:
        UserError: the table has no rows.
    """
    table = result.table(name)
    if table.empty:
        raise UserError("no fact could be measured; see models/ and workers/ in the run's folder")
    return table


def _with_echoes(table: pd.DataFrame) -> pd.DataFrame:
    """The familiarity table; NaN where a folder's version did not measure echoes."""
    return table.assign(
        **{name: float("nan") for name in ("after_echo", "echoes") if name not in table}
    )


def flag_shared(table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The familiarity table with `shared_with` instead of `token_ids`.

    `shared_with` is the number of the model's other answers that share a first token with this
    answer; familiarity cannot tell these answers apart.

    Args:
        table: the familiarity table.
        facts: the facts' prompts table, with prompt_id and gold, the answer.
    """
    joined = table[["model", "prompt_id", "token_ids"]].merge(
        facts[["prompt_id", "gold"]], on="prompt_id", how="left"
    )
    counted = joined.assign(row=range(len(joined))).explode("token_ids")
    shared = counted.merge(counted, on=["model", "token_ids"], suffixes=("", "_other"))
    answers = shared.groupby("row")["gold_other"].nunique()
    return table.drop(columns="token_ids").assign(shared_with=answers.to_numpy() - 1)


def excluded(knowledge_table: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The facts that at least one model fails: one row per fact, in the order of `facts`.

    Columns are prompt_id; category, entity_group, entity_a and entity_b, or text and gold if the
    facts have none of these; excluded (only for facts in groups): whether their pairs are excluded;
    failed_by: the names of the models that fail; why: the completions of these models.

    Args:
        knowledge_table: the knowledge table of all models of a study.
        facts: the facts' prompts table.
    """
    failed = knowledge_table[~knowledge_table["known"].astype(bool)]
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
