"""Command lines: every option of every command, with values that nobody should give."""

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NoReturn
from unittest import mock

from interp import cli
from interp.cli.parser import Parser
from tests.fuzz.case import Case
from tests.fuzz.material import Material
from tests.fuzz.nasty import WORDS

PLAUSIBLE = {
    "executor": ("inline", "local", "slurm"),
    "workers": ("1", "2", "100000"),
    "limit": ("1", "2", "all"),
    "system": ("rulebreakers", "logical-forms"),
    "backend": ("native", "transformer-lens", "nnsight"),
    "methods": ("input_gradient", "attention", "input_gradient,attention", "captum:occlusion"),
    "target": ("predicted", "gold", "contrast"),
    "sites": ("resid_pre", "resid_mid,resid_post", "attn_out,mlp_out", "z,q,k,v", "pattern"),
    "granularity": ("role", "segment", "position", "all"),
    "direction": ("denoising", "noising"),
    "clean": ("rulebreaker", "non-rulebreaker", "rb"),
    "policy": ("last", "mean", "all"),
    "layers": ("0", "0,1", "1,0", "0,0", "7", "-1"),
    "heads": ("0", "0,1", "3", "99"),
    "estimate": ("gradient", "integrated"),
    "verify": ("1", "3"),
    "positions": ("last_token", "premise1", "last_token,conclusion"),
    "dtype": ("float32", "bfloat16", "float16", "float64", "auto", "int8"),
    "quantization": ("8bit", "4bit"),
    "attn_implementation": ("sdpa", "eager", "flex_attention", "flash_attention_2"),
    "device": ("cpu", "cuda", "meta", "mps"),
    "device_map": ("auto", "cpu", "cuda", "disk"),
    "batch_tokens": ("1", "64", "4096"),
    "fail_on_error": ("0", "1", "0.5", "2", "nan"),
    "slurm_options": ("partition=gpu", "time=1", "=", "time"),
    "study": ("rulebreakers", "logical-forms"),
    "number": ("0", "1", "-1"),
}
"""By destination: values that the option may well be given."""


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command with what keeps it small, and one to four further options."""
    commands = _commands()
    name = commands[number % len(commands)]
    parser = _parser(name)
    dests = {action.dest: action for action in _actions(parser)}
    known = _small(material, dests) if chance.random() < 0.9 else []
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
    return Case(argv, asked=(Path("/"),))


def _small(material: Material, dests: dict[str, argparse.Action]) -> list[str]:
    """The options, of those that a command has, by which it takes little time."""
    wanted = {
        "models": ["--model", str(material.model)],
        "data": ["--data", str(material.data)],
        "limit": ["--limit", "2"],
        "device": ["--device", "cpu"],
        "out": ["--out", "out.csv" if "format" in dests else "out"],
    }
    return [word for dest, words in wanted.items() if dest in dests for word in words]


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
    """A value for an option: one that it may well be given, a path, or a nasty word."""
    kind = chance.random()
    if kind < 0.35 and action.dest in PLAUSIBLE:
        return chance.choice(PLAUSIBLE[action.dest])
    if kind < 0.45 or (kind < 0.6 and action.dest in ("folder", "data", "models", "attributions")):
        runs = [str(material.folder / name) for name in material.runs]
        own = [str(material.model), f"{material.model}/", str(material.data), str(material.outside)]
        return chance.choice([*runs, *own])
    return chance.choice(WORDS)


def _actions(parser: argparse.ArgumentParser, *, options: bool = True) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if bool(action.option_strings) == options and action.dest != "help":
            yield action


@cache
def _commands() -> tuple[tuple[str, ...], ...]:
    """Every command and subcommand, by its words."""
    return tuple(_leaves(_top(), ()))


def _leaves(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inner = _inner(parser)
    if not inner:
        yield words
    for name, below in inner.items():
        yield from _leaves(below, (*words, name))


@cache
def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _top()
    for word in words:
        parser = _inner(parser)[word]
    return parser


def _inner(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


class _Found(Exception):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


@cache
def _top() -> argparse.ArgumentParser:
    """The parser of the whole command line, caught at the moment it is used."""

    def catch(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Found(parser)

    with mock.patch.object(Parser, "parse_known_args", catch):
        try:
            # A command is configured if its name is given.
            cli.main([*cli.find_commands(), "rulebreakers"])
        except _Found as found:
            return found.parser
    raise AssertionError("the command line is not read by argparse")
