"""Systems that give the questions of RobustLR to every command."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from interp import PromptSet, System, UserError
from interp.extend import shortened
from interp.extend.prompts import ALONE
from interp.extend.training import Split
from interp_experiments.robustlr.evaluation_sets import (
    EVALUATION_SETS,
    edit_pairs,
    evaluation_set,
    pairs_of,
)
from interp_experiments.robustlr.language import Groups, Instance
from interp_experiments.robustlr.learning import SPLITS, training_set
from interp_experiments.robustlr.prompts import DECISIVE, STRATA, demonstrations, made_by, to_prompt
from interp_experiments.robustlr.published import COLUMNS, load_published, to_row
from interp_experiments.robustlr.sampling import Vocabulary, Words
from interp_experiments.robustlr.variants import CONTRAST_SETS

if TYPE_CHECKING:
    import pandas as pd

SHORT = 4
"""Maximum number of sentences in a short theory that do not decide its statement."""


@dataclass(frozen=True)
class RobustLR(System):
    """Groups of instances, either generated or read from data in the authors' format."""

    name: str
    sets: Callable[[int, Split], Sequence[Groups]]
    """The sets that a seed gives; of a training set, those of a split."""
    told: Mapping[str, str] = field(default_factory=dict)
    """What describes generated prompts."""
    read: Callable[[str], Sequence[Instance]] = load_published
    """Gives the instances in published data."""
    shown: bool = False
    """Whether three demonstrations precede each question; only causal models can use them."""

    default_limit = 240
    """Default number of theories: 40 from each of the six sets."""

    def prompts(self, *, seed: int, data: str | None) -> PromptSet:
        """All prompts: generated from `seed`, or read from `data` in the authors' format.

        Raises:
            UserError: the data cannot be read or contradict themselves.
        """
        messages = demonstrations() if self.shown else ALONE
        if data is None:
            description = {"data": "generated", **self.told}
            sets = self.sets(seed, "test")
            return made_by(sets, messages, system=self.name, seed=seed, description=description)
        return replace(
            PromptSet.of([to_prompt(one, messages) for one in self.read(data)]),
            system=self.name,
            strata=STRATA,
            seed=seed,
            description={"data": data},
            whole_groups=False,
            decisive=DECISIVE,
        )

    def dataset(self, *, seed: int) -> "pd.DataFrame":
        """All generated instances with the authors' columns and `set`; `split` of training sets."""
        import pandas as pd

        if "split" not in self.told:
            return rows_of(self.sets(seed, "test"))
        splits = [rows_of(self.sets(seed, split)).assign(split=split) for split in SPLITS]
        return pd.concat(splits, ignore_index=True)

    def organism_row(self, card: Mapping[str, Any]) -> dict[str, object]:
        """The F1 scores measured: in domain, with distractors, and by evaluation set."""
        measured = card["measured"]
        scores = {name: measured[name] for name in ("in_domain", "with_other_sentences")}
        return {f"f1_{name}": value for name, value in {**scores, **measured["f1"]}.items()}


def evaluation(
    name: str, vocabulary: Vocabulary = "real", *, distractors: bool = False, shown: bool = False
) -> RobustLR:
    """The six evaluation sets at their published sizes (Section 3, Table 8).

    With `distractors`, theories keep sentences that decide nothing.
    """

    def sets(seed: int, _: Split) -> list[Groups]:
        words = Words.of(vocabulary)
        return [evaluation_set(a, seed, words, distractors=distractors) for a in EVALUATION_SETS]

    told = {"vocabulary": vocabulary, "distractors": str(distractors)}
    return RobustLR(name, sets, told, shown=shown)


def training(name: str, of: str = "All", distractors: int | None = None) -> RobustLR:
    """A training set with its splits; its prompts are those of the test split (Section 5).

    With `distractors`, each statement has its own theory, with at most this many sentences that do
    not decide it; with None, six statements share a whole theory, as published.
    """

    def sets(seed: int, split: Split) -> list[Groups]:
        return [training_set(of, split, seed, distractors)]

    return RobustLR(name, sets, {"split": "test"})


def edited_sets(seed: int, _: Split) -> list[Groups]:
    """Each base theory of the contrast sets, paired with each edit that changes its label."""
    words = Words.of("real")
    sets = [evaluation_set(name, seed, words, distractors=False) for name in CONTRAST_SETS]
    return [edit_pairs(one) for one in sets]


def published_pairs(data: str) -> Sequence[Instance]:
    """The pairs among published groups (UserError: no edit has another label than its base)."""
    # The members of a group are adjacent.
    groups = groupby(load_published(data), key=lambda one: one.theory_id)
    pairs = [member for _, group in groups for pair in pairs_of(tuple(group)) for member in pair]
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


system = evaluation("robustlr")
distractors = evaluation("robustlr-distractors", distractors=True)
nonce = evaluation("robustlr-nonce", "nonce")
prompted = evaluation("robustlr-prompted", shown=True)
negation = training("robustlr-not", "NOT")
conjunction = training("robustlr-and-not", "AND+NOT")
disjunction = training("robustlr-or-not", "OR+NOT")
everything = training("robustlr-all")
edits = RobustLR("robustlr-edits", edited_sets, read=published_pairs)
bare = training("robustlr-bare", distractors=0)
short = training("robustlr-short", distractors=SHORT)
