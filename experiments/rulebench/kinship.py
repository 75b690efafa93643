"""Kinship questions: stories of two to ten hops, and the rules that give the answers.

1. Families are drawn, then two related people in one of them.
2. A third person splits their relation into two relations, a fourth splits one of these, and so on
   until the story has its number of hops. Each split is in `families.COMPOSED`, so the chain
   entails the answer. The family shows that all people in the story can be different.
3. The golden rule states the chain, with letters for people. Another item's rule is noise unless
   its conditions hold among the people in the story.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from string import ascii_uppercase

from interp_experiments.chance import pick, shuffled
from interp_experiments.packaged import packaged_rows
from interp_experiments.rulebench import families, items

HOPS = range(2, 11)

_FAMILIES, _PEOPLE = 60, 26

_ANSWERS = tuple(
    (type_, sex) for type_ in families.WORDS if type_ != "spouse" for sex in families.SEXES
)

_SENTENCES = (
    "{p} took {his} {r} {q} to the lake for the weekend.",
    "On Friday evening {p} cooked dinner for {his} {r} {q}.",
    "{p} still writes letters to {his} {r}, {q}.",
    "{p} helped {his} {r} {q} paint the kitchen.",
    "{p} asked {his} {r} {q} to fix the fence.",
    "{p} and {his} {r} {q} went to see a film.",
    "{p} called {his} {r} {q} to ask for a recipe.",
    "{p} is proud of {his} {r} {q}, who won the race.",
    "{p} bought a scarf for {his} {r}, {q}.",
    "{p} has not seen {his} {r} {q} since the summer.",
    "{p} plays chess with {his} {r} {q} every Sunday.",
    "{q} borrowed the car of {p} again; {p} never says no to {his} {r}.",
    "{p} sat next to {his} {r} {q} at the concert.",
    "{p} showed {his} {r} {q} the new garden.",
)
"""q is the r of p, whose sex the words imply."""


@dataclass(frozen=True, slots=True)
class Body:
    """A rule's conditions: each person's relation to the previous, and the sexes at both ends."""

    words: tuple[str, ...]
    first: str
    last: str


@dataclass(frozen=True)
class Story:
    """People in one family, each related to the previous person."""

    family: families.Family
    people: tuple[int, ...]

    @property
    def hops(self) -> int:
        """Number of relations that the story states."""
        return len(self.people) - 1

    @property
    def body(self) -> Body:
        """The conditions of the story's golden rule."""
        sexes = self.family.sexes
        return Body(self.words, sexes[self.people[0]], sexes[self.people[-1]])

    @property
    def words(self) -> tuple[str, ...]:
        """The kinship of each person to the previous person."""
        return tuple(self.family.word(*pair) for pair in pairwise(self.people))

    @property
    def answer(self) -> str:
        """The kinship of the last person to the first."""
        return self.family.word(self.people[0], self.people[-1])

    def satisfies(self, body: Body) -> bool:
        """Whether conditions hold along some chain of people from the story's first to its last."""
        if self.family.sexes[self.people[0]] != body.first:
            return False
        return self._leads(self.people[0], frozenset(self.people[1:]), body.words)

    def _leads(self, person: int, others: frozenset[int], words: tuple[str, ...]) -> bool:
        first, rest = words[0], words[1:]
        if not rest:
            return self.family.word(person, self.people[-1]) == first
        return len(others) > len(rest) and any(
            self._leads(other, others - {other}, rest)
            for other in others
            if other != self.people[-1] and self.family.word(person, other) == first
        )


@dataclass(frozen=True)
class KinshipQuestions:
    """Questions generated from a seed."""

    seed: int | str
    per_hop: int = 200
    hops: Sequence[int] = HOPS
    split: items.Split | None = None
    """Both if None."""

    @cached_property
    def stories(self) -> Mapping[str, Story]:
        """The story of each item."""
        rng = random.Random(f"kinship stories {self.seed}")
        # The numbers of hops cycle, so a smaller set consists of the first questions of a larger
        # one.
        hops = [hops for _ in range(self.per_hop) for hops in self.hops]
        kin = [families.random_family(_PEOPLE, rng) for _ in range(_FAMILIES)]
        stories: dict[str, Story] = {}
        for number, each in enumerate(hops, start=1):
            story = None
            while story is None or self.split not in (None, split_of(story.body)):
                story = _drawn(pick(rng, kin), each, rng)
            stories[f"{number:05d}"] = story
        return stories

    @cached_property
    def bodies(self) -> Mapping[str, Body]:
        """The conditions of each rule, by id, in order of appearance."""
        bodies = dict.fromkeys(story.body for story in self.stories.values())
        return {f"K{number:05d}": body for number, body in enumerate(bodies, start=1)}

    @cached_property
    def rule_set(self) -> items.RuleSet:
        """The questions with their rules, factual and counterfactual."""
        ids = {body: id_ for id_, body in self.bodies.items()}
        factual = {ids[story.body]: story.answer for story in self.stories.values()}
        words = [families.word(*each) for each in _ANSWERS]
        changed = {}
        for id_, answer in factual.items():
            rng = random.Random(f"kinship counterfactual {self.seed} {id_}")
            changed[id_] = pick(rng, [word for word in words if word != answer])
        asked = [self._item(id_, ids[story.body]) for id_, story in self.stories.items()]
        versions = []
        for concluded in (factual, changed):
            golden = tuple(replace(item, gold=concluded[item.rule]) for item in asked)
            rules = {id_: kinship_rule(id_, body, concluded[id_]) for body, id_ in ids.items()}
            versions.append(items.Version(golden, rules))
        first, other = versions
        return items.RuleSet(items.KINSHIP, first, other, self.fits)

    def fits(self, item: items.Item, rule: items.Rule, golden: items.Rule) -> bool:
        """Whether a rule's conditions hold between the first and the last person of a story."""
        return self.stories[item.id].satisfies(self.bodies[rule.id])

    def _item(self, id_: str, rule: str) -> items.Item:
        story = self.stories[id_]
        names, telling = (
            random.Random(f"kinship {what} {self.seed} {id_}") for what in ("names", "telling")
        )
        question = told(story, named(story, names), telling)
        return items.Item(id_, question, story.answer, rule, {"hops": str(story.hops)})


def split_of(body: Body) -> items.Split:
    """The split of the rule with these conditions, which is the same for all seeds."""
    chance = random.Random(f"kinship split {body.words} {body.first} {body.last}")
    return "held-out" if chance.random() * items.HELD_OUT < 1 else "train"


def _drawn(family: families.Family, hops: int, rng: random.Random) -> Story | None:
    type_, sex = pick(rng, _ANSWERS)
    pairs = [(a, b) for (a, b), of in family.types.items() if (of, family.sexes[b]) == (type_, sex)]
    people = list(pick(rng, pairs)) if pairs else []
    while people and len(people) <= hops:
        people = _split(family, people, rng)
    return Story(family, tuple(people)) if people else None


def _split(family: families.Family, people: list[int], rng: random.Random) -> list[int]:
    """The people, with one more person inserted; empty if nobody fits."""
    places = [
        (place, between)
        for place, pair in enumerate(pairwise(people), start=1)
        if (between := [person for person in family.splits[pair] if person not in people])
    ]
    if not places:
        return []
    place, between = pick(rng, places)
    return [*people[:place], pick(rng, between), *people[place:]]


def told(story: Story, names: Mapping[int, str], rng: random.Random) -> str:
    """The story in sentences, and the question about its last and its first person."""
    sentences = [
        pick(rng, _SENTENCES).format(
            p=names[person],
            q=names[relative],
            r=what,
            his="his" if story.family.sexes[person] == families.MALE else "her",
        )
        for (person, relative), what in zip(pairwise(story.people), story.words, strict=True)
    ]
    first, last = names[story.people[0]], names[story.people[-1]]
    return f"{' '.join(sentences)}\nWho is {last} to {first}?"


def named(story: Story, rng: random.Random) -> dict[int, str]:
    """A name for each person, all different."""
    unused: dict[str, Iterator[str]] = {sex: shuffled(rng, _names(sex)) for sex in families.SEXES}
    return {person: next(unused[story.family.sexes[person]]) for person in story.people}


def kinship_rule(id_: str, body: Body, conclusion: str) -> items.Rule:
    """A rule in natural language and in logic, where r(A, B) says that B is the r of A."""
    letters = ascii_uppercase[: len(body.words) + 1]
    first, last = letters[0], letters[-1]
    steps = list(zip(letters, letters[1:], body.words, strict=False))
    has = ", ".join(f"{a} has {'an' if r[0] in 'aeiou' else 'a'} {r} {b}" for a, b, r in steps)
    sexes = f"{first} is {body.first}, {last} is {body.last}"
    facts = [f"{r}({a}, {b})" for a, b, r in steps]
    facts += [f"{body.first}({first})", f"{body.last}({last})"]
    return items.Rule(
        id_,
        natural=f"if {has}, and {sexes}, then {last} is the {conclusion} of {first}.",
        logic=f"{' ∧ '.join(facts)} → {conclusion}({first}, {last})",
    )


@cache
def _names(sex: str) -> Sequence[str]:
    rows = packaged_rows(__package__, "kinship_names.csv")
    return tuple(row["name"] for row in rows if row["sex"] == sex)
