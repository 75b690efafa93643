"""Systems that give the questions of RuleBench to every command."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interp import PromptSet, System, UserError
from interp.extend import shortened
from interp_experiments.rulebench import prompts
from interp_experiments.rulebench.items import RuleSet
from interp_experiments.rulebench.kinship import HOPS, KinshipQuestions
from interp_experiments.rulebench.layout import listed, read_sets
from interp_experiments.rulebench.string_game import game_questions

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RuleBench(System):
    """Questions under several settings; a group is one question under all of them."""

    name: str
    settings: tuple[prompts.Setting, ...]
    generated: Callable[[int], RuleSet]
    reads_data: bool = True

    cluster = "rule"
    """They are alike, whatever names or letters occur."""

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """The questions generated from a seed, or those in a folder in the authors' layout."""
        if data is None:
            return self.prompts_of([self.generated(seed)], seed=seed, data=None)
        if not self.reads_data:
            raise UserError(
                f"{self.name} reads no data (got {shortened(data)!r}): none are published, and "
                "its questions are generated; omit --data"
            )
        return self.prompts_of(read_sets(Path(data)), seed=seed, data=data)

    def prompts_of(self, rule_sets: Sequence[RuleSet], *, seed: int, data: str | None) -> PromptSet:
        """The questions of the sets as prompts; a UserError if no setting applies to them."""
        description = {
            "data": "generated" if data is None else data,
            "sets": ", ".join(rule_set.kind.name for rule_set in rule_sets),
        }
        problems = [line for each in rule_sets for line in each.problems]
        if problems:
            description["left_out"] = listed(problems, between="; ")
        entries = [one for each in rule_sets for one in prompts.entries(each, self.settings)]
        sides = tuple(setting.name for setting in self.settings)
        if not entries:
            raise UserError(
                f"{description['sets']} has no questions for {self.name}; expected a set with "
                f"{', '.join(sides)}"
            )
        groups = {entry.group for entry in entries}
        return PromptSet(
            system=self.name,
            sides=sides,
            strata=("set", *(rule_sets[0].kind.factors if len(rule_sets) == 1 else ())),
            build=lambda number: prompts.to_prompt(*entries[number], seed=seed),
            numbers=range(len(entries)),
            seed=seed,
            description=description,
            decisive=prompts.DECISIVE,
            whole_groups=len(entries) == len(groups) * len(sides),
        )

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """One row per question and version: question, correct answer and both forms of the rule."""
        import pandas as pd

        rule_set = self.generated(seed)
        versions = {"factual": rule_set.factual, "counterfactual": rule_set.counterfactual}
        return pd.DataFrame(
            {
                "id": f"{rule_set.kind.name}/{item.id}",
                "version": name,
                **item.factors,
                "question": item.question,
                "gold": item.gold,
                "rule": item.rule,
                "natural": version.rules[item.rule].natural,
                "logic": version.rules[item.rule].logic,
            }
            for name, version in versions.items()
            if version is not None
            for item in version.items
        )

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The untuned model, and accuracies by setting, on actions and on conditions."""
        measured = card["measured"]
        return {
            "tuned_from": card["recipe"]["base"] or "-",
            **{f"accuracy_{setting}": value for setting, value in measured["accuracy"].items()},
            "actions": measured["actions"],
            "conditions": measured["conditions"],
        }


@lru_cache(maxsize=4)
def short_kinship_set(seed: int) -> RuleSet:
    """Kinship questions of two and three hops."""
    return KinshipQuestions(seed, per_hop=600, hops=HOPS[:2]).rule_set


@lru_cache(maxsize=4)
def kinship_set(seed: int) -> RuleSet:
    """The kinship questions generated from a seed."""
    return KinshipQuestions(seed).rule_set


string_game_set = lru_cache(maxsize=4)(game_questions)
"""The StringGame questions generated from a seed, about held-out rules."""

# Small models can seldom read several thousand tokens (thirty rules, long stories, demonstrations).
system = RuleBench("rulebench", prompts.RULES[:-1], short_kinship_set)
full = RuleBench("rulebench-full", prompts.RULES, kinship_set)
logic = RuleBench("rulebench-logic", prompts.FORMS, kinship_set)
thought = RuleBench("rulebench-thought", prompts.THOUGHT, kinship_set)
counterfactual = RuleBench("rulebench-counterfactual", prompts.COUNTERFACTUAL, kinship_set)
versions = RuleBench("rulebench-versions", prompts.VERSIONS, short_kinship_set)
string_game = RuleBench(
    "rulebench-string-game", prompts.RULES[:-1], string_game_set, reads_data=False
)
