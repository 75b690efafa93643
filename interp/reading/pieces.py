"""Tokens as text, whatever signs tokenizers write for spaces and for parts of characters."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def token_texts(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> list[str | None]:
    r"""Tokens of a vocabulary as text, with a space for "Ġ" or "▁" and "é" for "Ã©".

    A byte that is not a complete character is written as its code, such as "\xc3". None stands for
    a token that the tokenizer lacks.
    """
    text = _from_byte_characters if _byte_level(tokenizer) else _from_sentencepiece
    pieces = tokenizer.convert_ids_to_tokens([*ids])
    return [None if piece is None else text(piece) for piece in pieces]


def _byte_level(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """Whether "Ġ" is a space; in a vocabulary that has "▁" too, as Gemma's, it is a letter."""
    ids = (tokenizer.convert_tokens_to_ids(mark) for mark in "Ġ▁")
    marks = tokenizer.convert_ids_to_tokens([id_ if isinstance(id_, int) else 0 for id_ in ids])
    return "Ġ" in marks and "▁" not in marks


def _from_byte_characters(piece: str) -> str:
    """The text of a piece; special tokens with characters that encode no byte are unchanged."""
    codes = _byte_of_character()
    if not all(character in codes for character in piece):
        return piece
    return _decode(bytes(codes[character] for character in piece))


def _from_sentencepiece(piece: str) -> str:
    byte = _BYTE_PIECE.fullmatch(piece)
    return _decode(bytes([int(byte[1], 16)])) if byte else piece.replace("▁", " ")


def _decode(code: bytes) -> str:
    return code.decode("utf-8", errors="backslashreplace")


@cache
def _byte_of_character() -> dict[str, int]:
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    return {character: byte for byte, character in bytes_to_unicode().items()}
