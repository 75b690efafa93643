"""StringGame: a string, and rules of which exactly one applies to it (paper, Appendix G).

Which one applies, and what comes out, is decided by running the rules. A fifth of the rules is held
out, so that a model can be tuned on the others and asked about these.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from interp_experiments.chance import pick, shuffled
from interp_experiments.rulebench.items import HELD_OUT, Item, Rule, RuleSet, Split, Version
from interp_experiments.rulebench.kinds import STRING_GAME
from interp_experiments.rulebench.string_rules import StringRule, random_string, string_rules

QUESTIONS = 1_800


@cache
def rules_of(split: Split) -> Mapping[str, StringRule]:
    """The rules of a half of the grammar; which rule is in which is the same for all seeds."""
    order = list(shuffled(random.Random("string game split"), list(string_rules())))
    held_out = set(order[: len(order) // HELD_OUT])
    return {
        id_: rule
        for id_, rule in string_rules().items()
        if (id_ in held_out) is (split == "held-out")
    }


@dataclass(frozen=True)
class StringGame:
    """The questions of a seed about the rules of a split."""

    seed: int
    split: Split = "held-out"
    questions: int = QUESTIONS

    @cached_property
    def rule_set(self) -> RuleSet:
        """The questions with their rules; there are no counterfactual ones."""
        rng = random.Random(f"string game {self.split} {self.seed}")
        rules = rules_of(self.split)
        choices = tuple(rules.values())
        items = [self._item(n, choices, rng) for n in range(1, self.questions + 1)]
        return RuleSet(
            name=STRING_GAME.name,
            kind=STRING_GAME,
            factual=Version(tuple(items), {id_: each.rule for id_, each in rules.items()}),
            fits=applies,
        )

    def _item(self, number: int, rules: tuple[StringRule, ...], rng: random.Random) -> Item:
        rule = pick(rng, rules)
        string = random_string(rng)
        while (result := rule.run(string)) is None:
            string = random_string(rng)
        return Item(f"{number:05d}", asked(string), str(result), rule.id, {"string": string})


def applies(item: Item, rule: Rule, golden: Rule) -> bool:
    """Whether a rule gives a number for the string of an item."""
    return string_rules()[rule.id].run(item.factors["string"]) is not None


def asked(string: str) -> str:
    """The question about a string."""
    return f"The string is {string}.\nWhich number is the output for this string?"
