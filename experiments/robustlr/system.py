"""RobustLR as systems that every command can use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from interp.errors import UserError, shortened
from interp.prompts.prompt import ALONE, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import System
from interp.training.spec import Split
from interp_experiments.robustlr.evaluation_sets import (
    EVALUATION_SETS,
    EditPairMaker,
    GroupMaker,
    pairs_of_all,
)
from interp_experiments.robustlr.learning import SPLITS, maker_of
from interp_experiments.robustlr.prompts import (
    DECISIVE,
    STRATA,
    Maker,
    demonstrations,
    made_by,
    to_prompt,
)
from interp_experiments.robustlr.published import COLUMNS, load_published, to_row
from interp_experiments.robustlr.sampling import Vocabulary, Words
from interp_experiments.robustlr.variants import CONTRAST_SETS

DEFAULT_LIMIT = 240
"""Default number of theories: forty of each of the six sets."""

SHORT = 4
"""Maximum number of sentences in a short theory that do not decide its statement."""


class RobustLR(System):
    """The common part of RobustLR's systems."""

    default_limit = DEFAULT_LIMIT

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The F1 scores measured: in domain, with distractors, and by evaluation set."""
        measured = card["measured"]
        return {
            "f1_in_domain": measured["in_domain"],
            "f1_with_other_sentences": measured["with_other_sentences"],
            **{f"f1_{name}": value for name, value in measured["f1"].items()},
        }


@dataclass(frozen=True)
class EvaluationSets(RobustLR):
    """Evaluation sets at their published sizes (Section 3, Table 8)."""

    name: str
    sets: Sequence[str] = EVALUATION_SETS
    vocabulary: Vocabulary = "real"
    distractors: bool = False
    """Whether theories keep sentences that decide nothing."""
    shown: bool = False
    """Whether three demonstrations precede each question; only causal models can read them."""

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: generated from `seed`, or read from `data` in the authors' columns.

        Raises:
            UserError: the data cannot be read, or contradict themselves.
        """
        messages = demonstrations() if self.shown else ALONE
        if data is not None:
            prompts = [to_prompt(one, messages) for one in load_published(data)]
            return read_set(self.name, prompts, seed=seed, data=data)
        description = {
            "data": "generated",
            "vocabulary": self.vocabulary,
            "distractors": str(self.distractors),
        }
        makers = self._makers(seed)
        return made_by(makers, messages, system=self.name, seed=seed, description=description)

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """All generated instances in the authors' columns, and the set that each belongs to."""
        return rows_of(self._makers(seed))

    def _makers(self, seed: int) -> list[Maker]:
        words = Words.of(self.vocabulary)
        return [GroupMaker(name, seed, words, self.distractors) for name in self.sets]


@dataclass(frozen=True)
class TrainingSet(RobustLR):
    """A training set with its splits; its prompts are those of the test split (Section 5)."""

    name: str
    set: str
    shown: bool = False
    """Whether three demonstrations precede each question; only causal models can read them."""
    distractors: int | None = None
    """Give each statement its own theory, with at most this many sentences that do not decide it;
    None if six statements share a whole theory, as published."""

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """The prompts of the test split: generated, or read from `data` in the authors' columns.

        Raises:
            UserError: the data cannot be read, or contradict themselves.
        """
        if data is not None:
            return EvaluationSets(self.name, shown=self.shown).prompts(seed=seed, data=data)
        return made_by(
            [self._maker(seed, "test")],
            demonstrations() if self.shown else ALONE,
            system=self.name,
            seed=seed,
            description={"data": "generated", "split": "test"},
        )

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """All generated instances in the authors' columns, and the split that each belongs to."""
        splits = [rows_of([self._maker(seed, split)]).assign(split=split) for split in SPLITS]
        return pd.concat(splits, ignore_index=True)

    def _maker(self, seed: int, split: Split) -> Maker:
        return maker_of(self.set, split, seed, self.distractors)


@dataclass(frozen=True)
class EditPairs(RobustLR):
    """Each base theory of the contrast sets, paired with each edit that changes its label."""

    name: str

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All pairs: generated from `seed`, or from groups in the authors' columns.

        Raises:
            UserError: the data cannot be read or contradict themselves, or no group has an edit
                with another label.
        """
        if data is not None:
            prompts = [to_prompt(one) for one in pairs_of_all(load_published(data))]
            if not prompts:
                raise UserError(
                    f"no group in {shortened(data)} has an edit whose label differs from its "
                    "base's; expected a contrast set (C-CS, D-CS or N-CS)"
                )
            return read_set(self.name, prompts, seed=seed, data=data)
        return made_by(
            self._makers(seed),
            ALONE,
            system=self.name,
            seed=seed,
            description={"data": "generated"},
        )

    def dataset(self, *, seed: int) -> pd.DataFrame:
        """All generated pairs in the authors' columns, with their sets."""
        return rows_of(self._makers(seed))

    def _makers(self, seed: int) -> list[Maker]:
        words = Words.of("real")
        return [EditPairMaker(GroupMaker(name, seed, words, False)) for name in CONTRAST_SETS]


def read_set(system: str, prompts: Sequence[Prompt], *, seed: int, data: str) -> PromptSet:
    """Prompts that were read as the set of a system."""
    return PromptSet(
        system=system,
        sides=tuple(dict.fromkeys(prompt.side for prompt in prompts)),
        strata=STRATA,
        build=prompts.__getitem__,
        numbers=range(len(prompts)),
        seed=seed,
        description={"data": data},
        whole_groups=False,
        decisive=DECISIVE,
    )


def rows_of(makers: Sequence[Maker]) -> pd.DataFrame:
    """All groups of makers in the authors' columns, and the set that each belongs to."""

    def rows() -> Iterator[dict[str, str | int]]:
        for maker in makers:
            for index in range(len(maker)):
                yield from ({**to_row(one), "set": one.set} for one in maker.group(index))

    return pd.DataFrame(rows(), columns=[*COLUMNS, "set"])


system = EvaluationSets("robustlr")
distractors = EvaluationSets("robustlr-distractors", distractors=True)
nonce = EvaluationSets("robustlr-nonce", vocabulary="nonce")
prompted = EvaluationSets("robustlr-prompted", shown=True)
negation = TrainingSet("robustlr-not", "NOT")
conjunction = TrainingSet("robustlr-and-not", "AND+NOT")
disjunction = TrainingSet("robustlr-or-not", "OR+NOT")
everything = TrainingSet("robustlr-all", "All")
edits = EditPairs("robustlr-edits")
bare = TrainingSet("robustlr-bare", "All", distractors=0)
short = TrainingSet("robustlr-short", "All", distractors=SHORT)
