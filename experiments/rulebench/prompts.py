"""Settings under which questions are asked (paper, Section 3 and Figure 3), and prompts.

Each rule is a segment: "golden", or "noise1", "noise2" and so on, in order.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from interp import AnswerOption, Choice, Demonstration, FreeText, Messages, Prompt
from interp.extend import compose
from interp.extend.prompts import Decisive
from interp_experiments.chance import shuffled
from interp_experiments.rulebench.answers import parser_of
from interp_experiments.rulebench.items import (
    CLUTRR,
    KINSHIP,
    Item,
    Quantity,
    QuestionKind,
    Rule,
    RuleSet,
    Version,
)


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its rules, a sentence that derives the answer, and the answer to write."""

    question: str
    golden: Rule
    noise: Sequence[Rule]
    steps: str
    answer: str


@cache
def examples(kind: QuestionKind, *, counterfactual: bool) -> Sequence[Example]:
    """The demonstrations for a kind, which are questions with answers; empty if it has none.

    Those of kinship and StringGame were generated, from a seed that no question uses, and their
    rules prove the answers; the others were written by hand.
    """
    text = (files(__package__) / "data" / "demonstrations.json").read_text(encoding="utf-8")
    name = (KINSHIP if kind is CLUTRR else kind).name
    made = []
    for one in json.loads(text)[name]:
        if told := one.get("counterfactual" if counterfactual else "factual"):
            texts = told.get("rules", one["rules"])
            golden, *noise = (Rule(str(number), rule) for number, rule in enumerate(texts))
            made.append(Example(one["question"], golden, noise, told["steps"], told["answer"]))
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a question is asked."""

    quantity: Quantity
    logic: bool = False
    shots: bool = False
    thought: bool = False
    """Whether the model names the rule and applies it step by step before it answers."""
    counterfactual: bool = False
    """Whether conclusions, and with them the correct answers, are changed."""
    choice: bool = False
    """Whether the model chooses, with its next token, between the answers of the factual and of the
    changed rules. Such questions can be patched.
    """
    noise: int | None = None
    """None if the quantity determines it."""

    @property
    def name(self) -> str:
        """Such as "few" or "golden-shots-thought-counterfactual"."""
        options = ("logic", "shots", "thought", "counterfactual")
        return "-".join([self.rules, *(name for name in options if getattr(self, name))])

    @property
    def rules(self) -> str:
        """Such as "few", or "few3" with three noise rules."""
        return self.quantity if self.noise is None else f"{self.quantity}{self.noise}"

    def noise_rules(self, kind: QuestionKind) -> int:
        """The number of noise rules for an item of the given kind."""
        if self.noise is not None:
            return self.noise
        return {"few": kind.few, "all": kind.many}.get(self.quantity, 0)


DIRECT_TOKENS = 32
"""In an answer without a chain of thought."""

QUANTITIES: tuple[Quantity, ...] = ("no", "golden", "few", "all")

RULES = tuple(Setting(quantity=quantity) for quantity in QUANTITIES)
"""Do rules help? (Section 4.2, Figure 4.)"""


def _both(factor: str, quantities: Sequence[Quantity], **same: bool) -> tuple[Setting, ...]:
    """Settings with these quantities of rules, without and with a factor."""
    return tuple(
        Setting(quantity=quantity, **same, **{factor: value})
        for quantity in quantities
        for value in (False, True)
    )


FORMS = _both("logic", QUANTITIES[2:])
"""Natural language or first-order logic? (Section 4.3, Table 1.)"""

THOUGHT = _both("thought", QUANTITIES[1:3], shots=True)
"""With or without chain of thought? (Section 4.4, Figure 5.)"""

COUNTERFACTUAL = _both("counterfactual", QUANTITIES[1:3], shots=True, thought=True)
"""Are rules followed when they contradict known facts? (Section 4.5, Table 2; few rules: Section
4.6.)"""

VERSIONS = _both("counterfactual", ["few"], choice=True)
"""The same question with factual and with counterfactual rules, as a pair for patching."""


def shown_rules(
    rule_set: RuleSet, version: Version, item: Item, setting: Setting, *, seed: int
) -> list[Rule]:
    """The rules shown with an item, in order.

    Noise is drawn without replacement from the rules that do not fit the item, or all of them
    if too few do not. The noise rules under "few" are the first ones under "all".
    """
    if setting.quantity == "no":
        return []
    golden = version.rules[item.rule]
    rng = random.Random(f"rulebench noise {rule_set.kind.name} {seed} {item.id}")
    drawn = (version.rules[id_] for id_ in shuffled(rng, tuple(version.rules)))
    noise = (
        rule for rule in drawn if rule.id != golden.id and not rule_set.fits(item, rule, golden)
    )
    shown = [golden, *islice(noise, setting.noise_rules(rule_set.kind))]
    place = random.Random(f"rulebench order {rule_set.kind.name} {seed} {item.id} {setting.rules}")
    return list(shuffled(place, shown))


PREFIX = "Answer:"
"""The prefix of a direct answer."""

DECISIVE = Decisive("golden_rule", ("golden", "noise"))

Part = tuple[str | None, str]


class Entry(NamedTuple):
    """One prompt of a set: an item in one version, under one setting."""

    rule_set: RuleSet
    version: Version
    item: Item
    setting: Setting
    group: str


def entries(rule_set: RuleSet, settings: Sequence[Setting]) -> Iterator[Entry]:
    """Every item of a set under every setting that applies; a group is one item under all.

    Counterfactual prompts need a counterfactual version, prompts in logic need rules in logic, and
    a choice between the answers of both versions needs items in both.
    """
    both = {False: rule_set.factual, True: rule_set.counterfactual}
    versions = {key: version for key, version in both.items() if version}
    in_logic = {key: all(rule.logic for rule in of.rules.values()) for key, of in versions.items()}
    for id_ in sorted({id_ for version in versions.values() for id_ in version.by_id}):
        items = {k: version.by_id[id_] for k, version in versions.items() if id_ in version.by_id}
        for setting in settings:
            key = setting.counterfactual
            if key not in items or (setting.choice and len(items) < len(both)):
                continue
            if in_logic[key] or not setting.logic:
                alike = items.get(False, items[key]).question == items[key].question
                group = f"{rule_set.kind.name}/{id_}" + ("" if alike else "-cf")
                yield Entry(rule_set, versions[key], items[key], setting, group)


def to_prompt(
    rule_set: RuleSet, version: Version, item: Item, setting: Setting, group: str, *, seed: int
) -> Prompt:
    """The prompt that asks one item under a setting."""
    rules = shown_rules(rule_set, version, item, setting, seed=seed)
    golden = version.rules[item.rule]
    text, segments = compose(
        [
            *_rules(rules, golden, logic=setting.logic),
            ("question", item.question),
            (None, "\n\n"),
            ("instruction", _instruction(rule_set.kind, setting, version.labels)),
        ]
    )
    return Prompt(
        id=f"{group}/{setting.name}",
        text=text,
        segments=segments,
        answer=_choice(rule_set, item)
        if setting.choice
        else FreeText((item.gold,), parser_of(rule_set.kind, item, version.labels)),
        pair_id=group,
        side=setting.name,
        factors={
            "set": rule_set.kind.name,
            "rules": setting.rules,
            "form": "logic" if setting.logic else "natural",
            **{name: "yes" if getattr(setting, name) else "no" for name in ("shots", "thought")},
            "version": "counterfactual" if setting.counterfactual else "factual",
            "rule": _key(rule_set, version, item),
            "golden_rule": "golden" if rules else "",
            "golden_place": str(rules.index(golden) + 1) if rules else "",
            **item.factors,
        },
        messages=Messages(
            demonstrations=_shown(rule_set.kind, setting, version.labels) if setting.shots else (),
            answer_prefix="" if setting.thought else PREFIX,
        ),
    )


def _key(rule_set: RuleSet, version: Version, item: Item) -> str:
    """A hash of the (factual) golden rule: the same in both versions and for every seed."""
    factual = rule_set.factual.by_id.get(item.id) if rule_set.factual else None
    if rule_set.factual and factual and factual.question == item.question:
        version, item = rule_set.factual, factual
    return hashlib.sha256(version.rules[item.rule].natural.encode()).hexdigest()[:8]


def _choice(rule_set: RuleSet, item: Item) -> Choice:
    versions = (rule_set.factual, rule_set.counterfactual)
    golds = [version.by_id[item.id].gold for version in versions if version is not None]
    options = tuple(AnswerOption(gold, (rule_set.kind.written(gold),)) for gold in golds)
    return Choice(options, gold=item.gold)


def _rules(rules: Sequence[Rule], golden: Rule, *, logic: bool) -> Iterator[Part]:
    """The rules as parts of a prompt, numbered from 1."""
    if rules:
        yield None, "Rules:\n"
    noise = 0
    for number, rule in enumerate(rules, start=1):
        noise += rule is not golden
        yield None, f"{number}. "
        yield (
            "golden" if rule is golden else f"noise{noise}",
            (rule.logic or rule.natural) if logic else rule.natural,
        )
        yield None, "\n"
    if rules:
        yield None, "\n"


_FOLLOW = "fits the question. Follow it, even where it contradicts what you know. "


def _instruction(kind: QuestionKind, setting: Setting, labels: Sequence[str]) -> str:
    listed = kind.asked_for.replace("{labels}", "、".join(labels))
    answer = f'"{PREFIX}" and {listed}.'
    which = "The rule" if setting.quantity == "golden" else "Exactly one of the rules"
    follow = "" if setting.quantity == "no" else f"{which} {_FOLLOW}"
    if setting.thought:
        return f"{follow}Say which rule fits, apply it step by step, and end with {answer}"
    return f"{follow}Reply with {answer}"


@lru_cache(maxsize=256)
def _shown(
    kind: QuestionKind, setting: Setting, labels: tuple[str, ...]
) -> tuple[Demonstration, ...]:
    shown = []
    made = examples(kind, counterfactual=setting.counterfactual)
    instruction = _instruction(kind, setting, labels)
    for number, example in enumerate(made, start=1):
        noise = example.noise[: setting.noise_rules(kind)]
        place = min(number, len(noise))
        rules = [] if setting.quantity == "no" else [*noise[:place], example.golden, *noise[place:]]
        parts = [text for _, text in _rules(rules, example.golden, logic=setting.logic)]
        answer = f"{PREFIX} {example.answer}."
        if setting.thought:
            answer = f"Rule {place + 1} fits. {example.steps} {answer}"
        question = "".join([*parts, f"{example.question}\n\n{instruction}"])
        shown.append(Demonstration(question, answer))
    return tuple(shown)
