"""Imports go one way: experiments -> probes -> interp, inside interp from commands downwards."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import interp
import interp.extend

ROOT = Path(__file__).parent.parent

# Each package may import itself and what is to its right.
LAYERS = {
    "interp_experiments": {"interp_probes", "interp"},
    "interp_probes": {"interp"},
    "interp": set(),
}

# Floors of interp: a part may import itself and what is on floors below its own.
FLOORS = (
    {"extend"},
    {"cli"},
    {"scanning"},
    {"api"},
    {"doctor", "export", "jobs", "training"},
    {"judging"},
    {"measurements"},
    {"comparing"},
    {"studies"},
    {"results"},
    {"estimates"},
    {"report"},
    {"lenses"},
    {"analysis", "runs"},
    {"measuring"},
    {"circuits"},
    {"attribution", "patching"},
    {"scoring"},
    {"reading", "statistics"},
    {"models"},
    {"stored"},
    {"prompts"},
    {"variants"},
    {"tables", "files", "console", "texts", "options"},
    {"choices", "plugins"},
    {"errors"},
    {"lookalikes", "surface"},
)


def imports(source: str, package: str) -> set[str]:
    """The modules that a source of a package imports, and the names that it takes from them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def package_of(file: Path) -> str:
    folder = file.relative_to(ROOT).parent
    top = folder.parts[0]
    return ".".join([top if top == "interp" else f"interp_{top}", *folder.parts[1:]])


def refused(source: str, part: str, package: str) -> set[str]:
    """What a source of a part of interp imports that is beside or above it.

    The names of `interp` itself are those of its interface, which is above every part.
    """
    floor = next(number for number, parts in enumerate(FLOORS) if part in parts)
    allowed = {part}.union(*FLOORS[floor + 1 :])
    inside = [name.split(".") for name in imports(source, package)]
    return {
        ".".join(names)
        for names in inside
        if names[0] == "interp" and (len(names) == 1 or names[1] not in allowed)
    }


@pytest.mark.parametrize("package", LAYERS)
def test_packages_import_downwards_only(package):
    allowed = LAYERS[package] | {package}
    for file in (ROOT / package.removeprefix("interp_")).rglob("*.py"):
        for module in imports(file.read_text(encoding="utf-8"), package_of(file)):
            top = module.split(".")[0]
            assert top not in LAYERS or top in allowed, f"{file} imports {module}"


def inner(source: str, package: str) -> set[str]:
    """What a source imports from the toolkit that is not public: not from interp or its extend."""
    names = {name for name in imports(source, package) if name.split(".")[0] == "interp"}
    surface = {"interp": interp.__all__, "interp.extend": interp.extend.__all__}
    surface |= {
        f"interp.extend.{name}": thing.__all__
        for name in interp.extend.__all__
        if getattr(thing := getattr(interp.extend, name), "__name__", "") == f"interp.extend.{name}"
    }
    public = {f"{module}.{name}" for module, offered in surface.items() for name in offered}
    return names - public


@pytest.mark.parametrize("package", ["interp_experiments", "interp_probes"])
def test_studies_and_probes_import_public_names_only(package):
    for file in (ROOT / package.removeprefix("interp_")).rglob("*.py"):
        found = inner(file.read_text(encoding="utf-8"), package_of(file))
        assert not found, f"{file} imports {', '.join(sorted(found))}"


@pytest.mark.parametrize(
    ("source", "is_inner"),
    [
        ("from interp.report.page import Section", True),
        ("from interp import jobs", True),
        ("from interp.extend import jobs", True),
        ("from interp.extend.page import html", True),
        ("import interp.report.page", True),
        ("def later():\n    from interp.models.load import load_model", True),
        ("from interp import Prompt", False),
        ("from interp.extend import Study, figures", False),
        ("from interp.extend.figures import lines", False),
        ("from interp_probes.specs import Knowledge", False),
    ],
)
def test_every_form_of_an_import_of_internals_is_refused(source, is_inner):
    assert bool(inner(source, "interp_experiments")) == is_inner


def test_every_name_offered_is_there():
    """Imported anew, each is what stands where the list says, with a docstring if it is code."""
    for name in interp.extend.__all__:
        thing = getattr(interp.extend, name)
        for one in getattr(thing, "__all__", ()):
            assert getattr(thing, one) is not None, f"{name}.{one}"
        assert thing.__doc__, name
    with pytest.raises(AttributeError, match=r"'interp\.extend'.*'nothing'"):
        interp.extend.nothing  # noqa: B018


def test_importing_the_surface_costs_nothing():
    code = (
        "import sys; import interp.extend; from interp.extend import figures, page, statistics; "
        "heavy = {'torch', 'pandas', 'numpy', 'matplotlib', 'pydantic'}; "
        "assert not heavy & set(sys.modules); "
        "from interp.extend import PromptSource, Stage, Study; "
        "assert not {'torch', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("part", sorted(set.union(*FLOORS)))
def test_parts_of_interp_import_downwards_only(part):
    home = ROOT / "interp" / part
    files = list(home.rglob("*.py")) if home.is_dir() else [home.with_suffix(".py")]
    for file in files:
        found = refused(file.read_text(encoding="utf-8"), part, package_of(file))
        assert not found, f"{file} imports {', '.join(sorted(found))}"


@pytest.mark.parametrize(
    ("source", "is_above"),
    [
        ("import interp.studies", True),
        ("from interp import studies", True),
        ("from interp import errors, studies", True),
        ("from interp.studies import Study", True),
        ("def later():\n    from interp import studies", True),
        ("from .. import studies", True),
        ("from ..studies import Study", True),
        ("from interp import evaluate", True),
        ("import interp", True),
        ("from interp import errors, models", False),
        ("from interp.models import load", False),
        ("from . import load", False),
        ("from .load import load_model", False),
        ("from ..errors import UserError", False),
        ("import interpolation", False),
    ],
)
def test_every_form_of_an_import_from_above_is_refused(source, is_above):
    assert bool(refused(source, "models", "interp.models")) == is_above


def test_no_modules_import_each_other():
    """No circle, late imports and those for type checkers counted."""
    graph = {}
    for package in LAYERS:
        for file in (ROOT / package.removeprefix("interp_")).rglob("*.py"):
            parts = [package_of(file)] + ([] if file.stem == "__init__" else [file.stem])
            graph[".".join(parts)] = imports(file.read_text(encoding="utf-8"), package_of(file))
    modules = {
        name: {found for each in names if (found := module_of(each, graph)) != name} - {""}
        for name, names in graph.items()
    }
    try:
        list(TopologicalSorter(modules).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def module_of(name: str, modules) -> str:
    """The module that a name is, or lies in; empty where it is none of these modules."""
    while name not in modules:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return ""
    return name


def test_every_part_of_interp_is_listed():
    parts = {
        path.stem
        for path in (ROOT / "interp").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__", "__main__"} == set.union(*FLOORS)
