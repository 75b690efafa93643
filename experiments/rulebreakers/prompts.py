"""Instances as prompts: the message of Section 4.2 with its segments and answers."""

from collections.abc import Sequence

from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Prompt, compose, placed
from interp.prompts.prompt_set import Outline, PromptSet
from interp_experiments.rulebreakers.donors import EntityDonors
from interp_experiments.rulebreakers.instances import Instance
from interp_experiments.rulebreakers.roles import sentence_roles
from interp_experiments.rulebreakers.templates import PHRASINGS, RULES, Phrasing

SIDES = ("rulebreaker", "non_rulebreaker")

STRATA = ("rule", "entity_group", "verb", "phrasing")

CROSSED = ("verb", "category", "entity_b", "name")
"""Factors that name what a limit takes as a whole: it is asked by both rules in every phrasing, as
in the data set, so that rules and phrasings are compared within entity pairs."""

RATIO = ("premise2", "premise1")
"""Segments whose scores are compared."""

_OPTIONS = {
    "yes/no": (
        AnswerOption("Yes", ("Yes", "YES", "yes")),
        AnswerOption("No", ("No", "NO", "no")),
    ),
    "true/false": (
        AnswerOption("True", ("True", "TRUE", "true")),
        AnswerOption("False", ("False", "FALSE", "false")),
    ),
}
"""Positive and negative option with their surface forms (formulas 4 and 5)."""

POSITIVE = tuple(positive.name for positive, _ in _OPTIONS.values())
"""Names of the options that accept the conclusion."""

_CHOICES = {
    (answers, gold): Choice.between(*options, gold=gold)
    for answers, options in _OPTIONS.items()
    for gold in (True, False)
}


def to_prompt(instance: Instance, phrasing: Phrasing) -> Prompt:
    """One of the ten prompts of an instance."""
    outline = _outline(instance, phrasing)
    text, segments = compose(
        [
            (None, "Premises: "),
            ("premise1", instance.premise1),
            (None, " "),
            ("premise2", instance.premise2),
            (None, "\nConclusion: "),
            ("conclusion", instance.conclusion),
            (None, "\n"),
            ("question", phrasing.question),
        ]
    )
    return Prompt(
        id=f"{instance.id}/{phrasing.id}",
        text=text,
        segments=segments,
        answer=_CHOICES[phrasing.answers, instance.label],
        pair_id=outline.pair_id,
        side=SIDES[instance.label],
        factors=outline.factors,
        roles=placed(
            segments,
            sentence_roles(
                {
                    "premise1": instance.premise1,
                    "premise2": instance.premise2,
                    "conclusion": instance.conclusion,
                },
                rule=instance.rule,
                entity_a=instance.entity_a,
                entity_b=instance.entity_b,
            ),
        ),
    )


def _outline(instance: Instance, phrasing: Phrasing) -> Outline:
    return Outline(
        pair_id=f"{instance.pair_id}/{phrasing.id}",
        factors={
            "rule": instance.rule,
            "entity_group": instance.entity_group,
            "category": instance.category,
            "verb": instance.verb,
            "entity_a": instance.entity_a,
            "entity_b": instance.entity_b,
            "name": instance.name,
            "phrasing": phrasing.id,
        },
    )


def prompt_set(
    instances: Sequence[Instance], *, seed: int, description: dict[str, str]
) -> PromptSet:
    """All instances in all ten phrasings: prompts 10 i to 10 i + 9 belong to instance i."""

    def asked(number: int) -> tuple[Instance, Phrasing]:
        index, phrasing = divmod(number, len(PHRASINGS))
        return instances[index], PHRASINGS[phrasing]

    return PromptSet(
        system="rulebreakers",
        sides=SIDES,
        strata=STRATA,
        build=lambda number: to_prompt(*asked(number)),
        outline=lambda number: _outline(*asked(number)),
        numbers=range(len(instances) * len(PHRASINGS)),
        seed=seed,
        description=description,
        ratio=RATIO,
        unit=CROSSED,
        clusters=("category", "entity_b"),
        turns=len(RULES),
        donors=EntityDonors(instances, seed),
    )
