"""Tokens as text, whatever signs tokenizers write for spaces and for parts of characters."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def readable(pieces: Sequence[str]) -> list[str]:
    r"""The pieces of one prompt, in order, as text, with a space for "Ġ" or "▁" and "é" for "Ã©".

    Only the way spaces are written shows whether a tokenizer is byte-level, so all pieces are
    examined together. A byte that is not a complete character is written as its code, such as
    "\xc3".
    """
    # "Ġ" is how byte-level tokenizers write a space.
    if any("Ġ" in piece for piece in pieces):
        return [_from_byte_characters(piece) for piece in pieces]
    return [_from_sentencepiece(piece) for piece in pieces]


def token_texts(tokenizer: "PreTrainedTokenizerBase", ids: Sequence[int]) -> list[str | None]:
    """Tokens of a vocabulary as text (`readable`); None for one that the tokenizer lacks."""
    pieces = tokenizer.convert_ids_to_tokens([*ids])
    space = tokenizer.convert_ids_to_tokens(tokenizer.convert_tokens_to_ids("Ġ") or 0)
    marks = ["Ġ"] * (space == "Ġ")  # a line break alone does not tell how spaces are written
    return [None if piece is None else readable([*marks, piece])[-1] for piece in pieces]


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
    """GPT-2's table: printable Latin-1 bytes map to themselves, and all others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(0x100 + index): byte for index, byte in enumerate(others)}
