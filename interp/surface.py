"""Names that a package offers from its modules, imported when first used: torch takes seconds."""

import ast
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any


def homes(tree: ast.AST) -> dict[str, str]:
    """The module of each name that a source offers, which it imports as itself (`a as a`)."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names = [(alias, str(node.module)) for node in nodes for alias in node.names]
    return {alias.name: module for alias, module in names if alias.asname == alias.name}


def offered(
    module: str, file: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The `__all__`, `__getattr__` and `__dir__` of a module that offers the names in its source.

    Type checkers read the same list, which stands under `if TYPE_CHECKING`.
    """
    places = homes(ast.parse(Path(file).read_bytes()))

    def attribute(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if places[name] != module:
            with suppress(AttributeError):
                return getattr(import_module(places[name]), name)
        return import_module(f"{places[name]}.{name}")  # the name is that of a whole module

    def listing() -> list[str]:
        return [*places, "__all__", "__doc__", "__file__", "__name__"]

    return list(places), attribute, listing
