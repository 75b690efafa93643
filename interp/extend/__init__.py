"""What studies, systems, measurements and other plugins are made of, for packages of your own.

The studies of papers and the probes that come with interp import it by `interp` and by this module
alone, and so can yours. For whom which names are::

    a system          compose, placed, Outline, Span, Donor; `prompts`: kinds of answers, facts;
                      `data`: files that may be hostile
    a study           Study, Stage, PromptSource, RunFolder, InFolder; `results`: what measurements
                      found; `estimates`, `statistics`: numbers with intervals; `figures`, `page`,
                      `cautions`: what readers see
    a measurement     Measurement, PromptRows, bind, collect, call_of, MeasureGroup; `measuring`
    training          TrainSpec; `training`: fitting, adapters, folders and cards of models
    plugged in        Method, TokenScores, SegmentScores (attribution); Architecture (a family of
                      models); Format, Contents (of weights); Backend, PatchedMetrics (patching);
                      WorkerCommand, ExecutionOptions (executors)
    options, errors   Options, FromText, texts; shortened, one_line, unknown, counted, for messages

`interp.plugins` lists the groups of entry points by which they are found.

Promise: until version 1.0, a name here or in one of its modules goes away or changes its meaning
only in a release whose changelog says so and what to write instead. Everything that can be
imported from elsewhere in interp may change at any time.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp import texts as texts
    from interp.api import call_of as call_of
    from interp.attribution.method import SegmentScores as SegmentScores
    from interp.attribution.method import TokenScores as TokenScores
    from interp.attribution.registry import Method as Method
    from interp.cli.measure import MeasureGroup as MeasureGroup
    from interp.console import counted as counted
    from interp.errors import one_line as one_line
    from interp.errors import shortened as shortened
    from interp.errors import unknown as unknown
    from interp.extend import cautions as cautions
    from interp.extend import data as data
    from interp.extend import estimates as estimates
    from interp.extend import figures as figures
    from interp.extend import measuring as measuring
    from interp.extend import page as page
    from interp.extend import prompts as prompts
    from interp.extend import results as results
    from interp.extend import statistics as statistics
    from interp.extend import training as training
    from interp.measuring.core import Measurement as Measurement
    from interp.measuring.core import PromptRows as PromptRows
    from interp.measuring.core import bind as bind
    from interp.measuring.core import collect as collect
    from interp.measuring.spec import Stage as Stage
    from interp.models.families.modules import Architecture as Architecture
    from interp.models.formats import Contents as Contents
    from interp.models.formats import Format as Format
    from interp.options import FromText as FromText
    from interp.options import Options as Options
    from interp.patching.cells import Backend as Backend
    from interp.patching.cells import PatchedMetrics as PatchedMetrics
    from interp.prompts.prompt import Donor as Donor
    from interp.prompts.prompt import compose as compose
    from interp.prompts.prompt import placed as placed
    from interp.prompts.prompt_set import Outline as Outline
    from interp.prompts.source import PromptSource as PromptSource
    from interp.prompts.systems import find_system as find_system
    from interp.prompts.thought import Span as Span
    from interp.results.measured import InFolder as InFolder
    from interp.runs.folder import RunFolder as RunFolder
    from interp.runs.options import ExecutionOptions as ExecutionOptions
    from interp.runs.workers import WorkerCommand as WorkerCommand
    from interp.studies.study import Study as Study
    from interp.training.spec import TrainSpec as TrainSpec
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)
