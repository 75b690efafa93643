"""Systems that give the questions of RobustLR to every command."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interp import PromptSet, System, UserError
from interp.extend import shortened
from interp.extend.prompts import ALONE
from interp_experiments.robustlr.evaluation_sets import (
    EVALUATION_SETS,
    edit_pairs,
    evaluation_set,
    pairs_of_all,
)
from interp_experiments.robustlr.language import Groups, Instance
from interp_experiments.robustlr.learning import SPLITS, training_set
from interp_experiments.robustlr.prompts import (
    DECISIVE,
    STRATA,
    demonstrations,
    made_by,
    to_prompt,
)
from interp_experiments.robustlr.published import COLUMNS, load_published, to_row
from interp_experiments.robustlr.sampling import Vocabulary, Words
from interp_experiments.robustlr.variants import CONTRAST_SETS

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_LIMIT = 240
"""Default number of theories: 40 from each of the six sets."""

SHORT = 4
"""Maximum number of sentences in a short theory that do not decide its statement."""


@dataclass(frozen=True)
class RobustLR(System):
    """Groups of instances, either generated or read from data in the authors' format."""

    name: str
    shown: bool = False
    """Whether three demonstrations precede each question; only causal models can use them."""

    default_limit = DEFAULT_LIMIT

    @abstractmethod
    def _sets(self, seed: int) -> Sequence[Groups]: ...

    def _description(self) -> dict[str, str]:
        return {}

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: generated from `seed`, or read from `data` in the authors' format.

        Raises:
            UserError: the data cannot be read or contradict themselves.
        """
        messages = demonstrations() if self.shown else ALONE
        if data is None:
            return made_by(
                self._sets(seed),
                messages,
                system=self.name,
                seed=seed,
                description={"data": "generated", **self._description()},
            )
        prompts = [to_prompt(one, messages) for one in self.read(data)]
        return PromptSet(
            system=self.name,
            sides=tuple(dict.fromkeys(prompt.side for prompt in prompts)),
            strata=STRATA,
            build=prompts.__getitem__,
            numbers=range(len(prompts)),
            seed=seed,
            description={"data": data},
            whole_groups=False,
            decisive=DECISIVE,
        )

    def read(self, data: str) -> Sequence[Instance]:
        """The instances in published data."""
        return load_published(data)

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """All generated instances with the authors' columns and the column `set`."""
        return rows_of(self._sets(seed))

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The F1 scores measured: in domain, with distractors, and by evaluation set."""
        measured = card["measured"]
        scores = {name: measured[name] for name in ("in_domain", "with_other_sentences")}
        return {f"f1_{name}": value for name, value in {**scores, **measured["f1"]}.items()}


@dataclass(frozen=True)
class EvaluationSets(RobustLR):
    """The six evaluation sets at their published sizes (Section 3, Table 8)."""

    vocabulary: Vocabulary = "real"
    distractors: bool = False
    """Whether theories keep sentences that decide nothing."""

    def _description(self) -> dict[str, str]:
        return {"vocabulary": self.vocabulary, "distractors": str(self.distractors)}

    def _sets(self, seed: int) -> Sequence[Groups]:
        words = Words.of(self.vocabulary)
        return [
            evaluation_set(name, seed, words, distractors=self.distractors)
            for name in EVALUATION_SETS
        ]


@dataclass(frozen=True)
class TrainingSet(RobustLR):
    """A training set with its splits; its prompts are those of the test split (Section 5)."""

    set: str = "All"
    distractors: int | None = None
    """Give each statement its own theory, with at most this many sentences that do not decide the
    statement; with None, six statements share a whole theory, as published."""

    def _description(self) -> dict[str, str]:
        return {"split": "test"}

    def _sets(self, seed: int) -> Sequence[Groups]:
        return [training_set(self.set, "test", seed, self.distractors)]

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """All generated instances with the authors' columns and the columns `set` and `split`."""
        import pandas as pd

        sets = {split: training_set(self.set, split, seed, self.distractors) for split in SPLITS}
        splits = [rows_of([one]).assign(split=split) for split, one in sets.items()]
        return pd.concat(splits, ignore_index=True)


@dataclass(frozen=True)
class EditPairs(RobustLR):
    """Each base theory of the contrast sets, paired with each edit that changes its label."""

    def _sets(self, seed: int) -> Sequence[Groups]:
        words = Words.of("real")
        sets = [evaluation_set(name, seed, words, distractors=False) for name in CONTRAST_SETS]
        return [edit_pairs(one) for one in sets]

    def read(self, data: str) -> Sequence[Instance]:
        """The pairs among published groups (UserError: no edit has another label than its base)."""
        pairs = pairs_of_all(load_published(data))
        if not pairs:
            raise UserError(
                f"no group in {shortened(data)} has an edit whose label differs from its "
                "base's; expected a contrast set (C-CS, D-CS or N-CS)"
            )
        return pairs


def rows_of(sets: Sequence[Groups]) -> "pd.DataFrame":
    """All instances of the sets with the authors' columns and the column `set`."""
    import pandas as pd

    groups = (one.group(index) for one in sets for index in range(one.number))
    rows = ({**to_row(one), "set": one.set} for group in groups for one in group)
    return pd.DataFrame(rows, columns=[*COLUMNS, "set"])


system = EvaluationSets("robustlr")
distractors = EvaluationSets("robustlr-distractors", distractors=True)
nonce = EvaluationSets("robustlr-nonce", vocabulary="nonce")
prompted = EvaluationSets("robustlr-prompted", shown=True)
negation = TrainingSet("robustlr-not", set="NOT")
conjunction = TrainingSet("robustlr-and-not", set="AND+NOT")
disjunction = TrainingSet("robustlr-or-not", set="OR+NOT")
everything = TrainingSet("robustlr-all")
edits = EditPairs("robustlr-edits")
bare = TrainingSet("robustlr-bare", distractors=0)
short = TrainingSet("robustlr-short", distractors=SHORT)
