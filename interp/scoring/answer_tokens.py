"""Which tokens stand for each answer option: those that it may begin with after the prompt."""

from dataclasses import dataclass

from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.prompt import AnswerOption, Prompt
from interp.reading.chat import ChatText
from interp.reading.options import fixed_answers
from interp.reading.readers import reader_of
from interp.reading.tokens import TokenizedPrompt

_TAIL = 64
"""Characters of the end of a prompt that decide how an answer after it is split."""


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """First tokens of the two options, each without repetition, the likeliest form's first."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]


class AnswerTokenizer:
    """Finds the first tokens of answer options for one model, and remembers them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[tuple[AnswerOption, AnswerOption, str], AnswerTokens] = {}

    def __call__(self, tokenized: TokenizedPrompt) -> AnswerTokens:
        """The answer tokens of a prompt.

        An option counts by the first token of each of its forms, written in each way that an
        answer may be, see `_openings`; a token that forms share is counted once (Chan et al.,
        formulas 4 and 5). The first one is the likeliest of the option's first form.

        Raises:
            UserError: an option without a first token of its own, or both begin with the same.
        """
        prompt, chat = tokenized.prompt, tokenized.chat
        key = (prompt.positive, prompt.negative, chat.text[-_TAIL:])
        if key not in self._known:
            tokens = AnswerTokens(
                self._first_tokens(prompt.positive, chat),
                self._first_tokens(prompt.negative, chat),
            )
            self._check_apart(prompt, tokens)
            self._known[key] = tokens
        return self._known[key]

    def _first_tokens(self, option: AnswerOption, chat: ChatText) -> tuple[int, ...]:
        fixed = fixed_answers(self._model, option)
        if fixed is not None:
            return fixed
        for form in option.forms:
            if not form.strip():
                raise self._problem(option, f"the form {form!r} encodes to nothing")
        openings = self._openings(chat)
        tokens = dict.fromkeys(
            token
            for form in option.forms
            for opening in openings
            if (token := self._first_token(chat, opening, form)) is not None
        )
        if option.forms and not tokens:
            raise self._problem(option, "every form begins with a token of white space alone")
        return tuple(tokens)

    def _openings(self, chat: ChatText) -> tuple[str, ...]:
        """What may stand between the prompt and its answer, the likeliest first.

        After a plain message a space. After a template what its own assistant turn writes; a space
        where ordinary text such as "[/INST]" ends the prompt, from which a word is set off; and
        nothing, as the answer is written to those who append it to the prompt.
        """
        if not chat.templated:
            return (" ",)
        likely = [chat.answer_opening] if chat.answer_opening else []
        if self._ends_in_text(chat):
            likely.append(" ")
        return tuple(dict.fromkeys([*likely, ""]))

    def _ends_in_text(self, chat: ChatText) -> bool:
        """Whether a prompt ends neither in white space nor in a token that stands for no text."""
        markers = self._model.tokenizer.added_tokens_decoder.values()
        marked = chat.text.endswith(tuple(marker.content for marker in markers))
        return not (marked or chat.text[-1].isspace())

    def _first_token(self, chat: ChatText, opening: str, form: str) -> int | None:
        """The first token of a form behind a prompt; None if that is white space alone.

        Such a token, as the "▁" of tokenizers that set one before every word, may begin anything.
        """
        tokenizer = self._model.tokenizer
        encoded = tokenizer(
            chat.text + opening + (form.lstrip() if opening else form),
            add_special_tokens=not chat.templated,
            return_offsets_mapping=True,
        )
        ends_before = len(chat.text)
        token, start = next(
            (token, start)
            for token, (start, end) in zip(
                encoded["input_ids"], encoded["offset_mapping"], strict=True
            )
            if end > max(start, ends_before)
        )
        if start < ends_before:
            # The form merged with the end of the prompt: take it as it is written alone.
            token = tokenizer(form, add_special_tokens=False)["input_ids"][0]
        return int(token) if str(tokenizer.decode([token])).strip() else None

    def _check_apart(self, prompt: Prompt, tokens: AnswerTokens) -> None:
        shared = set(tokens.positive) & set(tokens.negative)
        if shared:
            (token,) = reader_of(self._model).answer_names([min(shared)])
            raise UserError(
                f"the answers {prompt.positive.name!r} and {prompt.negative.name!r} of prompt "
                f"{prompt.id} both begin with the token {token!r} for {self._model.name}, so their "
                "first tokens do not tell them apart; ask for answers, or give them forms, that "
                "begin differently, such as Yes and No or A and B"
            )

    def _problem(self, option: AnswerOption, what: str) -> UserError:
        return UserError(
            f"the answer {option.name!r} cannot be recognized by its first token for "
            f"{self._model.name}: {what}; give it a form that begins with a token of its own"
        )
