"""A tokenizer's pieces as readable text."""

import re
from collections.abc import Sequence
from functools import cache

_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def readable(pieces: Sequence[str]) -> list[str]:
    r"""The pieces of one prompt, in order, as text: a space for "Ġ" or "▁", "é" for "Ã©".

    Whether a tokenizer works on bytes shows in its spaces only, so the prompt is looked at as a
    whole. A byte that is no character by itself is written as its code, such as "\xc3".
    """
    if any(_space() in piece for piece in pieces):
        return [_from_byte_characters(piece) for piece in pieces]
    return [_from_sentencepiece(piece) for piece in pieces]


def _from_byte_characters(piece: str) -> str:
    """Special tokens may hold characters that encode no byte; they are left as they are."""
    codes = _byte_of_character()
    if not all(character in codes for character in piece):
        return piece
    return _decode(bytes(codes[character] for character in piece))


def _from_sentencepiece(piece: str) -> str:
    byte = _BYTE_PIECE.fullmatch(piece)
    return _decode(bytes([int(byte[1], 16)])) if byte else piece.replace("▁", " ")


def _decode(code: bytes) -> str:
    return code.decode("utf-8", errors="backslashreplace")


def _space() -> str:
    """The character that byte-level tokenizers write for a space: "Ġ"."""
    return next(character for character, byte in _byte_of_character().items() if byte == ord(" "))


@cache
def _byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable bytes of Latin-1 are themselves, the others follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(0x100 + index): byte for index, byte in enumerate(others)}
