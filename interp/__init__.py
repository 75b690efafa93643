"""Attribution and mechanistic interpretability on reasoning prompts that come in minimal pairs.

The calls that a notebook needs: `load_model`, `load_prompts`, `score`, `attribute`, `patch`,
`train`, and `run`, which does all measurements and studies that the command line does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from interp.api import attribute, measurement, patch, run, score, study, train
    from interp.errors import UserError
    from interp.measurements.spec import Spec
    from interp.measurements.specs import Attribute, Evaluate, Generate, Patch, SoftScore
    from interp.models.load import load_model
    from interp.models.model import Model
    from interp.models.organisms import organism_card, organism_names
    from interp.prompts.answers import AnswerOption, Choice, Completion, FreeText, Label
    from interp.prompts.messages import Demonstration, Messages
    from interp.prompts.own.pairs import read_pairs
    from interp.prompts.prompt import Prompt
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.systems import load_prompts
    from interp.results.answers import Completions, Scores
    from interp.results.attributions import Attributions, SegmentEffects
    from interp.results.patches import Patches
    from interp.results.result import Result
    from interp.studies.folder import StudyFolder

_HOMES = {
    "AnswerOption": "interp.prompts.answers",
    "Attribute": "interp.measurements.specs",
    "Attributions": "interp.results.attributions",
    "Choice": "interp.prompts.answers",
    "Completion": "interp.prompts.answers",
    "Completions": "interp.results.answers",
    "Demonstration": "interp.prompts.messages",
    "Evaluate": "interp.measurements.specs",
    "FreeText": "interp.prompts.answers",
    "Generate": "interp.measurements.specs",
    "Label": "interp.prompts.answers",
    "Messages": "interp.prompts.messages",
    "Model": "interp.models.model",
    "Patch": "interp.measurements.specs",
    "Patches": "interp.results.patches",
    "Prompt": "interp.prompts.prompt",
    "PromptSet": "interp.prompts.prompt_set",
    "Result": "interp.results.result",
    "Scores": "interp.results.answers",
    "SegmentEffects": "interp.results.attributions",
    "SoftScore": "interp.measurements.specs",
    "Spec": "interp.measurements.spec",
    "StudyFolder": "interp.studies.folder",
    "UserError": "interp.errors",
    "attribute": "interp.api",
    "load_model": "interp.models.load",
    "load_prompts": "interp.prompts.systems",
    "measurement": "interp.api",
    "organism_card": "interp.models.organisms",
    "organism_names": "interp.models.organisms",
    "patch": "interp.api",
    "read_pairs": "interp.prompts.own.pairs",
    "run": "interp.api",
    "score": "interp.api",
    "study": "interp.api",
    "train": "interp.api",
}

__all__ = [
    "AnswerOption",
    "Attribute",
    "Attributions",
    "Choice",
    "Completion",
    "Completions",
    "Demonstration",
    "Evaluate",
    "FreeText",
    "Generate",
    "Label",
    "Messages",
    "Model",
    "Patch",
    "Patches",
    "Prompt",
    "PromptSet",
    "Result",
    "Scores",
    "SegmentEffects",
    "SoftScore",
    "Spec",
    "StudyFolder",
    "UserError",
    "attribute",
    "load_model",
    "load_prompts",
    "measurement",
    "organism_card",
    "organism_names",
    "patch",
    "read_pairs",
    "run",
    "score",
    "study",
    "train",
]


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
