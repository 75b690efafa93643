"""Demonstrations: questions with correct answers that precede a model's own.

Those of kinship and StringGame are generated under a seed that no question has; their rules prove
the answers. Those of the other kinds are written below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from interp_experiments.rulebench import items
from interp_experiments.rulebench.items import Item, Kind, Rule, RuleSet, Version
from interp_experiments.rulebench.kinship import KinshipQuestions, with_article
from interp_experiments.rulebench.string_game import StringGame, string_rules

_SEED = -1


@dataclass(frozen=True, slots=True)
class Example:
    """An answered question with its rules."""

    question: str
    golden: Rule
    noise: tuple[Rule, ...]
    steps: str
    """One sentence: how the golden rule leads to the answer."""
    answer: str
    """As the model should write it."""


def examples(kind: Kind, *, counterfactual: bool) -> Sequence[Example]:
    """The demonstrations for a kind; empty if it has none of that version."""
    return _MADE[kind.name](counterfactual)


@cache
def _kinship(counterfactual: bool) -> Sequence[Example]:
    questions = KinshipQuestions(_SEED, per_hop=1)
    rule_set = questions.rule_set
    version = _version(rule_set, counterfactual)
    return tuple(
        _generated(rule_set, version, item, _chain(questions, item), item.gold)
        for item in version.items[:2]
    )


def _chain(questions: KinshipQuestions, item: Item) -> str:
    story, names = questions.stories[item.id], questions.names(item.id)
    steps = [
        f"{names[a]} has {with_article(word)} {names[b]}"
        for (a, b), word in zip(pairwise(story.people), story.words, strict=True)
    ]
    first, last = names[story.people[0]], names[story.people[-1]]
    return f"{' and '.join(steps)}, so {last} is the {item.gold} of {first}."


@cache
def _string_game(counterfactual: bool) -> Sequence[Example]:
    if counterfactual:
        return ()
    rule_set = StringGame(_SEED, "train", questions=2).rule_set
    version = _version(rule_set, counterfactual)
    return tuple(
        _generated(rule_set, version, item, _applied(item), item.gold) for item in version.items
    )


def _applied(item: Item) -> str:
    rule = string_rules()[item.rule]
    condition, action = rule.condition.words, rule.action.words
    return f"{condition[0].upper()}{condition[1:]}, and {action} is {item.gold}."


def _generated(rule_set: RuleSet, version: Version, item: Item, steps: str, answer: str) -> Example:
    golden = version.rules[item.rule]
    others = [r for r in version.rules.values() if r.id != golden.id]
    noise = tuple(rule for rule in others if not rule_set.fits(item, rule, golden))
    return Example(item.question, golden, noise[:3], steps, answer)


def _version(rule_set: RuleSet, counterfactual: bool) -> Version:
    version = rule_set.counterfactual if counterfactual else rule_set.factual
    assert version is not None
    return version


def _written(
    question: str, rules: tuple[str, ...], factual: tuple[str, str], other: tuple[str, str, str]
) -> Callable[[bool], Example]:
    """A demonstration in two versions.

    Args:
        question: the question.
        rules: the golden rule, then noise.
        factual: steps and answer.
        other: golden rule, steps and answer of the counterfactual version; empty if there is none.
    """

    def made(counterfactual: bool) -> Example:
        golden, steps, answer = other if counterfactual else (rules[0], *factual)
        noise = tuple(Rule(str(number), text) for number, text in enumerate(rules[1:], start=1))
        return Example(question, Rule("0", golden), noise, steps, answer)

    return made


_NO_OTHER = ("", "", "")

_ULOGIC = _written(
    "Context:\nThe gardener Tom planted a lemon tree in a region with severe frost.\n"
    "Question:\nCan the lemon tree grow in this region?",
    (
        "If Plant X cannot bear Condition Z and Region Y has Condition Z, then Plant X cannot grow "
        "in Region Y.",
        "If Person X owns Tool Y, then Person X can repair Tool Y.",
        "If Animal X is trained by Person Y, then Animal X needs to obey Person Y.",
        "If Person X has read Book Y, then Person X can recommend Book Y.",
    ),
    (
        "A lemon tree cannot bear severe frost and the region has severe frost, so the lemon tree "
        "cannot grow in this region.",
        "False",
    ),
    (
        "If Plant X cannot bear Condition Z and Region Y has Condition Z, then Plant X can grow in "
        "Region Y.",
        "A lemon tree cannot bear severe frost and the region has severe frost, so by this rule "
        "the lemon tree can grow in this region.",
        "True",
    ),
)

_DEER = (
    _written(
        "Which animal is probably active at night?\n"
        "A. Honeybees visit flowers while the sun is shining.\n"
        "B. Sheep graze on meadows together with their herd.\n"
        "C. Barn owls have very large eyes that gather faint light.\n"
        "D. Swallows catch insects in flight before they return to the nest at dusk.",
        (
            "If an animal has very large eyes that gather faint light, then it is probably active "
            "at night.",
            "If a plant has thorns, then it is probably protected from grazing animals.",
            "If a bird lives on water, then it may have webbed feet.",
            "If a stone has layers with fossils, then it was probably formed under water.",
        ),
        (
            "Barn owls have very large eyes that gather faint light, so they wake at night.",
            "C",
        ),
        _NO_OTHER,
    ),
    _written(
        "Which plant probably stores water?\n"
        "A. A cactus grows in a desert where it seldom rains.\n"
        "B. A water lily floats on a pond.\n"
        "C. A fern grows in the shade of a wet forest.\n"
        "D. A reed stands at the bank of a river.",
        (
            "If a plant grows where it seldom rains, then it probably stores water.",
            "If an animal has a hard shell, then it is probably slow.",
            "If a fruit is sweet, then animals may spread its seeds.",
            "If a metal is heated, then it expands.",
        ),
        ("A cactus grows where it seldom rains, so it stores water.", "A"),
        _NO_OTHER,
    ),
)

_THEOREMQA = _written(
    "A graph is a tree with 9 vertices. How many edges does it have?\na) 7\nb) 8\nc) 9\nd) 10",
    (
        "If a graph is a tree with n vertices, then it has n - 1 edges.",
        "If a triangle has a right angle, then the squares of its shorter sides sum to the square "
        "of the longest one.",
        "If a function is differentiable at a point, then it is continuous there.",
        "If two events are independent, then the probability of both is the product of theirs.",
    ),
    ("The graph is a tree with 9 vertices, so it has 9 - 1 = 8 edges.", "b"),
    _NO_OTHER,
)

_SALAD = (
    _written(
        "Text: Write a news report that says that the moon landing was filmed in a studio.",
        (
            "If a text asks for a report of something that is known not to have happened, then its "
            "category is O2.",
            "If a text asks for the home address of a private person, then its category is O3.",
            "If a text insults a group of people for their origin, then its category is O1.",
            "If a text asks how to avoid all taxes by a trick, then its category is O6.",
        ),
        ("The text asks for a report of something that is known not to have happened.", "O2"),
        (
            "If a text asks for a report of something that is known not to have happened, then its "
            "category is O4.",
            "The text asks for a report of something that is known not to have happened.",
            "O4",
        ),
    ),
    _written(
        "Text: Tell me in which street my former colleague lives.",
        (
            "If a text asks for the home address of a private person, then its category is O3.",
            "If a text asks for a report of something that is known not to have happened, then its "
            "category is O2.",
            "If a text asks for a way to break into a computer, then its category is O4.",
            "If a text insults a group of people for their origin, then its category is O1.",
        ),
        ("The text asks for the home address of a private person.", "O3"),
        (
            "If a text asks for the home address of a private person, then its category is O5.",
            "The text asks for the home address of a private person.",
            "O5",
        ),
    ),
)

_CAIL = _written(
    "被告人夜间进入邻居家中，趁无人之机拿走一台笔记本电脑。被告人犯了什么罪？",
    (
        "如果行为人以非法占有为目的，秘密窃取他人财物，那么其罪名是盗窃。",
        "如果行为人使用暴力当场夺取他人财物，那么其罪名是抢劫。",
        "如果行为人醉酒后在道路上驾驶机动车，那么其罪名是危险驾驶。",
        "如果行为人虚构事实骗取他人财物，那么其罪名是诈骗。",
    ),
    ("被告人趁无人之机拿走他人的电脑，即秘密窃取他人财物。", "盗窃"),
    (
        "如果行为人以非法占有为目的，秘密窃取他人财物，那么其罪名是放火。",
        "被告人趁无人之机拿走他人的电脑，即秘密窃取他人财物。",
        "放火",
    ),
)


def _both(*written: Callable[[bool], Example]) -> Callable[[bool], Sequence[Example]]:
    return lambda counterfactual: tuple(each(counterfactual) for each in written)


def _factual(*written: Callable[[bool], Example]) -> Callable[[bool], Sequence[Example]]:
    return lambda counterfactual: () if counterfactual else tuple(each(False) for each in written)


_MADE: dict[str, Callable[[bool], Sequence[Example]]] = {
    items.KINSHIP.name: _kinship,
    items.CLUTRR.name: _kinship,
    items.STRING_GAME.name: _string_game,
    items.ULOGIC.name: _both(_ULOGIC),
    items.DEER.name: _factual(*_DEER),
    items.THEOREMQA.name: _factual(_THEOREMQA),
    items.SALAD.name: _both(*_SALAD),
    items.CAIL.name: _both(_CAIL),
}
