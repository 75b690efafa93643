"""The functions of the packages, by reading their source, and lists of names in files."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHOSEN = ROOT / "tests" / "typed.txt"
ELSEWHERE = ROOT / "tests" / "typed_elsewhere.txt"
FOLDERS = {"interp": "interp", "interp_probes": "probes", "interp_experiments": "experiments"}


def all_functions() -> set[str]:
    """Every function and method that has a body, such as "interp.files.write_whole"."""
    return {
        f"{module}.{name}"
        for package, folder in FOLDERS.items()
        for file in (ROOT / folder).rglob("*.py")
        for module in [_module(package, file.relative_to(ROOT / folder))]
        for name in _functions(ast.parse(file.read_text(encoding="utf-8")).body, "")
    }


def _module(package: str, file: Path) -> str:
    return ".".join([package, *file.with_suffix("").parts]).removesuffix(".__init__")


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not _is_declaration(node):
            yield f"{prefix}{node.name}"


def _is_declaration(node: ast.FunctionDef) -> bool:
    """Whether a function has no body of its own, as in protocols and overloads."""
    return all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body
    )
