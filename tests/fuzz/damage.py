"""Odd values, and damage to files, on which programs are known to break."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.support.records import resigned

_PLAIN = """
- -- -1 0 00 1 1.5 1e400 nan inf 99999999999999999999 -99999999999999999999 0x10 1_000 none
null true all [] {} a,b,,c , = a=b %s%n {0} $(id) con:7b http://localhost/x file:///x
s3://bucket/x hf://datasets/x/y owner/name a/b/c . .. ../.. ~ / // /dev/null /dev/zero
/dev/full /proc /proc/self/mem /proc/self/fd/0 /dev/null/x /nonexistent/x
organism/llama-shallow organism/none organism/../organism/gemma2 organism/ cpu cuda cuda:0
meta auto <script>alert(1)</script> * ? CON
"""
_ODD = r"""
\u0663 a=b\nc\x20# \x27 \x22 \x5c \n \t\r \x1b[31mred \x07\x7f \ufeff \u202eevil \xe9 \u65e5\u672c
\U0001f642 \udcff\udc80 a\ud800b a\x20b \x20
"""
WORDS = (
    *("", "9" * 5000, "x" * 300, "x" * 20000, "very/" * 1000, *_PLAIN.split()),
    *(word.encode("ascii").decode("unicode_escape") for word in _ODD.split()),
)
"""Odd words for a command line."""


def values(outside: Path) -> list[Any]:
    """Unexpected values for a JSON record."""
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    numbers = (0, -1, 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308)
    undefined = (None, True, False, float("nan"), float("inf"), float("-inf"))
    nested = ([], {}, [[]], [None], [1, 2], ["a", "a"], {"": ""}, {"a": {"b": None}}, deep)
    places = (str(outside), str(outside / "file"), [str(outside)])
    above = tuple("../" * levels + "outside" for levels in (1, 2, 3, 5))
    return [*undefined, *numbers, *nested, *places, *above, "a" * 32, "0" * 32, *WORDS]


def damage_json(chance: Random, text: str, outside: Path) -> tuple[str, str]:
    """A JSON text with one to three changes, and a description of the changes."""
    document = json.loads(text)
    words = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        document, word = _change(chance, document, outside)
        words.append(word)
    return json.dumps(document), "; ".join(words)


def _change(chance: Random, document: Any, outside: Path) -> tuple[Any, str]:
    """Change one place of a document, chosen evenly over levels rather than leaves."""
    if not isinstance(document, dict | list) or not document or chance.random() < 0.1:
        value = chance.choice(values(outside))
        return value, f"= {_short(value)}"
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = chance.choice(keys)
    if isinstance(document[key], dict | list) and document[key] and chance.random() < 0.6:
        document[key], word = _change(chance, document[key], outside)
        return document, f"{_short(key)} > {word}"
    return document, f"{_short(key)} {_change_item(chance, document, key, outside)}"


def _change_item(chance: Random, document: Any, key: Any, outside: Path) -> str:
    kind = chance.choice(("value", "value", "value", "type", "drop", "add", "double"))
    if kind == "drop":
        del document[key]
        return "dropped"
    if kind == "add" and isinstance(document, dict):
        added = chance.choice(WORDS)
        document[added] = chance.choice(values(outside))
        return f"next to it {_short(added)} = {_short(document[added])}"
    if kind == "double" and isinstance(document, list):
        document.append(document[key])
        return "doubled"
    if kind == "type":
        document[key] = _other_type(document[key])
    else:
        document[key] = chance.choice(values(outside))
    return f"= {_short(document[key])}"


def _other_type(value: Any) -> Any:
    """The same content as another type."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return {str(item): item for item in value} if len(value) % 2 else "".join(map(str, value))
    if isinstance(value, dict):
        return list(value.items())
    return str(value)


def _short(value: object) -> str:
    return repr(value)[:80]


def rewrite_json(chance: Random, file: Path, outside: Path) -> str:
    """Change the structure of a JSON file, or else its bytes; returns a description."""
    content = file.read_bytes()
    try:
        text, words = damage_json(chance, content.decode(), outside)
        if b'"sha256": "' in content and chance.random() < 0.8:
            text = resigned(text)  # so that the schema is tried, and not only the checksum
        _replace(file, text.encode("utf-8", errors="surrogatepass"))
    except (ValueError, TypeError, RecursionError):  # earlier damage left nothing to change
        return damage_bytes(chance, file)
    return words


def damage_bytes(chance: Random, file: Path) -> str:
    """Damage a file as disks, editors and transfers do; returns a description."""
    kind = chance.choice(tuple(_BYTES))
    _replace(file, _BYTES[kind](chance, file.read_bytes()))
    return f"{file.name} {kind}"


def _replace(file: Path, content: bytes) -> None:
    """Write a new file under the same name: the old one may be a second name of a file outside."""
    file.unlink()
    file.write_bytes(content)


def _flip(chance: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _cut_out(chance: Random, content: bytes) -> bytes:
    start, end = sorted(chance.randint(0, len(content)) for _ in range(2))
    return content[:start] + content[end:]


_BYTES: dict[str, Callable[[Random, bytes], bytes]] = {
    "empty": lambda chance, content: b"",
    "cut off": lambda chance, content: content[: chance.randint(0, len(content))],
    "a part cut out": _cut_out,
    "bytes flipped": _flip,
    "zeros": lambda chance, content: bytes(len(content)),
    "doubled": lambda chance, content: content * 2,
    "a mark in front": lambda chance, content: b"\xef\xbb\xbf" + content,
    "UTF-16": lambda chance, content: content.decode("latin-1").encode("utf-16"),
    "not UTF-8": lambda chance, content: content.replace(b'"', b'"\xff\xfe', 1),
    "a zero byte": lambda chance, content: content[:9] + b"\0" + content[9:],
    "deep lists": lambda chance, content: b"[" * 100_000,
    "deep objects": lambda chance, content: b'{"run":' * 50_000,
    "a number": lambda chance, content: b"1",
    "null": lambda chance, content: b"null",
    "a huge number": lambda chance, content: b'{"run": ' + b"9" * 10_000 + b"}",
    "one long line": lambda chance, content: b"x" * 1_000_000,
    "line ends": lambda chance, content: content.replace(b"\n", b"\r"),
}


def damage_node(chance: Random, path: Path, outside: Path) -> str:
    """Put something else in the place of a file or folder; returns a description."""
    kind = chance.choice(tuple(_NODES))
    remove(path)
    _NODES[kind](path, outside)
    return kind


def remove(path: Path) -> None:
    """Remove a file, link or folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


_NODES: dict[str, Callable[[Path, Path], object]] = {
    "removed": lambda path, outside: None,
    "an empty file": lambda path, outside: path.touch(),
    "an empty folder": lambda path, outside: path.mkdir(),
    "a folder with a file": lambda path, outside: (path / path.name).mkdir(parents=True),
    "a link to a file outside": lambda path, outside: path.symlink_to(outside / "file"),
    "a link to a folder outside": lambda path, outside: path.symlink_to(outside),
    "a dangling link outside": lambda path, outside: path.symlink_to(outside / "new"),
    "a link to the folder above": lambda path, outside: path.symlink_to(path.parent),
    "a link to itself": lambda path, outside: path.symlink_to(path.name),
    "a link to /dev/zero": lambda path, outside: path.symlink_to("/dev/zero"),
    "a link to /dev/full": lambda path, outside: path.symlink_to("/dev/full"),
    "a second name of a file outside": lambda path, outside: os.link(outside / "file", path),
    "a named pipe": lambda path, outside: os.mkfifo(path),
}
