"""The outputs that represent each answer option: its first tokens, whole texts, or its class."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations

from interp.choices import AnswerReading, Normalization
from interp.errors import ModelError, UserError, shortened
from interp.models.kinds import CLASSIFIER, TEXT_TO_TEXT
from interp.models.model import Model
from interp.prompts.answers import AnswerOption, Label
from interp.prompts.plain_text import gap
from interp.prompts.prompt import Prompt
from interp.reading.outputs import class_names, fixed_answers, target_tokens
from interp.reading.readers import reader_of
from interp.reading.tokens import ChatText, TokenizedPrompt
from interp.scoring.whole_answers import Way, distinct_ways

_UNNAMED = re.compile(r"LABEL_\d+")
"""transformers' default names for classes that the configuration does not name."""

_APART = ("\n", "(", ".")
"""Strings that tokenizers do not merge with the word after them."""

_Around = tuple[ChatText, tuple[str, ...]]
"""What stands before an answer: the end of the prompt, and possible openings."""


@dataclass(frozen=True, slots=True)
class ContrastTokens:
    """The tokens of the two options whose logit difference is measured."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]
    ways: tuple[Way, ...] = ()
    """The ways of whole texts to which numbers below zero refer (`AnswerTokens`)."""
    whole: bool = False
    """Whether the options are read as whole texts."""


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """The model's outputs that count for each option, without repetition.

    For a classifier, these are classes; for other models, first tokens, the most likely one first,
    or ways of writing the whole option. A way of several tokens has a number below zero, which is
    its column in `Predictions.columns`, counted from the end: -1 for the first of `ways`.
    """

    of: Mapping[str, tuple[int, ...]]
    """The tokens or ways of each option by its name, in the order of the options."""
    ways: tuple[Way, ...] = ()
    """The ways that are more than a token."""
    whole: bool = False
    """Whether options are read as whole texts rather than by their first tokens."""
    lengths: Mapping[int, int] = field(default_factory=dict)
    """The number by which the log-probability of each token or way is divided; empty for none."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of all options, option by option."""
        return tuple(chain.from_iterable(self.of.values()))

    def spelled(self, column: int) -> tuple[int, ...]:
        """The tokens of a token or way."""
        return (column,) if column >= 0 else self.ways[-1 - column].tokens

    def begun(self, tokens: tuple[int, ...]) -> int:
        """The longest way that a text begins with or, if there is none, the text's first token."""
        columns = {way.tokens: -1 - place for place, way in enumerate(self.ways)}
        begun = (columns.get(tokens[:length]) for length in range(len(tokens), 0, -1))
        return next((column for column in begun if column is not None), tokens[0])

    def option(self, token: int) -> str:
        """The option of a token; empty if the token belongs to no option."""
        return next((name for name, tokens in self.of.items() if token in tokens), "")

    def contrast(self, positive: str, negative: str) -> ContrastTokens:
        """The tokens of two options."""
        plus, minus = self.of[positive], self.of[negative]
        ways = self.ways if min((*plus, *minus)) < 0 else ()
        return ContrastTokens(plus, minus, ways, self.whole)


class AnswerTokenizer:
    """A cached lookup of the model's outputs that represent answer options.

    `answers` is "first" to read options by their first tokens, or as whole texts if two begin with
    the same token; "whole" to read all as whole texts; None to refuse options that begin with the
    same token. Log-probabilities of whole texts are divided by the length that `normalize` names.
    """

    def __init__(
        self,
        model: Model,
        answers: AnswerReading | None = None,
        *,
        normalize: Normalization = "none",
    ) -> None:
        self._model = model
        self._answers, self._normalize = answers, normalize
        self._known: dict[tuple[tuple[AnswerOption, ...], _Around], AnswerTokens] = {}

    def __call__(self, tokenized: TokenizedPrompt) -> AnswerTokens:
        """The answer tokens of a prompt.

        An option is represented by the first token of each of its forms, after each possible
        opening of an answer (`openings`); a token shared by several forms counts once (Chan et al.
        2024, formulas 4 and 5). The first of an option's tokens is the most likely token for its
        first form. A class is represented by its index among the model's outputs. As a whole text,
        an option is represented by all tokens of each of its forms, after each possible opening.

        Raises:
            UserError: an option has no usable first token, two options begin with the same token
                (are written with the same tokens, if they are read whole), or the prompt's classes
                differ from the model's.
        """
        answer, chat = tokenized.prompt.answer, tokenized.chat
        if isinstance(answer, Label):
            return self._classes(answer)
        # Tokens are computed from nothing but the key, so that no other prompt can change them.
        key = answer.options, (_end(chat), self.openings(chat))
        if key not in self._known:
            self._known[key] = self._found(tokenized.prompt, *key)
        return self._known[key]

    def _found(self, prompt: Prompt, options: Sequence[AnswerOption], at: _Around) -> AnswerTokens:
        if self._answers == "whole" and self._model.kind is not CLASSIFIER:
            return self._whole(prompt, options, at)
        tokens = {option.name: self._first_tokens(option, at) for option in options}
        shared = [
            (one, other, min(both))
            for one, other in combinations(tokens, 2)
            if (both := {*tokens[one]} & {*tokens[other]})
        ]
        if not shared:
            return AnswerTokens(tokens)
        if self._answers is None or self._model.kind is CLASSIFIER:
            one, other, token = shared[0]
            (written,) = reader_of(self._model).answer_names([token])
            raise UserError(
                f"the answers {one!r} and {other!r} of prompt {prompt.id} both begin with the "
                f"token {written!r} for {self._model.name}, so their first tokens do not "
                "distinguish them; use answers or forms that begin differently, such as Yes "
                "and No or A and B, or what reads whole answers, such as interp effects"
            )
        return self._whole(prompt, options, at)

    def _whole(self, prompt: Prompt, options: Sequence[AnswerOption], at: _Around) -> AnswerTokens:
        """Every option as the ways of writing all of it."""
        ways, same = distinct_ways(way for option in options for way in self._written(option, at))
        if same is not None:
            one, other = same
            raise UserError(
                f"the answers {one.option!r} and {other.option!r} of prompt {prompt.id} are "
                f"written with the same tokens for {self._model.name}, so nothing distinguishes "
                "them; use answers or forms that are written differently"
            )
        long = [way for way in ways if len(way.tokens) > 1 or way.longer]
        place = {way.tokens: -1 - number for number, way in enumerate(long)}
        columns = {way.tokens: place.get(way.tokens, way.tokens[0]) for way in ways}
        by_token = self._normalize == "token"
        sizes = {
            columns[way.tokens]: len(way.tokens if by_token else way.text.encode()) for way in ways
        }
        of = {
            option.name: tuple(columns[way.tokens] for way in ways if way.option == option.name)
            for option in options
        }
        lengths = {} if self._normalize == "none" else sizes
        return AnswerTokens(of, tuple(long), whole=True, lengths=lengths)

    def _written(self, option: AnswerOption, at: _Around) -> Iterator[Way]:
        """The ways of an option; those that begin with a white-space token if it has no others."""
        ways: list[Way] = []
        for form in option.forms:
            if not form.strip():
                raise self._problem(option, f"the form {form!r} encodes to nothing")
            texts = self._texts(*at, form)
            ways += [Way(option.name, tokens, form.strip()) for tokens in texts if tokens]
        if not ways:
            raise self._problem(option, "its forms encode to nothing")
        shown = [way for way in ways if self._shows(way.tokens)]
        yield from shown or ways

    def _texts(
        self, end: ChatText, openings: tuple[str, ...], form: str
    ) -> tuple[tuple[int, ...], ...]:
        """Tokenizations of a form after each opening, or as the target of a text-to-text model."""
        if self._model.kind is TEXT_TO_TEXT:
            return (target_tokens(self._model, form)[1],)
        return tuple(dict.fromkeys(self.after(end, opening, form) for opening in openings))

    def _shows(self, way: tuple[int, ...]) -> bool:
        """Whether a way begins with a token that is more than white space."""
        return bool(str(self._model.tokenizer.decode(list(way[:1]))).strip())

    def _classes(self, label: Label) -> AnswerTokens:
        names = tuple(name for _, name in sorted(class_names(self._model).items()))
        if set(names) != set(label.classes):
            if len(names) != len(label.classes) or not all(map(_UNNAMED.fullmatch, names)):
                raise ModelError(
                    f"{self._model.name} has the classes {shortened(', '.join(names))}, but the "
                    f"prompt requires {shortened(', '.join(label.classes))}; use a model trained "
                    "on these classes, with exactly these names"
                )
            names = label.classes
        return AnswerTokens({name: (names.index(name),) for name in label.classes})

    def _first_tokens(self, option: AnswerOption, at: _Around) -> tuple[int, ...]:
        if (fixed := fixed_answers(self._model, option)) is not None:
            return fixed
        written = self._written(option, at)
        tokens = dict.fromkeys(way.tokens[0] for way in written if self._shows(way.tokens))
        if not tokens:
            raise self._problem(option, "every form begins with a white-space token")
        return tuple(tokens)

    def written(self, chat: ChatText, form: str) -> tuple[tuple[int, ...], ...]:
        """Tokenizations of a form after a causal model's prompt, for the most likely opening first.

        There is one for each of the `openings`, but none that begins with a white-space token, such
        as the "▁" that some tokenizers put before every word.
        """
        texts = self._texts(chat, self.openings(chat), form)
        return tuple(way for way in texts if self._shows(way))

    def openings(self, chat: ChatText) -> tuple[str, ...]:
        """The strings that may come between a prompt and its answer, starting with the most likely.

        After a plain message, the string is as in ordinary writing: a space after a word or a
        colon, and nothing after white space, an opening bracket or a quotation mark (`gap`). After
        a template, it is the beginning of the template's assistant turn; a space if ordinary text
        such as "[/INST]" ends the prompt; or nothing if answers are simply appended to the prompt.
        """
        space = "" if chat.text.endswith(self._markers) else gap(chat.text)
        if not chat.templated:
            return (space,)
        likely = [opening for opening in (chat.answer_opening, space) if opening]
        return tuple(dict.fromkeys([*likely, ""]))

    def after(self, chat: ChatText, opening: str, form: str) -> tuple[int, ...]:
        """The tokens of a text after a causal model's prompt and an opening."""
        plainly = opening or not chat.templated
        rest = opening + (form.lstrip() if plainly else form)
        if (tokens := self._apart(chat, chat.text, rest)) is not None:
            return tokens
        texts = chat.text, chat.text + rest
        read, whole = ([token for token, _, _ in self._encoded(chat, text)] for text in texts)
        if whole[: len(read)] == read:  # the prompt's own tokens do not cover its last characters
            return tuple(whole[len(read) :])
        # The form merges with the end of the prompt, so take its tokens after a different string.
        ways = (self._apart(chat, before, rest) for before in _APART)
        return next((way for way in ways if way is not None), ())

    def _apart(self, chat: ChatText, before: str, rest: str) -> tuple[int, ...] | None:
        """The tokens of `rest` after `before`; None if a token belongs to both strings."""
        after = [token for token in self._encoded(chat, before + rest) if token[2] > len(before)]
        if any(start < len(before) for _, start, _ in after):
            return None
        return tuple(token for token, _, _ in after)

    def _encoded(self, chat: ChatText, text: str) -> list[tuple[int, int, int]]:
        """A string's tokens with their starts and ends, without tokens that the tokenizer adds."""
        encoded = self._model.tokenizer(
            text, add_special_tokens=not chat.templated, return_offsets_mapping=True
        )
        spans = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        return [(int(token), start, end) for token, (start, end) in spans if end > start]

    @cached_property
    def _markers(self) -> tuple[str, ...]:
        """The added tokens that are no words, such as "[/INST]"."""
        added = [token.content for token in self._model.tokenizer.added_tokens_decoder.values()]
        return tuple(token for token in added if not token[-1:].isalnum())

    def _problem(self, option: AnswerOption, what: str) -> UserError:
        return UserError(
            f"the answer {option.name!r} cannot be recognized by its first token for "
            f"{self._model.name}: {what}; add a form that begins with a unique token"
        )


def _end(chat: ChatText) -> ChatText:
    """The end of a prompt, from the last space before which no token depends on the answer."""
    # A space so far before the end separates tokens that an answer cannot change.
    return ChatText(chat.text[max(chat.text.rfind(" ", 0, -64), 0) :], 0, chat.templated)
