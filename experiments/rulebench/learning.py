"""Inferential Rule-Following Tuning (IRFT): Sun et al. 2024, Section 5, formula 1.

The model is trained on questions with the golden rule among shuffled noise rules, and the loss
covers only the answer. The number of noise rules is drawn for each question. The paper uses 0 to 3
for StringGame, and 2 or none for in-domain tuning.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from interp import Prompt, PromptSet
from interp.extend import FromText, TrainSpec, texts
from interp.extend.training import Split
from interp_experiments.chance import pick
from interp_experiments.rulebench.items import BY_NAME, KINSHIP, STRING_GAME, RuleSet
from interp_experiments.rulebench.items import Split as RuleSplit
from interp_experiments.rulebench.kinship import KinshipQuestions
from interp_experiments.rulebench.layout import part_to_train_on, read_set
from interp_experiments.rulebench.prompts import DIRECT_TOKENS, PREFIX, Entry, Setting, to_prompt
from interp_experiments.rulebench.string_game import game_questions

if TYPE_CHECKING:
    import pandas as pd

    from interp import Spec

KINSHIP_HOPS = range(2, 5)

MOST_NOISE = 29
MOST_QUESTIONS = 10**7


class RuleFollowing(TrainSpec):
    """Train a model to follow the golden rule among noise rules (IRFT)."""

    name = "irft"

    data: Annotated[str, FromText(texts.name, "NAME")] = STRING_GAME.name
    """string-game, kinship, or a folder in the authors' layout with train_data.json or
    validation_data.json; a fifth of the generated rules is held out for measurements"""
    questions: Annotated[int, Field(ge=1, le=MOST_QUESTIONS)] = 20_000
    """number of questions to train on; from a folder, the first ones are taken"""
    held_out: Annotated[int, Field(ge=1, le=MOST_QUESTIONS)] = 500
    """number of questions in each held-out split"""
    noise: Annotated[
        tuple[Annotated[int, Field(ge=0, le=MOST_NOISE)], ...],
        FromText(texts.numbers, "NUMBERS"),
        Field(min_length=1),
    ] = (0, 1, 2, 3)
    """possible numbers of noise rules, such as 0-3 or 2; one is drawn for each question"""
    thought: bool = False
    """train the model to name the rule that fits before it answers, as in a chain of thought"""

    def prompts(self, split: Split) -> PromptSet:
        """The questions of a split, each with its golden rule and a drawn number of noise rules."""
        rule_set = self._rule_set(split)
        version = rule_set.factual or rule_set.counterfactual
        assert version is not None
        items = version.items[: self.questions]
        if split != "train":
            # Dev and test get alternating questions, so both have the same mix of hops.
            items = version.items[split == "test" :: 2][: self.held_out]
        drawn = (random.Random(f"irft noise {split} {self.seed} {item.id}") for item in items)
        entries = [
            Entry(rule_set, version, item, pick(rng, self._settings), item.id)
            for item, rng in zip(items, drawn, strict=True)
        ]
        return PromptSet(
            system=f"irft {rule_set.kind.name}",
            sides=tuple(setting.name for setting in self._settings),
            strata=("rules",),
            build=lambda number: to_prompt(*entries[number], seed=self.seed),
            numbers=range(len(entries)),
            seed=self.seed,
            description={"data": self.data, "split": split},
            whole_groups=False,
        )

    def target(self, prompt: Prompt) -> str:
        """The correct answer, after the golden rule if `thought` is set."""
        answer = BY_NAME[prompt.factors["set"]].written(prompt.answer.gold)
        if not self.thought:
            return answer
        return f"Rule {prompt.factors['golden_place']} fits. {PREFIX} {answer}."

    def scored_by(self) -> "Spec":
        """How answers to held-out questions are generated."""
        from interp import Generate

        return Generate(max_new_tokens=DIRECT_TOKENS)

    def metrics(
        self, prompts: Sequence[Prompt], tables: "Mapping[str, pd.DataFrame]"
    ) -> dict[str, float]:
        """Accuracy, overall and by noise rules; a question that could not be measured is wrong."""
        texts = tables["completions"].set_index("prompt_id")["correct"].astype(bool)
        noise_of = {p.id: sum(name.startswith("noise") for name in p.segments) for p in prompts}
        right = texts[list(noise_of)]
        by_noise = right.groupby(list(noise_of.values())).mean()
        scores = {"prompts": float(len(right)), "accuracy": float(right.mean())}
        return scores | {f"accuracy with {n} noise": share for n, share in by_noise.items()}

    @cached_property
    def _settings(self) -> tuple[Setting, ...]:
        return tuple(
            Setting(quantity="few" if n else "golden", noise=n or None, thought=self.thought)
            for n in dict.fromkeys(self.noise)
        )

    def _rule_set(self, split: Split) -> RuleSet:
        """The set that contains a split; dev and test are halves of one set."""
        part: RuleSplit = "train" if split == "train" else "held-out"
        number = self.questions if split == "train" else 2 * self.held_out
        if self.data == STRING_GAME.name:
            return game_questions(self.seed, part, number)
        if self.data == KINSHIP.name:
            per_hop = ceil(number / len(KINSHIP_HOPS))
            seed = f"irft {part} {self.seed}"
            return KinshipQuestions(seed, per_hop, KINSHIP_HOPS, part).rule_set
        folder = Path(self.data)
        return read_set(folder, part=part_to_train_on(folder) if split == "train" else "test")
