"""Attribution and mechanistic interpretability on reasoning prompts that come in minimal pairs.

Begin with these ten:

    read_pairs     your own pairs, from a file or a data frame
    load_prompts   the prompts of a packaged system
    load_model     a model by its name, folder or file
    evaluate       is the model right?
    effects        which part of the prompt decides the answer?
    attribute      to which part does an attribution method point?
    patch          where inside does the difference become the answer?
    scan           one prompt, from all sides
    write_page     the page about a result
    run            several models, a folder of results, or a study

What reads a model, and where:

    ├── answer        evaluate, soft_score, generate, thoughts
    ├── prompt        attribute (by the methods of `interp methods`), effects
    └── layers        patch, steer, lens, activations, edges, find_circuits, and interp_probes.api
        ├── stream    resid_pre, resid_mid, resid_post; added to it: attn_out, mlp_out
        └── heads     q, k, v, pattern, z
"""

from typing import TYPE_CHECKING

# The only list of public names, for type checkers and for `offered`.
if TYPE_CHECKING:
    __version__: str
    from interp.api import activations as activations
    from interp.api import attribute as attribute
    from interp.api import edges as edges
    from interp.api import effects as effects
    from interp.api import evaluate as evaluate
    from interp.api import faithfulness as faithfulness
    from interp.api import find_circuits as find_circuits
    from interp.api import generate as generate
    from interp.api import lens as lens
    from interp.api import measurement as measurement
    from interp.api import patch as patch
    from interp.api import run as run
    from interp.api import soft_score as soft_score
    from interp.api import steer as steer
    from interp.api import study as study
    from interp.api import thoughts as thoughts
    from interp.api import train as train
    from interp.comparing.result import compare as compare
    from interp.errors import UserError as UserError
    from interp.measurements.activations.show import ActivationVectors as ActivationVectors
    from interp.measurements.answers.show import Completions as Completions
    from interp.measurements.answers.show import Scores as Scores
    from interp.measurements.attribution.show import Attributions as Attributions
    from interp.measurements.circuits.show import CircuitAnswers as CircuitAnswers
    from interp.measurements.edges.show import EdgeEffects as EdgeEffects
    from interp.measurements.effects.show import SegmentEffects as SegmentEffects
    from interp.measurements.lens.show import LensReadings as LensReadings
    from interp.measurements.patching.show import Patches as Patches
    from interp.measurements.specs import Activations as Activations
    from interp.measurements.specs import Attribute as Attribute
    from interp.measurements.specs import Circuits as Circuits
    from interp.measurements.specs import Edges as Edges
    from interp.measurements.specs import Effects as Effects
    from interp.measurements.specs import Evaluate as Evaluate
    from interp.measurements.specs import Generate as Generate
    from interp.measurements.specs import Lens as Lens
    from interp.measurements.specs import Patch as Patch
    from interp.measurements.specs import SoftScore as SoftScore
    from interp.measurements.specs import Steer as Steer
    from interp.measurements.specs import Thoughts as Thoughts
    from interp.measurements.steering.show import Steered as Steered
    from interp.measurements.thoughts.show import ThoughtEffects as ThoughtEffects
    from interp.measuring.spec import Spec as Spec
    from interp.models.load import load_model as load_model
    from interp.models.model import Model as Model
    from interp.models.organisms import organism_card as organism_card
    from interp.models.organisms import organism_names as organism_names
    from interp.prompts.answers import AnswerOption as AnswerOption
    from interp.prompts.answers import Choice as Choice
    from interp.prompts.answers import Completion as Completion
    from interp.prompts.answers import FreeText as FreeText
    from interp.prompts.answers import Label as Label
    from interp.prompts.around import with_messages as with_messages
    from interp.prompts.own.facts import read_facts as read_facts
    from interp.prompts.own.pairs import read_pairs as read_pairs
    from interp.prompts.prompt import Demonstration as Demonstration
    from interp.prompts.prompt import Messages as Messages
    from interp.prompts.prompt import Prompt as Prompt
    from interp.prompts.prompt_set import PromptSet as PromptSet
    from interp.prompts.systems import System as System
    from interp.prompts.systems import load_facts as load_facts
    from interp.prompts.systems import load_prompts as load_prompts
    from interp.report.write import write_page as write_page
    from interp.results.result import Result as Result
    from interp.runs.thoughts import with_thoughts as with_thoughts
    from interp.scanning import scan as scan
    from interp.studies.folder import StudyFolder as StudyFolder
else:
    from interp.surface import offered

    __all__, _offered, __dir__ = offered(__name__, __file__)

    def __getattr__(name):
        """A public name, imported when it is first used, or the version."""
        if name != "__version__":
            return _offered(name)
        from importlib.metadata import version

        return version("interp")
