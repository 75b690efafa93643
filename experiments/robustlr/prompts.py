"""Instances as prompts: a theory, a statement, and a question with three answers."""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from interp import AnswerOption, Choice, Demonstration, Messages, Prompt, PromptSet
from interp.extend import Outline, compose
from interp.extend.prompts import ALONE, Decisive
from interp_experiments.robustlr.language import Groups, Instance, Verdict, sentence
from interp_experiments.robustlr.solver import proof_sets

QUESTION = "Is the statement True, False or Unknown?"

OPTIONS = tuple(AnswerOption(one.value, (one.value, one.value.lower())) for one in Verdict)

DECISIVE = Decisive("proof", ("fact", "rule"))

STRATA = ("set",)
"""A limit selects theories evenly across these factors."""

SHOWN = (
    (
        "Otto is calm. If Otto is calm, then Nora is the aunt of Otto.",
        "Nora is the aunt of Otto.",
        Verdict.TRUE,
    ),
    (
        "Nora is tidy. If Nora is tidy and Otto is quick then Otto is witty.",
        "Otto is witty.",
        Verdict.UNKNOWN,
    ),
    (
        "Nora is not sober. Otto is not eager if Nora is not sober or Otto is glad.",
        "Otto is eager.",
        Verdict.FALSE,
    ),
)
"""Context, statement and label of each demonstration; the paper gives GPT-3 three (Appendix A)."""


def demonstrations() -> Messages:
    """The three answered questions that a model reads before the question asked."""
    return Messages(
        demonstrations=tuple(
            Demonstration(f"{context}\nStatement: {statement}\n{QUESTION}", label.value)
            for context, statement, label in SHOWN
        )
    )


def to_prompt(instance: Instance, messages: Messages = ALONE) -> Prompt:
    """The question of one instance.

    Its segments are fact1, fact2 ..., rule1, rule2 ..., statement and question, in the theory's
    order, so unedited rules have the same names in all variants. The factor `proof` lists the facts
    and rules of all minimal proof sets; it is empty if the label is Unknown.
    """
    named = instance.theory.named
    needed = frozenset().union(*proof_sets(instance.theory, instance.statement))
    parts = [part for name, one in named.items() for part in ((None, " "), (name, sentence(one)))]
    text, segments = compose(
        [
            *parts[1:],
            (None, "\nStatement: "),
            ("statement", sentence(instance.statement)),
            (None, "\n"),
            ("question", QUESTION),
        ]
    )
    return Prompt(
        id=instance.id,
        text=text,
        segments=segments,
        answer=Choice(OPTIONS, gold=instance.label.value),
        pair_id=instance.theory_id,
        side=instance.version,
        factors={
            "set": instance.set,
            "group": instance.group,
            "base_label": instance.base_label.value,
            "proof": " ".join(name for name, one in named.items() if one in needed),
        },
        messages=messages,
    )


def made_by(
    sets: Sequence[Groups],
    messages: Messages,
    *,
    system: str,
    seed: int,
    description: dict[str, str],
) -> PromptSet:
    """The prompts of all groups, set by set; each prompt is made only when it is read."""
    ends = list(accumulate(one.number * len(one.versions) for one in sets))
    remembered = lru_cache(maxsize=256)(lambda place, index: sets[place].group(index))

    def placed(number: int) -> tuple[int, int, int]:
        """The set, group and member of a prompt."""
        place = bisect_right(ends, number)
        start = ends[place - 1] if place else 0
        return (place, *divmod(number - start, len(sets[place].versions)))

    def build(number: int) -> Prompt:
        place, index, member = placed(number)
        return to_prompt(remembered(place, index)[member], messages)

    def outline(number: int) -> Outline:
        place, index, _ = placed(number)
        return Outline(sets[place].theory_id(index), {"set": sets[place].set})

    return PromptSet(
        system=system,
        sides=tuple(dict.fromkeys(version for one in sets for version in one.versions)),
        strata=STRATA,
        build=build,
        outline=outline,
        numbers=range(ends[-1]),
        seed=seed,
        description=description,
        whole_groups=len(sets) == 1,
        decisive=DECISIVE,
    )
