"""Training on RobustLR's own sets (Sanyal et al. 2022, Section 5 and Appendix B)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from interp.prompts.messages import ALONE
from interp.prompts.prompt_set import PromptSet
from interp.training.spec import Split, TrainSpec
from interp_experiments.robustlr.prompts import Maker, made_by
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.training import SPLITS, StatementMaker, TheoryMaker

STATEMENTS = len(TheoryMaker.versions)

MOST_THEORIES = 10**7
MOST_DISTRACTORS = 1000


class RobustLRTraining(TrainSpec):
    """Learn whether a theory makes a statement True, False or Unknown."""

    name: ClassVar[str] = "robustlr"

    train_set: Literal["All", "NOT", "AND+NOT", "OR+NOT"] = "All"
    """which operators the theories have: All, NOT, AND+NOT or OR+NOT"""
    theories: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["train"] // STATEMENTS
    """theories that are learned, each with six statements"""
    held_out: Annotated[int, Field(ge=1, le=MOST_THEORIES)] = SPLITS["dev"] // STATEMENTS
    """theories of each held-out split, each with six statements"""

    distractors: Annotated[int, Field(ge=0, le=MOST_DISTRACTORS)] | None = None
    """give each statement a theory of its own, with up to so many sentences beside those that
    decide it (default: six statements share a whole theory, as published)"""

    def prompts(self, split: Split) -> PromptSet:
        """The statements of a split's theories; no theory is in two splits."""
        number = self.theories if split == "train" else self.held_out
        maker = self._maker(split, number)
        return made_by(
            [maker],
            ALONE,
            system=f"robustlr-{self.train_set}",
            seed=self.seed,
            description={"data": "generated", "split": split},
        )

    def _maker(self, split: Split, theories: int) -> Maker:
        words = Words.of("real")
        if self.distractors is None:
            return TheoryMaker(self.train_set, split, self.seed, words, theories)
        return StatementMaker(
            self.train_set, split, self.seed, words, self.distractors, theories * STATEMENTS
        )
