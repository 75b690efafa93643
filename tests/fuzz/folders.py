"""Cases of damaged runs, studies and trainings, and of command lines without damage."""

import argparse
import pickle
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import NoReturn
from unittest import mock

import torch
from pydantic import ValidationError

from interp import cli
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.training.folder import MANIFEST, declare_whole
from tests.fuzz.damage import WORDS, damage_bytes, damage_node, remove, rewrite_json, values
from tests.fuzz.material import STOPPED, TRAINING, Case, Material

_COMMANDS = (
    ("status", "run"),
    ("validate", "run"),
    ("report", "run"),
    ("work", "run", "0", "--call", "0123456789ab", "--"),
    (),
    ("--retry-errors",),
)
"""Commands that read a damaged run; those without a command resume the run."""


def run_folder(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A damaged run of one measurement."""
    names = [name for name in material.runs if name != "study"]
    return _run(chance, names[number // len(_COMMANDS) % len(names)], number, material, folder)


def study_folder(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A damaged study."""
    return _run(chance, "study", number, material, folder)


def _run(chance: Random, name: str, number: int, material: Material, folder: Path) -> Case:
    run = material.copy(name, folder / "run")
    words = [_interrupt(chance, run)] if chance.random() < 0.35 else []
    words += [_damage(chance, run, material.outside) for _ in range(chance.choice((1, 1, 1, 2)))]
    command = _COMMANDS[number % len(_COMMANDS)]
    own = [*material.runs[name], "--out", "run"]
    argv = list(command) if "run" in command else [*own, *command]
    argv += [material.job(name)] if command[-1:] == ("--",) else []
    return Case(argv, damage=f"{name}: {'; '.join(words)}")


def _interrupt(chance: Random, run: Path) -> str:
    """Leave a run as if killed: a shard is missing, and its claim belongs to no process."""
    shard = chance.choice(sorted(run.glob("**/shards/*/*")))
    shutil.rmtree(shard)
    part = shard.parent.parent.parent
    for table in part.glob("*.parquet"):
        if table.name != "prompts.parquet":
            table.unlink()
    claims = part / "claims" / shard.parent.name
    claims.mkdir(parents=True)
    claim = '{"space": "elsewhere", "process": 1, "worker": "x"}'
    (claims / shard.name).write_text(claim, encoding="utf-8")
    (part / f".{chance.choice(('record', 'use', 'tables'))}.lock").touch()
    return "interrupted"


def _damage(chance: Random, run: Path, outside: Path) -> str:
    """One damage, to a record more often than to a table or folder."""
    nodes = sorted(run.rglob("*"))
    files = [path for path in nodes if path.is_file() and not path.is_symlink()]
    records = [p for p in files if p.suffix == ".json" or p.parent.parent.name == "claims"]
    # The records at the top are read by every command.
    top = [path for path in records if path.parent in (run, run / "models")]
    kind, path = chance.random(), chance.choice(nodes)
    if kind < 0.6 and records:
        path = chance.choice(top if top and chance.random() < 0.6 else records)
        words = rewrite_json(chance, path, outside)
        words += f", {damage_bytes(chance, path)}" if chance.random() < 0.15 else ""
    elif kind < 0.9 and path in files and chance.random() < 0.5:
        words = damage_bytes(chance, path)
    elif kind < 0.9:
        words = damage_node(chance, path, outside)
    else:
        return _add(chance, run, nodes, outside)
    return f"{path.relative_to(run)}: {words}"


def _add(chance: Random, run: Path, nodes: list[Path], outside: Path) -> str:
    """Put a copy of one file or folder in the place of another, or where it does not belong."""
    source, target = (chance.choice(nodes) for _ in range(2))
    if chance.random() < 0.5:
        names = ("x", "x.json", "0.json", ".run.json.x", ".record.lock", "é\n", "a" * 32)
        target = target.parent / chance.choice(names)
    if source == target or source in target.parents or target in source.parents:
        return f"{target.relative_to(run)}: {damage_node(chance, target, outside)}"
    remove(target)
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copyfile(source, target, follow_symlinks=False)
    return f"{target.relative_to(run)} is a copy of {source.relative_to(run)}"


_PICKLED = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin")
_PLACES = (
    "checkpoint-4",
    "checkpoint-5",
    "checkpoint-4/optimizer.pt",
    "checkpoint-99/model.safetensors",
    *(f"{STOPPED}/{name}" for name in _PICKLED),
    ".training",
    ".training.lock",
    "config.json",
    "model.safetensors",
    "tokenizer.json",
)


def training(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A training that was stopped at a checkpoint and damaged, and is to be resumed."""
    run = material.copy("training", folder / "run")
    words = []
    for _ in range(chance.choice((1, 1, 1, 2))):
        kind = chance.choice((_damage, _misplace, _exchange))
        words.append(kind(chance, run, material.outside))
    if number % 3 == 0:
        words.append(_sign(run / STOPPED))
    return Case([*TRAINING, "--out", "run"], damage="; ".join(words))


def _misplace(chance: Random, run: Path, outside: Path) -> str:
    """Put something in a place that training will read or write."""
    name = chance.choice(_PLACES)
    # Earlier damage may have taken the place, or linked it to a folder outside.
    if (run / name).parent.is_symlink():
        return ""
    with suppress(FileExistsError, NotADirectoryError):
        (run / name).parent.mkdir(exist_ok=True)
        return f"{name}: {damage_node(chance, run / name, outside)}"
    return ""


def _exchange(chance: Random, run: Path, outside: Path) -> str:
    """Replace a file that torch reads by other content or by code."""
    name, value = chance.choice(_PICKLED), chance.choice(values(outside))
    with suppress(FileNotFoundError, NotADirectoryError):
        (run / STOPPED / name).unlink()
        if chance.random() < 0.5:
            torch.save(value, run / STOPPED / name)
            return f"{name} holds {value!r:.80}"
        (run / STOPPED / name).write_bytes(pickle.dumps(_Code(outside / "new")))
        return f"{name} holds code"
    return ""


class _Code:
    """Creates a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.file,)


def _sign(checkpoint: Path) -> str:
    """Write the checkpoint's manifest again, so that it matches the damaged files."""
    with suppress(UserError, OSError, ValidationError):  # of a name that no checkpoint has
        (checkpoint / MANIFEST).unlink()
        declare_whole(checkpoint)
        return "signed"
    return "cannot be signed"


_PLAUSIBLE = """
executor: inline local slurm
workers: 1 2 100000
limit: 1 2 all
system: rulebreakers logical-forms
backend: native transformer-lens nnsight
methods: input_gradient attention input_gradient,attention captum:occlusion
target: predicted gold contrast
sites: resid_pre resid_mid,resid_post attn_out,mlp_out z,q,k,v pattern
granularity: role segment position all
direction: denoising noising
clean: rulebreaker non-rulebreaker rb
policy: last mean all
layers: 0 0,1 1,0 0,0 7 -1
heads: 0 0,1 3 99
estimate: gradient integrated
verify: 1 3
positions: last_token premise1 last_token,conclusion
dtype: float32 bfloat16 float16 float64 auto int8
quantization: 8bit 4bit
attn_implementation: sdpa eager flex_attention flash_attention_2
device: cpu cuda meta mps
device_map: auto cpu cuda disk
batch_tokens: 1 64 4096
fail_on_error: 0 1 0.5 2 nan
slurm_options: partition=gpu time=1 = time
study: rulebreakers logical-forms
number: 0 1 -1
"""
PLAUSIBLE = {
    name: words.split()
    for name, _, words in (line.partition(":") for line in _PLAUSIBLE.split("\n"))
}
"""Plausible values of options, by destination."""


def command_line(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command with options that keep it small, and one to four others."""
    commands = _commands()
    name, parser = commands[number % len(commands)]
    dests = {action.dest: action for action in _actions(parser)}
    small = {
        "models": ["--model", str(material.model)],
        "data": ["--data", str(material.data)],
        "limit": ["--limit", "2"],
        "device": ["--device", "cpu"],
        "out": ["--out", "out.csv" if "format" in dests else "out"],
    }
    known = [word for dest, words in small.items() if dest in dests for word in words]
    known = known if chance.random() < 0.9 else []
    options = tuple(dests.values())
    count = chance.choice((1, 1, 2, 3, 4)) if options else 0
    asked = [
        word
        for action in (chance.choice(options) for _ in range(count))
        for word in _option(chance, action, material)
    ]
    positional = [_value(chance, action, material) for action in _actions(parser, options=False)]
    argv = [*name, *positional, *known, *asked]
    if chance.random() < 0.05:
        argv.insert(chance.randint(0, len(argv)), chance.choice(WORDS))
    return Case(argv, asked=True)


def _option(chance: Random, action: argparse.Action, material: Material) -> list[str]:
    name = chance.choice(action.option_strings)
    if action.nargs == 0:
        return [name]
    value = _value(chance, action, material)
    if chance.random() < 0.4:
        return [f"{name}={value}"]
    more = [_value(chance, action, material)] if action.nargs == "+" else []
    return [name, value, *(more if chance.random() < 0.3 else [])]


def _value(chance: Random, action: argparse.Action, material: Material) -> str:
    """A value for an option: plausible, a path, or an odd word."""
    kind = chance.random()
    if kind < 0.35 and action.dest in PLAUSIBLE:
        return chance.choice(PLAUSIBLE[action.dest])
    if kind < 0.45 or (kind < 0.6 and action.dest in ("folder", "data", "models", "attributions")):
        runs = [str(material.folder / name) for name in material.runs]
        own = [str(material.model), f"{material.model}/", str(material.data), str(material.outside)]
        return chance.choice([*runs, *own])
    return chance.choice(WORDS)


def _actions(parser: argparse.ArgumentParser, *, options: bool = True) -> list[argparse.Action]:
    found = (action for action in parser._actions if action.dest != "help")
    return [action for action in found if bool(action.option_strings) == options]


@cache
def _commands() -> tuple[tuple[tuple[str, ...], argparse.ArgumentParser], ...]:
    """Every command and subcommand with its parser, which is caught when it parses."""
    caught: list[argparse.ArgumentParser] = []

    def catch(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        caught.append(parser)
        raise SystemExit

    with mock.patch.object(Parser, "parse_known_args", catch), suppress(SystemExit):
        # Only commands that are named get their options.
        cli.main([*cli.find_commands(), "rulebreakers"])
    return tuple(_leaves(caught[0], ()))


def _leaves(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    inner = [a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        yield words, parser
    for name, below in inner[0].items() if inner else ():
        yield from _leaves(below, (*words, name))
