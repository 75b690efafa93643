"""The settings under which a question is asked (paper, Section 3 and Figure 3)."""

import random
from dataclasses import dataclass
from itertools import islice

from interp_experiments.chance import shuffled
from interp_experiments.rulebench.items import Item, Rule, RuleSet, Version
from interp_experiments.rulebench.kinds import Kind, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a question is asked."""

    quantity: Quantity
    logic: bool = False
    """Rules in first-order logic, not in natural language."""
    shots: bool = False
    """Whether demonstrations come before the question."""
    thought: bool = False
    """Whether the model is to name the rule and to apply it step by step before it answers."""
    counterfactual: bool = False
    """Whether the conclusions of the rules are changed, and the correct answers with them."""
    choice: bool = False
    """Whether the answer is one of those that factual and changed rules give, read from the next
    token; such a question can be patched."""
    noise: int | None = None
    """Noise rules beside the golden one, where their number is not that of the quantity."""

    @property
    def name(self) -> str:
        """Such as "few" or "golden-shots-thought-counterfactual"."""
        options = ("logic", "shots", "thought", "counterfactual")
        return "-".join([self.rules, *(name for name in options if getattr(self, name))])

    @property
    def rules(self) -> str:
        """How many rules are shown, in a word such as "few" or, of a number of its own, "few3"."""
        return self.quantity if self.noise is None else f"{self.quantity}{self.noise}"

    def noise_rules(self, kind: Kind) -> int:
        """How many noise rules are shown with an item of a kind."""
        return kind.noise(self.quantity) if self.noise is None else self.noise


DIRECT_TOKENS = 32
"""Most tokens of an answer that is given at once."""

QUANTITIES: tuple[Quantity, ...] = ("no", "golden", "few", "all")
_GOLDEN_AND_FEW: tuple[Quantity, ...] = ("golden", "few")
_FEW_AND_ALL: tuple[Quantity, ...] = ("few", "all")

RULES = tuple(Setting(quantity=quantity) for quantity in QUANTITIES)
"""Do rules help? (Section 4.2, Figure 4.)"""

FORMS = tuple(
    Setting(quantity=quantity, logic=logic) for quantity in _FEW_AND_ALL for logic in (False, True)
)
"""Natural language or first-order logic? (Section 4.3, Table 1.)"""

THOUGHT = tuple(
    Setting(quantity=quantity, shots=True, thought=thought)
    for quantity in _GOLDEN_AND_FEW
    for thought in (False, True)
)
"""With or without chain of thought? (Section 4.4, Figure 5.)"""

COUNTERFACTUAL = tuple(
    Setting(quantity=quantity, shots=True, thought=True, counterfactual=counterfactual)
    for quantity in _GOLDEN_AND_FEW
    for counterfactual in (False, True)
)
"""Are rules followed against what is known? (Section 4.5, Table 2; of few rules Section 4.6.)"""

VERSIONS = tuple(
    Setting(quantity="few", choice=True, counterfactual=counterfactual)
    for counterfactual in (False, True)
)
"""The same question with factual and with counterfactual rules: pairs to patch between."""


def shown_rules(
    rule_set: RuleSet, version: Version, item: Item, setting: Setting, *, seed: int
) -> list[Rule]:
    """The rules that are shown with an item, in their order.

    Noise is drawn without replacement among the rules that do not fit the item. Few rules are the
    first of all rules that are drawn, so that the quantities differ in nothing else. A set with
    fewer rules gives all that it has.
    """
    if setting.quantity == "no":
        return []
    golden = version.rules[item.rule]
    rng = random.Random(f"rulebench noise {rule_set.name} {seed} {item.id}")
    drawn = (version.rules[id_] for id_ in shuffled(rng, version.rule_ids))
    noise = (
        rule for rule in drawn if rule.id != golden.id and not rule_set.fits(item, rule, golden)
    )
    shown = [golden, *islice(noise, setting.noise_rules(rule_set.kind))]
    place = random.Random(f"rulebench order {rule_set.name} {seed} {item.id} {setting.rules}")
    return list(shuffled(place, shown))
