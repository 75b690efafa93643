"""Files of data in the published columns, damaged in their cells, their columns or their bytes."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from tests.fuzz.case import Case
from tests.fuzz.material import Material
from tests.fuzz.nasty import damage_bytes, damage_json, damage_node, values

_FORMATS = ("csv", "json", "jsonl", "parquet")
_COMMANDS = (("evaluate",), ("evaluate",), ("probe", "familiarity"), ("patch", "--layers", "0"))


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that reads a damaged file, or a folder of them."""
    frame = material.frame().head(8)
    file = folder / f"data.{_FORMATS[number % len(_FORMATS)]}"
    kind = chance.choice(tuple(_DAMAGES))
    words = f"{file.name}: {kind}, {_DAMAGES[kind](chance, file, frame, material)}"
    command = _COMMANDS[number // len(_FORMATS) % len(_COMMANDS)]
    limit = [] if command[0] == "probe" else ["--limit", chance.choice(("1", "2", "all"))]
    name = chance.choice((file.name, file.name, file.name, "."))
    fixed = ["--data", name, "--model", str(material.model), "--device", "cpu", "--out", "out"]
    return Case([*command, *fixed, *limit], damage=words)


def write(file: Path, rows: list[dict[Any, Any]]) -> None:
    """Write rows in the format of the name's ending; values may be of any type."""
    if file.suffix == ".csv":
        pd.DataFrame(rows, dtype=object).to_csv(file, index=False, errors="surrogatepass")
    elif file.suffix == ".parquet":
        _write_parquet(file, rows)
    else:
        lines = [json.dumps(row) for row in rows]
        text = "\n".join(lines) if file.suffix == ".jsonl" else f"[{','.join(lines)}]"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")


def _write_parquet(file: Path, rows: list[dict[Any, Any]]) -> None:
    """Columns of mixed types, which Parquet has not, become text."""
    frame = pd.DataFrame(rows, dtype=object)
    try:
        frame.to_parquet(file)
    except Exception:
        frame.columns = [_encodable(column) for column in frame.columns]
        frame.map(_encodable).to_parquet(file)


def _encodable(value: object) -> str:
    return str(value).encode(errors="replace").decode()


def _cells(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    rows, words = frame.to_dict("records"), []
    for _ in range(chance.choice((1, 1, 2, 5))):
        number, column = chance.randrange(len(rows)), chance.choice(list(frame.columns))
        rows[number][column] = chance.choice(values(material.outside))
        words.append(f"row {number} {column} = {rows[number][column]!r:.80}")
    write(file, rows)
    return "; ".join(words)


def _column(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    column, value = chance.choice(list(frame.columns)), chance.choice(values(material.outside))
    write(file, [{**row, column: value} for row in frame.to_dict("records")])
    return f"all of {column} = {value!r:.80}"


def _names(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    old, new = (
        chance.choice(list(frame.columns)),
        chance.choice(("", " id", "ID", "id", "x\ny", "é")),
    )
    rows = [
        {(new if name == old else name): value for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
    write(file, rows)
    return f"{old} is called {new!r}"


def _mixed(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    """Values of two rows or two columns are exchanged."""
    rows, columns = frame.to_dict("records"), list(frame.columns)
    one, other = chance.choices(range(len(rows)), k=2)
    first, second = chance.choices(columns, k=2)
    rows[one][first], rows[other][second] = rows[other][second], rows[one][first]
    write(file, rows)
    return f"row {one} {first} and row {other} {second} exchanged"


def _rows(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    rows = frame.to_dict("records")
    kind = chance.choice(("none", "one", "doubled", "odd", "shuffled"))
    chosen = {
        "none": [],
        "one": rows[:1],
        "doubled": rows + rows[:2],
        "odd": rows[::2],
        "shuffled": chance.sample(rows, len(rows)),
    }[kind]
    if chosen or file.suffix != ".csv":
        write(file, chosen)
    else:
        frame.head(0).to_csv(file, index=False)
    return kind


def _structure(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    """The records of a JSON file are changed in any place; other formats get one as well."""
    text = json.dumps(frame.to_dict("records"))
    changed, words = damage_json(chance, text, material.outside)
    file.write_text(changed, encoding="utf-8", errors="surrogatepass")
    return words


def _bytes(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    write(file, frame.to_dict("records"))
    content, words = damage_bytes(chance, file.read_bytes())
    file.write_bytes(content)
    return words


def _node(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    return damage_node(chance, file, material.outside)


def _texts(chance: Random, file: Path, frame: pd.DataFrame, material: Material) -> str:
    """Another file's whole content."""
    text = chance.choice(
        (
            "[]",
            "{}",
            "[[1, 2]]",
            "[1]",
            "[null]",
            "null",
            "1",
            '"x"',
            "id",
            "id,label\n",
            "\n\n",
            ",,,\n",
        )
    )
    file.write_text(text, encoding="utf-8")
    return repr(text)


_DAMAGES: dict[str, Callable[[Random, Path, pd.DataFrame, Material], str]] = {
    "cells": _cells,
    "column": _column,
    "names": _names,
    "mixed": _mixed,
    "rows": _rows,
    "structure": _structure,
    "bytes": _bytes,
    "node": _node,
    "texts": _texts,
}
