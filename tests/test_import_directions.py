"""Imports go one way: experiments -> probes -> interp, inside interp from commands downwards."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each package may import itself and what stands to its right.
LAYERS = {
    "interp_experiments": {"interp_probes", "interp"},
    "interp_probes": {"interp"},
    "interp": set(),
}

# Floors of interp: a part may import itself and what is on floors below its own.
FLOORS = (
    {"cli"},
    {"api"},
    {"frames"},
    {"jobs"},
    {"studies"},
    {"report"},
    {"analysis", "runs"},
    {"measurements"},
    {"backends"},
    {"attribution", "patching"},
    {"scoring"},
    {"reading"},
    {"models", "prompts"},
    {"tables", "files", "console", "texts", "options"},
    {"choices", "plugins"},
    {"errors"},
)


def imports(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_downwards_only(package):
    allowed = LAYERS[package] | {package}
    for file in (ROOT / package.removeprefix("interp_")).rglob("*.py"):
        for module in imports(file):
            top = module.split(".")[0]
            assert top not in LAYERS or top in allowed, f"{file} imports {module}"


@pytest.mark.parametrize("part", sorted(set.union(*FLOORS)))
def test_parts_of_interp_import_downwards_only(part):
    home = ROOT / "interp" / part
    files = list(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    floor = next(number for number, parts in enumerate(FLOORS) if part in parts)
    allowed = {part}.union(*FLOORS[floor + 1 :])
    for file in files:
        for module in imports(file):
            names = module.split(".")
            if names[0] == "interp" and len(names) > 1 and names[1] in set.union(*FLOORS):
                assert names[1] in allowed, f"{file} imports {module}"


def test_every_part_of_interp_is_listed():
    parts = {
        path.stem
        for path in (ROOT / "interp").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__", "__main__"} == set.union(*FLOORS)
