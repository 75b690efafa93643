"""What other packages add, found by entry point: systems, studies, training, commands, methods."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from interp.errors import UserError, unknown

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


def load_plugin(group: str, kind: str, name: str) -> Any:
    """What the entry point of that name gives.

    Args:
        group: of entry points.
        kind: what a message calls it, such as "study".
        name: of the entry point.

    Raises:
        UserError: none of that name is installed.
    """
    points = plugins(group)
    if name not in points:
        raise UserError(unknown(kind, name, points))
    return points[name].load()
