"""The words among which a lens reads, and the right one for each prompt.

A word is read by its first token behind a space, as in the middle of a sentence; answer options are
read by the first token with which the answer begins, as everywhere. Words that begin with the same
token cannot be told apart, so all of them are left out and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from interp.errors import UserError, shortened
from interp.measurements.specs import Lens
from interp.models.model import Model
from interp.prompts.own.facts import Subjects, find_facts
from interp.prompts.prompt import Prompt
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answer_tokens import AnswerTokenizer

GROUP = "entity_group"
"""The factor of a system's facts that groups facts whose answers are alike."""

_BEFORE = "It is"
"""Text before a word whose first token is looked up."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words among which a prompt is read."""

    names: tuple[str, ...]
    tokens: tuple[int, ...]
    """The token by which each word is read; all different."""
    left_out: int = 0
    """Number of words that were left out, as they share their token with another."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is read in a prompt: among which words, and which of them is right."""

    words: Words
    right: str | None = None
    """The right word; None if there is none, or it was left out."""
    fact: str | None = None
    """Id of the fact that the prompt is about, if facts are asked."""


class Questions:
    """The words of each prompt, for one model."""

    def __init__(self, model: Model, spec: Lens) -> None:
        self._model, self._spec = model, spec
        self._answer_tokens = AnswerTokenizer(model, spec.answers)

    def __call__(self, tokenized: TokenizedPrompt) -> Question:
        """The question about a prompt."""
        if self._spec.words is not None:
            return Question(self._own)
        if self._facts is None:
            found = self._answer_tokens(tokenized).of
            words = _distinct({name: tokens[0] for name, tokens in found.items()})
            return _question(words, tokenized.prompt.answer.gold)
        fact = self._facts.about(tokenized.prompt)
        words = self._facts.words[fact.factors.get(GROUP, "")]
        return replace(_question(words, fact.answer.gold), fact=fact.id)

    @cached_property
    def _own(self) -> Words:
        assert self._spec.words is not None
        return _distinct({word: first_token(self._model, word) for word in self._spec.words})

    @cached_property
    def _facts(self) -> "_Facts | None":
        return (
            None if self._spec.facts is None else _Facts(self._model, find_facts(self._spec.facts))
        )


class _Facts:
    """Facts by their subjects, and the words that answer them."""

    def __init__(self, model: Model, facts: Sequence[Prompt]) -> None:
        answers: dict[str, dict[str, int]] = {}
        for fact in facts:
            own = answers.setdefault(fact.factors.get(GROUP, ""), {})
            own.setdefault(fact.answer.gold, first_token(model, fact.answer.gold))
        self.about = Subjects(facts).about
        self.words = {group: _distinct(own) for group, own in answers.items()}


def _question(words: Words, right: str) -> Question:
    return Question(words, right if right in words.names else None)


def _distinct(tokens: Mapping[str, int]) -> Words:
    """The words that share their token with no other."""
    times = Counter(tokens.values())
    kept = {name: token for name, token in tokens.items() if times[token] == 1}
    return Words(tuple(kept), tuple(kept.values()), len(tokens) - len(kept))


def first_token(model: Model, word: str) -> int:
    """The first token of a word in the middle of a sentence."""
    encoded = model.tokenizer(
        f"{_BEFORE} {word}", add_special_tokens=False, return_offsets_mapping=True
    )
    begin = len(_BEFORE) + 1
    for token, (_, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        if end > begin:
            return int(token)
    raise UserError(f"the tokenizer of {model.name} has no token for {shortened(word, 60)!r}")
