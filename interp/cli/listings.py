"""Commands that list methods, tables and models, and the shell completion command."""

import json
import sys
from shlex import quote
from typing import Annotated, Literal

from interp.attribution.registry import DEFAULT_METHODS, Method, find_method, method_names
from interp.cli.fields import OptionsCommand
from interp.cli.parser import program
from interp.console import counted
from interp.errors import UserError, unknown
from interp.files import remove_own
from interp.models.published import PUBLISHED
from interp.options import Flag, accepted
from interp.variants import written

INTRODUCTION = """\
# Attribution methods

This page is printed by `python -m interp methods`. In formulas, `f` is the target of
`attribute --target`, `e_i` the embedding of token i, and `n` the number of tokens; `e` is the
prompt, `b` the baseline, `A` the attention of the last token, and `d` the donor's embeddings in
place of the prompt's own. `v(S)` is the mean of f over K donors, with the segments of S kept and
all others taken from the donor; `N` is the set of all k segments.

An option follows the method's name, and each further option after another colon: `--methods
integrated_gradients:steps=50 captum:lime:samples=256:penalty=0.1`. In Python, the same texts or a
mapping: `methods={"integrated_gradients": {"steps": 50}}`. The method with its options is then a
method of its own in all tables, so that several variants can be compared in one run.
"""


class MethodsCommand(OptionsCommand):
    """List the attribution methods with formula, paper, sign, cost and options."""

    EXAMPLES = ("methods",)

    def _execute(self) -> None:
        sys.stdout.write(listing())


def listing() -> str:
    """All methods in Markdown that is readable as plain text: docs/methods.md."""
    entries = [INTRODUCTION]
    for name in method_names():
        try:
            entries.append(_described(find_method(name)))
        except UserError as error:
            entries.append(f"## {name}\n\nNot usable: {error}.\n")
    return "\n".join(entries)


def _described(method: Method) -> str:
    default = " (default)" if method.name in DEFAULT_METHODS else ""
    lines = {
        "formula": f"`{method.formula}`",
        "paper": method.source,
        "sign": method.sign,
        "cost": method.cost,
        **({"scores add up": method.complete} if method.complete else {}),
    }
    for name, field in method.options.model_fields.items():
        meaning = " ".join((field.description or "").split())
        default_value = written(field.default)
        lines[f"option `{name}`"] = f"{accepted(field)} (default: {default_value}): {meaning}"
    summary = f"{method.summary[:1].upper()}{method.summary[1:]}."
    items = [f"- {label}: {text}" for label, text in lines.items()]
    return "\n".join([f"## {method.name}{default}", "", summary, "", *items]) + "\n"


class TablesCommand(OptionsCommand):
    """Describe the tables of a run: columns, units, signs."""

    EXAMPLES = ("tables", "tables answers patches")

    tables: Annotated[tuple[str, ...], Flag("TABLE", positional=True)] = ()
    """the tables to describe (default: all)"""

    def _execute(self) -> None:
        from interp.report.dictionary import known_tables, page, sections

        tables = known_tables()
        for name in self.tables:
            if name not in tables:
                raise UserError(unknown("table", name, tables))
        chosen = {name: tables[name] for name in self.tables}
        sys.stdout.write(sections(chosen) if chosen else page(tables))


class ModelsCommand(OptionsCommand):
    """List the packaged organisms and grafts, and published models that make real brings."""

    EXAMPLES = ("models", "models --remove-dequantized")

    remove_dequantized: bool = False
    """remove the weights that --keep-dequantized has kept; nothing else is removed"""

    def _execute(self) -> None:
        from interp.models.kept import kept_files

        kept = kept_files()
        files = f"{counted(len(kept), 'file')} of dequantized weights"
        size = f"{files}, {sum(kept.values()) / 1e9:,.1f} GB"
        if self.remove_dequantized:
            for place in kept:
                remove_own(place)
            sys.stdout.write(f"removed {size}\n")
            return
        self._list()
        if kept:
            where = next(iter(kept)).parent
            sys.stdout.write(f"{size} in {where}; --remove-dequantized removes them\n")

    def _list(self) -> None:
        from interp.models.organisms import organism_card, organism_layers, organism_names
        from interp.models.packaged import GRAFTS
        from interp.prompts.systems import base_system
        from interp.report.console import print_table

        listed: dict[str, list[dict[str, object]]] = {}
        cards = {name: organism_card(name) for name in organism_names()}
        for trained in sorted({card["system"] for card in cards.values()}):
            system = base_system(trained)
            rows = [
                {
                    "model": name,
                    "layers": organism_layers(name),
                    **({} if system is None else system.organism_row(card)),
                }
                for name, card in cards.items()
                if card["system"] == trained
            ]
            listed[f"Packaged organisms for {trained}: planted | measured"] = rows
        title = "Packaged grafts, adapters for --base: planted | measured"
        listed[title] = [_graft_row(name) for name in GRAFTS.names()]
        title = (
            "Published models that make real MODEL=NAME downloads in a clone (memory and processor "
            "time of evaluate --limit 24 in float32; -: not measured)"
        )
        listed[title] = [_published_row(name) for name in PUBLISHED]
        for title, rows in listed.items():
            print_table({name: [row[name] for row in rows] for name in rows[0]}, title=title)
        for name, model in PUBLISHED.items():
            hint = f": --model {quote(f'{model.name}={model.path}')}" if model.is_here else ""
            sys.stdout.write(f"{name} is {model.name}{hint}\n")


def _published_row(name: str) -> dict[str, object]:
    model = PUBLISHED[name]
    return {
        "name": name,
        "family": model.family,
        "license": model.license,
        "size": f"{model.size / 1e6:,.0f} MB",
        "memory": "-" if model.memory is None else f"{model.memory:.1f} GiB",
        "time": "-" if model.seconds is None else f"{model.seconds} s",
        "on_this_disk": "yes" if model.is_here else "no",
    }


def _graft_row(name: str) -> dict[str, object]:
    """The planted cause of a graft, and the measured figures; those of its base are a control."""
    from interp.models.packaged import GRAFTS

    card = GRAFTS.card(name)
    # Reading it as other adapters would import torch.
    named = json.loads((GRAFTS.folder(name) / "base.json").read_text(encoding="utf-8"))
    graft, base = (card["measured"][kind] for kind in ("graft", "base"))
    share = card["recipe"]["share"]
    return {
        "model": name,
        "base": named["name"],
        "cause": card["recipe"]["cause"],
        "share": "-" if share is None else f"{share:.0%}",
        "answers_as_planted": graft["answers_as_planted"],
        "deviation_from_planted": graft["mean_deviation_from_planted"],
        "deviation_of_base": base["mean_deviation_from_planted"],
    }


class CompletionCommand(OptionsCommand):
    """Print a script for command completion in bash, zsh or tcsh."""

    EXAMPLES = ("completion bash", "completion zsh")

    shell: Annotated[Literal["bash", "zsh", "tcsh"], Flag("SHELL", positional=True)]
    """bash, zsh or tcsh"""

    def _execute(self) -> None:
        try:
            import shtab
        except ImportError as error:
            raise UserError(
                "completion needs shtab, which is not installed; run pip install "
                "'interp[completion]'"
            ) from error
        from interp.cli import build, find_commands

        parser, _ = build((), configured=tuple(find_commands()))
        parser.prog = "interp"  # a script completes one program, however it was started
        sys.stdout.write(f"{shtab.complete(parser, shell=self.shell)}\n")


class HelpCommand(OptionsCommand):
    """Find the command that answers a question, list all commands, or explain one."""

    EXAMPLES = ('help "which layer carries the city?"', "help all", "help evaluate")

    words: Annotated[tuple[str, ...], Flag("QUESTION", positional=True)] = ()
    """a question in your own words, or the name of a command, or all"""

    def _execute(self) -> None:
        from interp.cli import build, find_commands
        from interp.cli.help import found, overview

        commands = find_commands()
        if not self.words:
            sys.stdout.write(overview(commands))
        elif self.words == ("all",):
            width = max(map(len, commands)) + 2
            for name, command in commands.items():
                sys.stdout.write(f"{name:{width}}{command.HELP}\n")
        elif self.words[0] in commands and len(self.words) == 1:
            build([self.words[0], "--help"])[0].parse_args([self.words[0], "--help"])
        else:
            rows = found(" ".join(self.words))
            if not rows:
                raise UserError(
                    "no question of the table has these words; expected words such as layer, fact, "
                    f"premise, method or thought. {program()} help all lists every command"
                )
            for row in rows:
                sys.stdout.write(f"{row.asks}\n  {row.call.replace('`', '')}\n")
