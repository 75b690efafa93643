"""Every code block of README.md and docs/ holds.

- Python runs: the blocks of a page in order, in one namespace and one temporary folder.
- Every command line is understood: its program's own parser takes it.
- It also runs, in its place among the blocks of Python and cut down to a few pairs, if it does not
  take long and all that it names is there: packaged organisms, and what the page has made before.
  An organism takes the place of the hub's model in README. Other models, such as org/model, are
  not there.
- A fence without a language is a shell session, as for Sphinx (`highlight_language` in
  docs/conf.py): a line that begins with "$ " is a command, and all others are output.
- TOML is read; tables of pairs are read by `interp.read_pairs`.
"""

import argparse
import contextlib
import io
import re
import runpy
import shlex
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest
from matplotlib import pyplot

import interp
from interp.choices import OWN_PAIRS
from interp.cli import main, parse

_FENCE = re.compile(r"(?ms)^(?P<indent> *)```(?P<language>\S*)\n(?P<text>.*?)^(?P=indent)```$")
_COMMAND = re.compile(r"(?m)^\$ (?P<line>(?:.*\\\n)*.*)$")
_ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    """The fence's language; "" for a shell session, "{...}" for a Sphinx directive."""
    text: str
    line: int
    """Line of the page on which the text begins."""


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(fence["language"], fence["text"], text.count("\n", 0, fence.start("text")) + 1)
        for fence in _FENCE.finditer(text)
    ]


def commands_of(block: Block) -> list[list[str]]:
    """The command lines of a shell session as lists of words, without leading assignments."""
    if block.language not in ("", "console"):
        return []
    lines = (found["line"].replace("\\\n", " ") for found in _COMMAND.finditer(block.text))
    commands = (shlex.split(line, comments=True) for line in lines)
    return [words[_assignments(words) :] for words in commands]


def output_of(block: Block) -> list[str]:
    """The output lines of a shell session."""
    return _COMMAND.sub("", block.text).splitlines()


def _assignments(words: list[str]) -> int:
    """The number of leading words that set variables, such as HF_HUB_OFFLINE=1."""
    return next((i for i, word in enumerate(words) if not _ASSIGNMENT.fullmatch(word)), len(words))


ROOT = Path(__file__).parents[1]
PAGES = [
    page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if blocks_of(page)
]
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
)
TARGETS = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text()))

LONG = {"run", "train", "faithfulness", "doctor", "work"}
"""Commands that do much whatever they are told; tests of their own run them."""

FEW = {"limit": "2", "executor": "inline", "workers": "1"}
"""What every command that measures is cut down to, where it has the option."""

STAND_IN = {"HuggingFaceTB/SmolLM2-135M-Instruct": "organism/llama-shallow"}
"""What is measured in place of a model on the hub."""

OTHERS = {"source", "cd", "git", "export", "lm_eval", "inspect", "uv", "vllm"}
"""Programs whose command lines are nobody's to check here."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


class Understood(Exception):
    """A program has read its command line."""


@every_page
def test_the_command_lines_of_a_page_are_understood(page, monkeypatch):
    for block in blocks_of(page):
        for program, *arguments in commands_of(block):
            where = f"{page.name}:{block.line}: {program} {' '.join(arguments)}"
            understand(where, program, arguments, monkeypatch)


@pytest.mark.quick("README")
@pytest.mark.filterwarnings("ignore:Input Tensor 0 did not already require")  # Captum's, of inseq
@pytest.mark.filterwarnings("ignore:unclosed file .*inseq:ResourceWarning")  # its own settings
@every_page
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in blocks_of(page):
        match block.language:
            case "python":
                # Blank lines before it make a traceback name the line of the page.
                exec(compile("\n" * (block.line - 1) + block.text, page, "exec"), namespace)
            case "toml":
                tomllib.loads(block.text)
            case "csv":
                assert len(interp.read_pairs(pd.read_csv(io.StringIO(block.text))))
            case _:
                run(block)
    pyplot.close("all")


@every_page
def test_a_page_marks_its_commands_and_has_no_language_that_is_not_looked_at(page):
    for block in blocks_of(page):
        directive = block.language.startswith("{")
        assert directive or block.language in ("", "console", "text", "python", "toml", "csv")
        if block.language in ("", "console"):
            for line in output_of(block):
                assert not re.match(r"\s*(python3? |interp |pip |make )", line), f"no '$ ': {line}"


def understand(where, program, arguments, monkeypatch):
    """Fails unless the command line is one that its program takes."""
    try:
        match program, *arguments:
            case ("interp", *words) | ("python", "-m", "interp", *words):
                parse(words)
            case "python", "-m", module, *words:
                read_by_module(module, words, monkeypatch)
            case "python", script, *_:
                assert (ROOT / script).is_file(), where
            case ("pip", "install", *words) | ("uv", "pip", "install", *words):
                asked = re.findall(r"(?:interp|\.)\[([\w,-]+)\]", " ".join(words))
                assert {extra for names in asked for extra in names.split(",")} <= EXTRAS, where
            case "make", *words:
                assert set(words) <= TARGETS, where
            case _:
                assert program in OTHERS, f"{where}: teach this test to check {program}"
    except SystemExit as stop:
        assert not stop.code, where


def read_by_module(module, words, monkeypatch):
    """Start a module as a program, and stop it when it has read its command line."""
    with monkeypatch.context() as patch, pytest.raises(Understood):
        patch.setattr("sys.argv", [module, *words])
        patch.setattr(argparse.ArgumentParser, "parse_args", _only_parse)
        for name in (module, f"{module}.__main__"):  # runpy warns of what a test has imported
            patch.delitem(sys.modules, name, raising=False)
        runpy.run_module(module, run_name="__main__")


def _only_parse(parser, arguments=None, namespace=None):
    rest = parser.parse_known_args(arguments, namespace)[1]
    assert not rest
    raise Understood


def run(block: Block) -> None:
    """Run the commands of interp that can run here, a few pairs of each; a run has its own."""
    for program, *arguments in commands_of(block):
        if program == "interp":
            words = arguments
        elif arguments[:2] == ["-m", "interp"]:
            words = arguments[2:]
        else:
            continue
        words = [STAND_IN.get(word, word) for word in words]
        parsed = parse(words)[1]
        if not is_long(parsed) and is_here(parsed):
            few = [
                f"--{option}={value}"
                for option, value in FEW.items()
                if takes(words, f"--{option}={value}") and getattr(parsed, "answers", None) is None
            ]
            assert main([*words, *few]) == 0


def takes(words: list[str], flag: str) -> bool:
    """Whether a command line may have one more flag, which the page need not give."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        parse([*words, flag])
        return True
    return False


def is_long(parsed: argparse.Namespace) -> bool:
    """Whether it cannot be cut down: a data set is written as a whole, and some are large."""
    return parsed.command in LONG or (parsed.command == "dataset" and parsed.system != OWN_PAIRS)


def is_here(parsed: argparse.Namespace) -> bool:
    """Whether the models and files that a command reads are packaged, or were made by the page."""
    models = [Path(name) for name in getattr(parsed, "models", ())]
    named = (getattr(parsed, name, None) for name in ("data", "folder", "path"))
    files = [Path(name) for name in named if name is not None]
    files += [Path(name) for name in getattr(parsed, "logs", ())]
    files += [Path("answers of another tool") for _ in getattr(parsed, "answers_from", ())]
    return getattr(parsed, "executor", None) != "slurm" and all(
        path.parts[0] == "organism" or path.exists() for path in [*models, *files]
    )
