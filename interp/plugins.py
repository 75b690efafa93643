"""Plugins found by entry point: systems, studies, measurements, methods and others."""

import sys
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

from interp.errors import UserError, described, one_line, unknown

OWN_PACKAGES = ("interp", "interp_probes", "interp_experiments")
"""The Python packages that belong to this project."""

SYSTEMS = "interp.systems"
"""Entry points of this group refer to instances of `interp.prompts.systems.System`."""

STUDIES = "interp.studies"
"""Entry points of this group refer to subclasses of `interp.studies.study.Study`."""

MEASUREMENTS = "interp.measurements"
"""Entry points of this group refer to specs, subclasses of `interp.measuring.spec.Spec`."""

TRAINING = "interp.training"
"""Entry points of this group refer to subclasses of `interp.training.spec.TrainSpec`."""

COMMANDS = "interp.commands"
"""Entry points of this group refer to modules with additional commands, built as in interp.cli."""

METHODS = "interp.methods"
"""Entry points of this group refer to instances of `interp.attribution.registry.Method`."""

EXECUTORS = "interp.executors"
"""Entry points of this group refer to functions that start workers, such as
`interp.runs.workers.start_local`."""

ARCHITECTURES = "interp.architectures"
"""Entry points of this group are named by a model type, and refer to instances of
`interp.models.families.modules.Architecture`."""

FORMATS = "interp.formats"
"""Entry points of this group are named by the suffix of files, and refer to instances of subclasses
of `interp.models.formats.Format`."""

BACKENDS = "interp.backends"
"""Entry points of this group refer to classes of `interp.patching.cells.Backend`s."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, in alphabetical order, without loading them."""
    return {point.name: point for point in sorted(_entry_points(group, tuple(sys.path)))}


@lru_cache
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    """The entry points of a group, which take 10 ms to find, with `path` as sys.path."""
    return entry_points(group=group)


def load_plugin(group: str, kind: str, name: str, *, base: type | None = None) -> Any:
    """Load the object that the entry point with this name refers to.

    `kind` is what messages call it, such as "study"; `base` is its required base class, if any.

    Raises:
        UserError: no plugin of this name is installed, it cannot be loaded, or it is not a `base`.
    """
    points = plugins(group)
    if not isinstance(name, str):
        raise UserError(f"the name of a {kind} is {described(name)}; expected a string")
    if name not in points:
        raise UserError(unknown(kind, name, points))
    plugin = loaded(points[name])
    if base is not None and not (isinstance(plugin, type) and issubclass(plugin, base)):
        raise misfit(points[name], plugin, f"a subclass of {base.__module__}.{base.__qualname__}")
    return plugin


def loaded(point: EntryPoint) -> Any:
    """The object to which an entry point refers; a UserError if it cannot be imported."""
    try:
        return point.load()
    except UserError:  # such as a missing extra
        raise
    # Importing runs a package's code, which may fail in any way.
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(str(error), 300)}"
        raise UserError(
            f"{_described(point)} cannot be loaded ({reason}); reinstall or fix that package"
        ) from error


def named(place: str) -> Any:
    """Import the object at a location, "module:name", or an entire module."""
    module, _, name = place.partition(":")
    imported = import_module(module)
    return getattr(imported, name) if name else imported


def misfit(point: EntryPoint, plugin: object, expected: str) -> UserError:
    """The error for an entry point that refers to the wrong kind of object."""
    return UserError(
        f"{_described(point)} gives {one_line(repr(plugin))}; expected {expected}; fix the package"
    )


def _described(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f"the entry point {point.name!r} of {point.group}, {point.value}{package},"
