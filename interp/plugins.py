"""What other packages add, found by entry point: systems, studies, training, commands, methods."""

from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from interp.errors import UserError, one_line, unknown

OWN_PACKAGES = ("interp", "interp_probes", "interp_experiments")
"""The packages of this project."""

SYSTEMS = "interp.systems"
"""Entry points of this group name an object that follows `interp.prompts.systems.System`."""

STUDIES = "interp.studies"
"""Entry points of this group name subclasses of `interp.studies.plan.Study`."""

MEASUREMENTS = "interp.measurements"
"""Entry points of this group name specs, subclasses of `interp.measurements.spec.Spec`."""

TRAINING = "interp.training"
"""Entry points of this group name subclasses of `interp.training.spec.TrainSpec`."""

COMMANDS = "interp.commands"
"""Entry points of this group name modules with further commands, made like those of interp.cli."""

METHODS = "interp.methods"
"""Entry points of this group name an `interp.attribution.registry.Method`."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name, in alphabetical order; none is loaded."""
    return {point.name: point for point in sorted(entry_points(group=group))}


def load_plugin(group: str, kind: str, name: str, *, base: type | None = None) -> Any:
    """What the entry point of that name gives.

    Args:
        group: of entry points.
        kind: what a message calls it, such as "study".
        name: of the entry point.
        base: the class that it is to name a subclass of, if it is to name a class.

    Raises:
        UserError: none of that name is installed, or it cannot be loaded or is something else.
    """
    points = plugins(group)
    if name not in points:
        raise UserError(unknown(kind, name, points))
    found = loaded(points[name])
    if base is not None and not (isinstance(found, type) and issubclass(found, base)):
        raise misfit(points[name], found, f"a subclass of {base.__module__}.{base.__qualname__}")
    return found


def loaded(point: EntryPoint) -> Any:
    """What an entry point names.

    Raises:
        UserError: it cannot be imported.
    """
    try:
        return point.load()
    # Importing runs a package's code, which may fail in any way.
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(str(error), 300)}"
        raise UserError(
            f"{_described(point)} cannot be loaded ({reason}); reinstall or fix the package"
        ) from error


def named(place: str) -> Any:
    """What a place names, "module:name", imported now."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def misfit(point: EntryPoint, found: object, expected: str) -> UserError:
    """The error of an entry point that names something else than its group is for."""
    return UserError(
        f"{_described(point)} gives {one_line(repr(found))}; expected {expected}; fix the package"
    )


def _described(point: EntryPoint) -> str:
    """An entry point with its group, its value, and the package that has it if that is known."""
    package = f" of the package {point.dist.name}" if point.dist else ""
    return f"the entry point {point.name!r} of {point.group}, {point.value}{package},"
