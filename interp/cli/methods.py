"""`python -m interp methods`: the attribution methods, what each computes and what it costs."""

import argparse
import sys
from collections.abc import Iterator

from interp.attribution.registry import DEFAULT_METHODS, Method, find_method, method_names
from interp.errors import UserError

HELP = "list the attribution methods with formula, paper, sign and cost"

EXAMPLES = ("methods",)

INTRODUCTION = """\
# Attribution methods

What `python -m interp methods` lists. In formulas, `f` is the target of `attribute --target`, `e_i`
the embedding of token i, `e` the prompt, `b` the baseline, `d` the embeddings of a donor in the
places of the prompt's own, `A` the attention of the last token, and `n` the number of tokens.
`v(S)` is the mean of f over K donors where the segments of S are kept and all others come from the
donor, `N` all k segments.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    sys.stdout.write(listing())


def listing() -> str:
    """All methods in Markdown that is readable as plain text: docs/methods.md."""
    return "\n".join([INTRODUCTION, *_entries()])


def _entries() -> Iterator[str]:
    """The entry of each method, including those that cannot be loaded."""
    for name in method_names():
        try:
            yield _described(find_method(name))
        except UserError as error:
            yield f"## {name}\n\nNot usable: {error}.\n"


def _described(method: Method) -> str:
    default = " (default)" if method.name in DEFAULT_METHODS else ""
    lines = {
        "formula": f"`{method.formula}`",
        "paper": method.source,
        "sign": method.sign,
        "cost": method.cost,
    }
    summary = f"{method.summary[:1].upper()}{method.summary[1:]}."
    items = [f"- {label}: {text}" for label, text in lines.items()]
    return "\n".join([f"## {method.name}{default}", "", summary, "", *items]) + "\n"
