"""Which code numbers depend on: a hash over modules and everything that they import.

A module that no number depends on, such as one that draws a figure, may change between two calls
on the same folder.
"""

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from interp.plugins import OWN_PACKAGES


@cache
def code_version(modules: tuple[str, ...]) -> str:
    """A hash over the source of modules and everything they import from their own packages.

    A module without a file, such as a notebook, counts by its name alone.
    """
    digest = hashlib.sha256()
    for module in sorted(closure(modules)):
        file = _file(module)
        digest.update(module.encode())
        digest.update(b"" if file is None else file.read_bytes())
    return digest.hexdigest()


def closure(modules: Iterable[str]) -> set[str]:
    """The modules, and those that they import, wherever in their code, directly or not.

    Only modules of this project's packages, and of those that the given ones belong to, count.
    """
    waiting = list(modules)
    packages = {*OWN_PACKAGES, *(_package(module) for module in waiting)}
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imported(module, packages)
    return found


def _imported(module: str, packages: Collection[str]) -> Iterator[str]:
    """The modules of some packages that a module imports."""
    file = _file(module)
    tree = ast.parse(b"" if file is None else file.read_bytes())
    for name in _names(tree):
        # The name of something within a module is none of a module.
        if _package(name) in packages and _file(name) is not None:
            yield name


def _names(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported, but for what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _names(node)


def _package(module: str) -> str:
    return module.partition(".")[0]


@cache
def _file(module: str) -> Path | None:
    """The source file of a module, which is not imported; None where there is none."""
    package, *within = module.split(".")
    try:
        spec = find_spec(package)
    except ValueError:  # __main__ of a notebook
        return None
    if spec is None:
        return None
    places = spec.submodule_search_locations or ()
    if not within:
        found = [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
    else:
        bare = [Path(place, *within) for place in places]
        found = [file for path in bare for file in (path.with_suffix(".py"), path / "__init__.py")]
    return next((file for file in found if file.is_file()), None)
