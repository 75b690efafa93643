"""Demonstrations: questions with correct answers, shown before the question to be answered.

For kinship and StringGame, demonstrations are generated from a seed that no question uses, and
their rules prove the answers. For the other kinds, they were written by hand and are stored in
data/demonstrations.json.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice, pairwise

from interp_experiments.rulebench import items
from interp_experiments.rulebench.kinship import KinshipQuestions, with_article
from interp_experiments.rulebench.string_game import StringGame, string_rules

_SEED = -1


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its rules, a sentence that derives the answer, and the answer to write."""

    question: str
    golden: items.Rule
    noise: tuple[items.Rule, ...]
    steps: str
    answer: str


def examples(kind: items.QuestionKind, *, counterfactual: bool) -> Sequence[Example]:
    """The demonstrations for a kind; empty if the version has none."""
    if kind in (items.KINSHIP, items.CLUTRR):
        return _kinship(counterfactual)
    if kind is items.STRING_GAME:
        return () if counterfactual else _string_game()
    return _written(kind.name, "counterfactual" if counterfactual else "factual")


@cache
def _kinship(counterfactual: bool) -> Sequence[Example]:
    questions = KinshipQuestions(_SEED, per_hop=1)
    rule_set = questions.rule_set
    version = rule_set.counterfactual if counterfactual else rule_set.factual
    assert version is not None
    return [
        _generated(rule_set, version.rules, item, _chain(questions, item))
        for item in version.items[:2]
    ]


def _chain(questions: KinshipQuestions, item: items.Item) -> str:
    story, names = questions.stories[item.id], questions.names(item.id)
    steps = [
        f"{names[a]} has {with_article(word)} {names[b]}"
        for (a, b), word in zip(pairwise(story.people), story.words, strict=True)
    ]
    first, last = names[story.people[0]], names[story.people[-1]]
    return f"{' and '.join(steps)}, so {last} is the {item.gold} of {first}."


@cache
def _string_game() -> Sequence[Example]:
    rule_set = StringGame(_SEED, "train", questions=2).rule_set
    assert rule_set.factual is not None
    rules = rule_set.factual.rules
    examples = []
    for item in rule_set.factual.items:
        rule = string_rules()[item.rule]
        condition = rule.condition.words
        steps = f"{condition[0].upper()}{condition[1:]}, and {rule.action.words} is {item.gold}."
        examples.append(_generated(rule_set, rules, item, steps))
    return examples


def _generated(
    rule_set: items.RuleSet, rules: Mapping[str, items.Rule], item: items.Item, steps: str
) -> Example:
    golden = rules[item.rule]
    others = (rule for rule in rules.values() if rule is not golden)
    noise = (rule for rule in others if not rule_set.fits(item, rule, golden))
    return Example(item.question, golden, tuple(islice(noise, 3)), steps, item.gold)


@cache
def _written(kind: str, version: str) -> Sequence[Example]:
    text = (files(__package__) / "data" / "demonstrations.json").read_text(encoding="utf-8")
    made = []
    for one in json.loads(text)[kind]:
        factual, *noise = one["rules"]
        if told := one.get(version):
            golden = items.Rule("0", told.get("golden", factual))
            rules = tuple(
                items.Rule(str(number), rule) for number, rule in enumerate(noise, start=1)
            )
            made.append(Example(one["question"], golden, rules, told["steps"], told["answer"]))
    return made
