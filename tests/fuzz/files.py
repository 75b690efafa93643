"""Cases of single files: data, model folders, templates and weights; the list of targets."""

import json
import struct
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from interp.console import echo
from interp.errors import UserError
from interp.files import writing
from tests.fuzz import folders
from tests.fuzz.damage import damage_bytes, damage_json, damage_node, rewrite_json, values
from tests.fuzz.material import Case, Make, Material

Rows = list[dict[Any, Any]]

_WEIGHTS = "model.safetensors"


def data_file(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that reads data with the published columns and damaged cells, columns or bytes."""
    rows: Rows = pd.read_csv(material.data).head(8).to_dict("records")
    file = folder / f"data.{('csv', 'json', 'jsonl', 'parquet')[number % 4]}"
    kind = chance.choice(
        ("cells", "column", "names", "mixed", "rows", "structure", "bytes", "node")
    )
    words = ""
    if kind == "structure":
        text, words = damage_json(chance, json.dumps(rows), material.outside)
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
    elif kind == "node":
        words = damage_node(chance, file, material.outside)
    elif kind == "bytes":
        _write(file, rows)
        words = damage_bytes(chance, file)
        if chance.random() < 0.5:
            words = chance.choice(("[]", "{}", "[1]", "[null]", "1", '"x"', "id,label\n", ",,,\n"))
            file.write_text(words, encoding="utf-8")
    else:
        rows, words = _changed(chance, kind, rows, values(material.outside))
        _write(file, rows)
    commands = (("evaluate",), ("evaluate",), ("probe", "familiarity"), ("patch", "--layers", "0"))
    command = commands[number // 4 % 4]
    limit = [] if command[0] == "probe" else ["--limit", chance.choice(("1", "2", "all"))]
    name = chance.choice((file.name, file.name, file.name, "."))
    fixed = ["--data", name, "--model", str(material.model), "--device", "cpu", "--out", "out"]
    return Case([*command, *fixed, *limit], damage=f"{file.name}: {kind} {words}")


def _changed(chance: Random, kind: str, rows: Rows, odd: list[Any]) -> tuple[Rows, str]:
    """Rows with other values, names or order, and a description of the change."""
    column, value = chance.choice(list(rows[0])), chance.choice(odd)
    if kind == "column":
        return [{**row, column: value} for row in rows], f"all of {column} = {value!r:.80}"
    if kind == "names":
        new = chance.choice(("", " id", "ID", "id", "x\ny", "é"))
        renamed = [{new if name == column else name: row[name] for name in row} for row in rows]
        return renamed, f"{column} is called {new!r}"
    if kind == "rows":
        kinds = {"none": [], "one": rows[:1], "doubled": rows + rows[:2], "odd": rows[::2]}
        kinds["shuffled"] = chance.sample(rows, len(rows))
        how = chance.choice(tuple(kinds))
        return kinds[how], how
    words = []
    for _ in range(chance.choice((1, 1, 2, 5))):
        row, other = chance.choices(rows, k=2)
        column, second = chance.choices(list(row), k=2)
        if kind == "mixed":
            row[column], other[second] = other[second], row[column]
        else:
            row[column] = chance.choice(odd)
        words.append(f"{column} = {row[column]!r:.80}")
    return rows, "; ".join(words)


def _write(file: Path, rows: Rows) -> None:
    """Write rows in the format of the file's suffix; values may have any type."""
    frame = pd.DataFrame(rows, dtype=object)
    if file.suffix == ".csv":
        frame.to_csv(file, index=False, errors="surrogatepass")
    elif file.suffix == ".parquet":
        # Parquet has no columns of mixed types.
        frame.columns = pd.Index([_encodable(column) for column in frame.columns])
        frame.map(_encodable).to_parquet(file)
    else:
        lines = [json.dumps(row) for row in rows]
        text = "\n".join(lines) if file.suffix == ".jsonl" else f"[{','.join(lines)}]"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")


def _encodable(value: object) -> str:
    return str(value).encode(errors="replace").decode()


def model_folder(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that loads a model whose configuration, tokenizer or weights are damaged."""
    model = material.copy("model", folder / "model")
    records = ("config.json", "config.json", "tokenizer.json", "tokenizer_config.json")
    kind = (*records, "bytes", "node", *_WEIGHT_DAMAGES)[number % (6 + len(_WEIGHT_DAMAGES))]
    if kind in records:
        words = rewrite_json(chance, model / kind, material.outside)
    elif kind in ("bytes", "node"):
        file = chance.choice(sorted(model.iterdir()))
        node = damage_node(chance, file, material.outside) if kind == "node" else None
        words = f"{file.name} {node or damage_bytes(chance, file)}"
    else:
        words = _WEIGHT_DAMAGES[kind](chance, model, material)
    commands = (("evaluate",), ("attribute",), ("patch", "--layers", "0"), ("probe", "linear"))
    fixed = ["--data", str(material.data), "--limit", "2", "--device", "cpu", "--out", "out"]
    argv = [*chance.choice((commands[0], *commands)), "--model", "model", *fixed]
    return Case(argv, damage=f"{kind}: {words}", refused=kind in ("lacking", "renamed"))


def _header(chance: Random, model: Path, material: Material) -> str:
    """Damage the JSON header of the weights: types, shapes and offsets."""
    content = (model / _WEIGHTS).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    text, words = damage_json(chance, content[8 : 8 + length].decode(), material.outside)
    header = text.encode(errors="surrogatepass")
    size = chance.choice((len(header), len(header), len(header), 0, length, 2**63))
    (model / _WEIGHTS).write_bytes(struct.pack("<Q", size) + header + content[8 + length :])
    return words


def _tensors(change: Callable[[Random, dict[str, Tensor]], dict[str, Tensor]]) -> Any:
    """A damage that changes the tensors, and describes it by their names."""

    def damage(chance: Random, model: Path, material: Material) -> str:
        there = load_file(model / _WEIGHTS)
        found = {name: t.contiguous() for name, t in change(chance, dict(there)).items()}
        save_file(found, model / _WEIGHTS, metadata={"format": "pt"})
        return f"{sorted(there.keys() ^ found.keys())}"[:200]

    return damage


def _lacking(chance: Random, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    gone = chance.sample(sorted(tensors), chance.choice((1, 1, 2, len(tensors))))
    return {name: tensor for name, tensor in tensors.items() if name not in gone}


def _renamed(chance: Random, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    prefix = chance.choice(("module.", "base_model.model.", "x"))
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def _reshaped(chance: Random, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    name = chance.choice(sorted(tensors))
    one = tensors[name]
    kinds: tuple[Callable[[], Tensor], ...] = (
        *(lambda: one[: len(one) // 2], one.flatten, lambda: one[None], one.double, one.char),
        *(lambda: one * float("nan"), lambda: one * float("inf")),
    )
    return {**tensors, name: chance.choice(kinds)()}


def _index(chance: Random, model: Path, material: Material) -> str:
    """Move the weights into a file named by an index, and damage the index."""
    file = chance.choice(("part.safetensors", "../part.safetensors", "part.bin"))
    names = sorted(load_file(model / _WEIGHTS))
    (model / _WEIGHTS).rename(model / file)
    index = model / f"{_WEIGHTS}.index.json"
    content = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(names, file)}
    index.write_text(json.dumps(content), encoding="utf-8")
    whole = chance.random() < 0.3
    return file if whole else f"{file}: {rewrite_json(chance, index, material.outside)}"


_WEIGHT_DAMAGES: dict[str, Callable[[Random, Path, Material], str]] = {
    "header": _header,
    "index": _index,
    "lacking": _tensors(_lacking),
    "renamed": _tensors(_renamed),
    "reshaped": _tensors(_reshaped),
}


def template(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that loads a model with a hostile or merely odd chat template."""
    model = material.copy("model", folder / "model")
    places = json.loads(Path(__file__).with_name("templates.json").read_text(encoding="utf-8"))
    chosen = places[number % len(places)]
    text = chosen["text"] * chosen.get("times", 1) if "text" in chosen else None
    if text is not None and chance.random() < 0.5:
        (model / "chat_template.jinja").write_text(text, encoding="utf-8")
    else:
        (model / "chat_template.jinja").unlink()
        _configure(model / "tokenizer_config.json", chat_template=text or chosen.get("value"))
    commands = (("evaluate",), ("attribute",), ("patch", "--layers", "0"), ("probe", "familiarity"))
    command = commands[number // len(places) % 4]
    limit = [] if command[0] == "probe" else ["--limit", "2"]
    fixed = ["--data", str(material.data), "--device", "cpu", "--out", "out"]
    return Case([*command, "--model", "model", *fixed, *limit], damage=f"{chosen!r:.200}")


def _configure(file: Path, **options: object) -> None:
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**config, **options}), encoding="utf-8")


def degenerate(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """Valid use at its limits: one pair, constant or undefined outputs, prompts that all fail."""
    listed = [command.split() for command in _EDGES.split("\n")]
    command = listed[number % len(listed)]
    model = material.copy("model", folder / "model")
    weights = chance.choice((None, 0.0, float("nan"), 1e30, 1e-6))
    if weights is not None:
        tensors = {name: t * weights for name, t in load_file(model / _WEIGHTS).items()}
        save_file(tensors, model / _WEIGHTS, metadata={"format": "pt"})
    context = {"max_position_embeddings": chance.choice((16, 100))}
    setting = chance.choice(({}, {}, context, {"dtype": "float16"}))
    _configure(model / "config.json", **setting)
    data = chance.choice(tuple(_DATA))
    _DATA[data](pd.read_csv(material.data)).to_csv(folder / "data.csv", index=False)
    argv = [*command, "--model", "model", "--data", "data.csv", "--device", "cpu", "--out", "out"]
    if command[-1] not in ("familiarity", "knowledge"):
        argv += ["--limit", chance.choice(("1", "2", "3", "all"))]
    option = chance.choice(_ODD_OPTIONS).split()
    argv += [] if command[0] in ("run", "probe") and "--seed" in option else option
    return Case(argv, damage=f"weights * {weights}, {setting}, {data}")


_EDGES = """evaluate
attribute
attribute --keep-tokens --target contrast
attribute --methods attention --target gold
patch --layers 0
patch --estimate gradient --verify 2
patch --sites z,pattern --granularity position
patch --sites attn_out --direction noising --granularity all
probe familiarity
probe knowledge
probe linear
run rulebreakers"""
_ODD_OPTIONS = (
    *("", "--dtype float64", "--dtype bfloat16", "--fail-on-error 1", "--batch-tokens 1"),
    *("--attn-implementation eager", "--seed 7"),
)
_DATA: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "one pair": lambda frame: frame.head(2),
    "two pairs": lambda frame: frame.head(4),
    "all": lambda frame: frame,
    "one rule": lambda frame: frame[frame["rulebreaker_type"] == frame["rulebreaker_type"].iloc[0]],
    "long premises": lambda frame: frame.assign(premise1=frame["premise1"] + " and so on" * 300),
    "long names": lambda frame: frame.assign(firstName=frame["firstName"] * 40),
    "no ASCII": lambda frame: frame.map(lambda v: str(v).replace("a", "ä") if " " in str(v) else v),
    "one verb": lambda frame: frame[frame["verb"] == frame["verb"].iloc[0]],
}


def planted(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """Failures that the fuzz must find: a traceback, a hang, and files changed outside."""

    def loop(outside: Path) -> None:
        while True:
            time.process_time()

    def raised(outside: Path) -> None:
        raise KeyError("planted")

    def elsewhere(outside: Path) -> int:
        try:
            with writing(outside):
                Path("/etc/new").touch()
        except UserError as error:
            echo(str(error))
        return 0

    def changed(outside: Path) -> int:
        torch.save(torch.zeros(1), outside / "new")  # in C++, unseen by Python
        return 0

    acts = (raised, loop, elsewhere, changed)
    return Case([], planted=acts[number % len(acts)])


MAKERS: dict[str, Make] = {
    "command_lines": folders.command_line,
    "data_files": data_file,
    "run_folders": folders.run_folder,
    "study_folders": folders.study_folder,
    "model_folders": model_folder,
    "templates": template,
    "trainings": folders.training,
    "degenerate": degenerate,
    "planted": planted,
}
"""The maker of each target's cases."""
