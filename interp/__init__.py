"""Attribution and mechanistic interpretability on reasoning prompts that come in minimal pairs.

The calls that a notebook needs: `load_model`, `load_prompts`, `score`, `attribute`, `patch`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from interp.api import Attributions, Patches, Scores, attribute, patch, score
    from interp.errors import UserError
    from interp.models.load import load_model
    from interp.models.model import Model
    from interp.prompts.systems import load_prompts

__all__ = [
    "Attributions",
    "Model",
    "Patches",
    "Scores",
    "UserError",
    "attribute",
    "load_model",
    "load_prompts",
    "patch",
    "score",
]

_HOMES = {
    "Attributions": "interp.api",
    "Model": "interp.models.model",
    "Patches": "interp.api",
    "Scores": "interp.api",
    "UserError": "interp.errors",
    "attribute": "interp.api",
    "load_model": "interp.models.load",
    "load_prompts": "interp.prompts.systems",
    "patch": "interp.api",
    "score": "interp.api",
}


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used: torch takes seconds to import."""
    from importlib import import_module

    if name == "__version__":
        return import_module("importlib.metadata").version("interp")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, and what every module has; not the parts that were imported so far."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
