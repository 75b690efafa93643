"""Which tokens stand for each answer option, as the tokenizer would write them after the prompt."""

from dataclasses import dataclass

from interp.errors import UserError
from interp.models.model import Model
from interp.prompts.chat import ChatText
from interp.prompts.prompt import AnswerOption
from interp.prompts.tokens import TokenizedPrompt

_TAIL = 64
"""Characters of the end of a prompt that decide how an answer after it is split."""


@dataclass(frozen=True, slots=True)
class AnswerTokens:
    """First tokens of the two options, each without repetition."""

    positive: tuple[int, ...]
    negative: tuple[int, ...]


class AnswerTokenizer:
    """Finds the first tokens of answer options for one model, and remembers them."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[tuple[AnswerOption, AnswerOption, str], AnswerTokens] = {}

    def __call__(self, tokenized: TokenizedPrompt) -> AnswerTokens:
        """The answer tokens of a prompt.

        An option counts by the first token of each of its forms, tokens that forms share are
        counted once (formulas 4 and 5).

        Raises:
            UserError: a form encodes to nothing, or both options begin with the same token.
        """
        prompt, chat = tokenized.prompt, tokenized.chat
        key = (prompt.positive, prompt.negative, chat.text[-_TAIL:])
        if key not in self._known:
            tokens = AnswerTokens(
                self._first_tokens(prompt.positive, chat),
                self._first_tokens(prompt.negative, chat),
            )
            shared = set(tokens.positive) & set(tokens.negative)
            if shared:
                text = self._model.tokenizer.convert_ids_to_tokens(sorted(shared))
                raise UserError(
                    f"the answers {prompt.positive.name!r} and {prompt.negative.name!r} both begin "
                    f"with the token {text[0]!r} for {self._model.name}; they cannot be told apart "
                    "by their first token"
                )
            self._known[key] = tokens
        return self._known[key]

    def _first_tokens(self, option: AnswerOption, chat: ChatText) -> tuple[int, ...]:
        first = dict.fromkeys(self._first_token(option, form, chat) for form in option.forms)
        return tuple(first)

    def _first_token(self, option: AnswerOption, form: str, chat: ChatText) -> int:
        if not form.strip():
            raise self._empty(option, form)
        tokenizer = self._model.tokenizer
        encoded = tokenizer(
            chat.text + chat.answer_separator + form,
            add_special_tokens=not chat.templated,
            return_offsets_mapping=True,
        )
        ends_before = len(chat.text)
        for token, (start, end) in zip(
            encoded["input_ids"], encoded["offset_mapping"], strict=True
        ):
            if start >= ends_before and end > start:
                return int(token)
        # The form merged with the end of the prompt: take it as it is written alone.
        alone = tokenizer(form, add_special_tokens=False)["input_ids"]
        if not alone:
            raise self._empty(option, form)
        return int(alone[0])

    def _empty(self, option: AnswerOption, form: str) -> UserError:
        return UserError(
            f"the form {form!r} of the answer {option.name!r} encodes to nothing for "
            f"{self._model.name}; expected a text with at least one token"
        )
