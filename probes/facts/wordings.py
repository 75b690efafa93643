"""Facts in several wordings, since a model may complete a fact in one and not in another.

As asked; in the other wordings that its data give; and as asked, after other facts as examples:
messages with the completed sentence as reply. This reply begins with the sentence, too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from interp import Demonstration, Prompt, PromptSet, UserError
from interp.extend.prompts import FACT_SIDE

ASKED, EXAMPLES = "as asked", "examples"

OF_DATA = "text_"
"""A factor whose name begins so holds the fact in another wording, which has the rest as name."""

SHOWN = 3
"""Largest number of examples."""

_SENTENCE = re.compile(
    r"(?:(?<=[.!?;])\s+|\n\W{0,20})(?P<subject>(?:[^\W_][^\s.!?;,]*\s+){1,6}?)"
    r"(?:is|was|are|were|has|had|lies|belongs|ist|liegt|est|es|está|é|è|är)\b[^.!?;\n]*"
)
"""A later sentence of a completion that says something of its subject."""
_NO_NAME = re.compile(
    r"(?:An?|And|As|But|He|Here?|His|How|In|Its?|She|So|That|The|Their|There|They|This|Wh\w+)\b"
)
"""Words that begin a sentence, and name nothing."""


def worded(facts: Sequence[Prompt]) -> PromptSet:
    """Each fact in all wordings: one pair for each fact, with a side for each wording.

    The prompt that is asked as the data say stays as it is; the ids of the others name the wording.
    Facts that have been worded are returned as they are.

    Raises:
        UserError: two prompts would have the same id, or a wording a name that has a meaning.
    """
    prompt_set = PromptSet.of(facts)
    if any(fact.id == _id(fact.pair_id, fact.side) for fact in prompt_set):
        return prompt_set
    all_facts = [prompt_set.build(number) for number in prompt_set.drawn_from or prompt_set.numbers]
    prompts = [prompt for fact in prompt_set for prompt in _wordings(fact, all_facts)]
    several = replace(
        prompt_set,
        sides=tuple(dict.fromkeys(prompt.side for prompt in prompts)),
        build=prompts.__getitem__,
        numbers=range(len(prompts)),
        drawn_from=(),
        whole_groups=False,
    )
    several.check()
    return several


def wording(prompt: Prompt) -> str:
    """The name of the wording of a fact's prompt."""
    return ASKED if prompt.side == FACT_SIDE else prompt.side


def sentence(fact: Prompt) -> str:
    """What a completion begins with: the text after any instruction that ends in a colon."""
    return fact.text.rpartition(": ")[2].strip()


def before_other_facts(fact: Prompt, completion: str) -> str:
    """What a completion says before it goes on to other facts, as base models do.

    It does so in a new line: in any after examples; else in one that names a speaker, or has the
    prompt's instruction, the first words of its question or its last words without repeating it. It
    also does so in a later sentence about another thing: "Copenhagen is in Denmark."
    """
    if wording(fact) == EXAMPLES:
        completion = completion.partition("\n")[0]
    words = [re.escape(word) for word in fact.text.split()]
    like = r"[^\n]*\b" + " ".join(words[-3:])
    if instruction := fact.text.rpartition(": ")[0]:
        like = re.escape(instruction)
    elif fact.text.endswith("?"):
        like = " ".join(words[:2])
    speaker = r"(?:Q|Question|User|Human)\b[^\n:]{0,20}:"
    other = rf"\n\W{{0,20}}(?!{' '.join(words)})(?:{speaker}|{like})"
    said = re.split(other, completion, maxsplit=1)[0]
    asked = _names(sentence(fact)) or re.findall(r"\w{3,}", sentence(fact))[:1]
    for later in _SENTENCE.finditer(said):
        about, whole = later["subject"], later[0].casefold()
        new = _names(about) or about.startswith(("A ", "An "))
        if new and not any(name.casefold() in whole for name in asked):
            return said[: later.start()]
    return said


def _names(text: str) -> list[str]:
    words = re.findall(r"\w+", text)
    return [word for word in words if word[0].isupper() and not _NO_NAME.match(word)]


def _wordings(fact: Prompt, all_facts: Sequence[Prompt]) -> Iterator[Prompt]:
    yield replace(fact, pair_id=fact.id, side=FACT_SIDE)
    for name, text in fact.factors.items():
        if name.startswith(OF_DATA):
            wording_name = name.removeprefix(OF_DATA)
            if wording_name in ("", FACT_SIDE, ASKED, EXAMPLES):
                raise UserError(
                    f"the column {name} names no wording of its own; expected another name, such "
                    f"as {OF_DATA}question"
                )
            yield _named(replace(fact, text=text, segments={}), fact, wording_name)
    shown = tuple(
        Demonstration(one.text, f"{sentence(one)} {one.answer.gold}.".strip(), one.id)
        for one in _examples(fact, all_facts)
    )
    if shown and not (fact.messages.demonstrations or fact.messages.answer_prefix):
        messages = replace(fact.messages, demonstrations=shown, answer_prefix=sentence(fact))
        yield _named(replace(fact, messages=messages), fact, EXAMPLES)


def _named(prompt: Prompt, fact: Prompt, name: str) -> Prompt:
    return replace(prompt, id=_id(fact.id, name), pair_id=fact.id, side=name)


def _id(fact: str, name: str) -> str:
    return f"{fact} ({name})"


def _examples(fact: Prompt, all_facts: Sequence[Prompt]) -> list[Prompt]:
    """The first facts of the same group that say neither this one's answer nor each other's."""
    chosen = [fact]
    for other in all_facts:
        said = f"{other.text} {other.answer.gold}"
        alike = other.factors.get("entity_group") == fact.factors.get("entity_group")
        if alike and not any(one.id == other.id or one.answer.judge(said).answer for one in chosen):
            chosen.append(other)
        if len(chosen) > SHOWN:
            break
    return chosen[1:]
