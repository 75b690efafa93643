"""Jobs: measurements and their models, from the command line, a YAML file or Python.

A job is data, and is passed to workers in other processes as JSON.
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BeforeValidator, InstanceOf, JsonValue, PlainSerializer, ValidationError

from interp.analysis.accuracy import notes_without_answer
from interp.choices import OWN_PAIRS
from interp.console import counted, echo
from interp.errors import UserError, fault_of, shortened
from interp.files import inside, is_plain
from interp.measuring.spec import Spec, Stage, spec_named
from interp.models.find import FoundModel, check_base, find_model
from interp.models.load import check_on_hub
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.names import ModelChoice, is_local, model_choice, names_of, short_name
from interp.models.organisms import default_organism, organism_names
from interp.models.weights import check_device
from interp.options import FromText, Options
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.prompts.systems import FACT_SIDE, dependence_factor, tell_counting
from interp.runs.execute import execute
from interp.runs.folder import RECORD as RUN
from interp.runs.folder import RunFolder, progress
from interp.runs.options import INLINE, ComputeOptions, ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import Run, check_takes
from interp.statistics.clusters import small_sample
from interp.studies.folder import RECORD as STUDY
from interp.studies.folder import StudyFolder
from interp.studies.plan import StudyPlan
from interp.studies.study import Study, find_study


def _as_data(what: Spec | Study) -> dict[str, JsonValue]:
    return {"kind": _kind(what), "name": what.name, "options": what.as_json()}


def _of_data(data: object) -> object:
    match data:
        case {"kind": "measurement", "name": str(name), "options": dict(options)}:
            return spec_named(name).model_validate(options)
        case {"kind": "study", "name": str(name), "options": dict(options)}:
            return find_study(name).model_validate(options)
    return data


def _kind(what: Spec | Study) -> str:
    return "measurement" if isinstance(what, Spec) else "study"


class Job(Options):
    """A measurement or study, its models, and its options."""

    what: Annotated[
        InstanceOf[Spec] | InstanceOf[Study], BeforeValidator(_of_data), PlainSerializer(_as_data)
    ]
    """The measurement or the study."""
    models: tuple[Annotated[ModelChoice, FromText(model_choice)], ...] = ()
    """The models; if empty, the packaged organisms that match the prompts."""
    prompts: PromptSource = PromptSource()
    loading: Loading = Loading()
    computing: ComputeOptions = ComputeOptions()

    @classmethod
    def of_json(cls, text: str) -> "Job":
        """Read a job that another process wrote as JSON; a UserError if it is none."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise UserError(f"{shortened(text)} is not a job: {fault_of(error)}") from None

    def run(
        self,
        execution: ExecutionOptions,
        *,
        command: str | None = None,
        models: Sequence[Model | ModelChoice] = (),
        prompts: PromptSet | None = None,
    ) -> tuple[RunPlan, list[Run]]:
        """Measure everything, in this process or by workers that receive the job.

        Models, some of which may be loaded, and prompts are by default those of the job; the
        command line is for the record.
        """
        self.check(execution)
        plan = self.plan(execution.out, command=command, models=models, prompts=prompts)
        for folder, stage in plan.stages.items():
            what = f"{stage.prompts.system}{drawn_pairs(stage.prompts)}"
            echo(f"{counted(len(stage.prompts), 'prompt')} of {what}, results in {folder}")
        # The other stages of a study may need only a few prompts, such as examples to show.
        first = next(iter(plan.stages.values())).prompts
        for note in filter(None, (_small_sample(first), _no_more_clusters(first))):
            echo(note)
        tell_counting(first)
        # Workers must use the same names, whatever a folder contains when they start.
        unloaded = [model for model in plan.models.values() if not isinstance(model, Model)]
        named = tuple(ModelChoice(place=model.place, name=model.name) for model in unloaded)
        job = self.model_copy(update={"models": named})
        return plan, execute(plan, execution, job=job.model_dump_json())

    def plan(
        self,
        folder: Path | None = None,
        *,
        command: str | None = None,
        models: Sequence[Model | ModelChoice] = (),
        prompts: PromptSet | None = None,
    ) -> RunPlan:
        """The plan of what to measure, and the folder for results (by default in runs/)."""
        what = self.what
        folder = folder or self._default_folder()
        common: dict[str, Any] = {
            "folder": folder,
            "models": self.found_models(models, folder=folder),
            "loading": self.loading,
            "computing": self.computing,
            "command": command,
        }
        if prompts is None:
            whose = f"the study {what.name}" if isinstance(what, Study) else self.prompts.system
            echo(f"reading the prompts of {whose} ...")
        if isinstance(what, Study):
            plan: RunPlan = StudyPlan.of(what, self.prompts, **common)
        else:
            arranged = what.prompts_of(self.prompts) if prompts is None else what.arranged(prompts)
            plan = RunPlan(
                stages={folder: Stage(what.name, arranged, what.fitted(arranged))}, **common
            )
        if self.loading.ranks > 1:
            _check_spread(plan)
        return plan

    def found_models(
        self, models: Sequence[Model | ModelChoice] = (), *, folder: Path | None = None
    ) -> dict[str, FoundModel | Model]:
        """The models by name (by default, those of the job), found before any long computation.

        Models keep the names that they have in a folder for results.

        Raises:
            UserError: a model is named twice, cannot be found or is incomplete, or a server is to
                run a model that is not from the hub.
        """
        chosen = models or self.models or self._default_models()
        recorded = {} if folder is None else recorded_names(folder)
        names = names_of([_choice_of(model) for model in chosen], recorded)
        if not all(isinstance(model, Model) for model in chosen):
            echo(f"reading {', '.join(names)} ...")
        by_name = {
            name: _called(model, name)
            if isinstance(model, Model)
            else find_model(model.place, self.loading, named=name)
            for name, model in zip(names, chosen, strict=True)
        }
        check_base([one for one in by_name.values() if isinstance(one, FoundModel)], self.loading)
        if isinstance(self.what, Spec) and self.what.needs_hub:
            for model in by_name.values():
                check_on_hub(model)
        return by_name

    def _default_models(self) -> list[ModelChoice]:
        """The packaged organisms that are measured if no model is named."""
        if not isinstance(self.what, Study):
            return [ModelChoice(place=default_organism(self.prompts.system))]
        systems = self.what.organisms_for(self.prompts)
        if names := organism_names(*systems):
            return [ModelChoice(place=name) for name in names]
        raise UserError(
            f"there is no packaged organism for {' or '.join(systems)}; name a model with --model"
        )

    def check(self, execution: ExecutionOptions) -> None:
        """Reject options that contradict each other, and a folder with other files, at once."""
        what, source, device = self.what, self.prompts, self.loading.device
        if execution.out is not None:
            check_takes(execution.out, STUDY if isinstance(what, Study) else RUN)
        if isinstance(what, Study) and not what.any_system and "system" in source.model_fields_set:
            raise UserError(
                f"the study {what.name} loads its own prompts, but got the system "
                f"{source.system!r}; omit the system, or run a study that accepts any system, "
                "such as faithfulness"
            )
        if execution.slurm_options and execution.executor != "slurm":
            raise UserError("got slurm_options without the slurm executor")
        if execution.executor == "local" and re.search(r":\d", device or ""):
            raise UserError(
                f"got the device {device}, but the local executor assigns a device to each "
                "worker; use cuda or cpu, or omit the option"
            )
        if execution.executor == INLINE:
            if execution.workers not in (None, 1):
                raise UserError(
                    f"{execution.workers} workers require the local or slurm executor; otherwise "
                    "everything is measured in this process"
                )
            # Other executors may start workers on machines with other devices.
            if device is not None:
                check_device(device)

    def _default_folder(self) -> Path:
        kind, name = _kind(self.what), self.what.name
        options = what.identity() if isinstance(what := self.what, Study) else what.as_json()
        identity = [kind, options, self.prompts.as_json()]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]
        subject = f"-{self.prompts.system}" if kind == "measurement" else ""
        pairs = f"-{self.prompts.limit}" if self.prompts.limit else ""
        return Path("runs") / f"{name}{subject}{pairs}-{digest}"


def _check_spread(plan: RunPlan) -> None:
    """Reject what cannot be measured on models that are spread over processes."""
    ranks = plan.loading.ranks
    for stage in plan.stages.values():
        if what := stage.spec.whole_layers():
            study = f" of the stage {stage.name}" if len(plan.stages) > 1 else ""
            raise UserError(
                f"{what}{study} needs whole layers, but with tensor_parallel {ranks} each process "
                "has only some of the heads; omit tensor_parallel, for instance with --device-map "
                "auto. Answers, effects, generated text, gradients, and patches and vectors of "
                "resid_pre, resid_mid, resid_post, attn_out and mlp_out are measured in this way"
            )


def _small_sample(prompts: PromptSet) -> str:
    """A note if the prompts form too few independent units for any test; otherwise empty."""
    factor = dependence_factor(prompts.system)
    clusters = (prompt.factors.get(factor or "", prompt.pair_id) for prompt in prompts)
    return small_sample(clusters, "fact" if FACT_SIDE in prompts.sides else factor or "pair")


_NEARLY_ALL = 0.9
"""Share of a sample's clusters that count as about all."""


def _no_more_clusters(prompts: PromptSet) -> str:
    """A note if half of the pairs that a limit draws have about as many clusters as all of them."""
    factor = dependence_factor(prompts.system)
    if factor is None or "spread_seed" not in prompts.description:
        return ""
    cluster_of = {prompt.pair_id: prompt.factors.get(factor) for prompt in prompts}
    clusters, pairs = len(set(cluster_of.values())), len(cluster_of)
    if 2 * clusters > pairs:
        return ""  # without drawing: each pair has a cluster of its own, or nearly
    every, growing = prompts.clusters_drawn(factor)
    drawn = enumerate(growing, 1)
    fewest, few = next(step for step in drawn if step[1] >= _NEARLY_ALL * clusters)
    if 2 * fewest > pairs:
        return ""
    more = next((limit for limit, count in drawn if count > clusters), None)
    further = f"--limit {more} is the first with more" if more else "a limit cannot raise that"
    return (
        f"--limit {fewest} has {few:,} of the {clusters:,} clusters (values of {factor}) of these "
        f"{pairs:,} pairs; intervals and tests are over clusters, so the further pairs narrow them "
        f"little. The data have {every:,}; {further}"
    )


_NAMED = 10
"""Number of drawn pairs that are named."""


def drawn_pairs(prompts: PromptSet) -> str:
    """Which of the user's own pairs are measured, if a limit has drawn some of them."""
    seed = prompts.description.get("spread_seed")
    if prompts.system != OWN_PAIRS or seed is None:
        return ""
    pairs = list(dict.fromkeys(prompt.pair_id for prompt in prompts))
    listed = ", ".join(shortened(pair, 30) for pair in pairs[:_NAMED])
    return f" (pairs drawn at random by seed {seed}: {listed}{', ...' * (len(pairs) > _NAMED)})"


def _choice_of(model: Model | ModelChoice) -> ModelChoice:
    """A model as a user would ask for it; a loaded model keeps a name that is not the default."""
    if isinstance(model, ModelChoice):
        return model
    place = model.source.get("name", "")
    return ModelChoice(place=place, name="" if model.name == short_name(place) else model.name)


def _called(model: Model, name: str) -> Model:
    return model if model.name == name else replace(model, name=name)


def recorded_names(folder: Path) -> dict[str, str]:
    """The names of the models that a run or study has measured, by their absolute places.

    The name of a folder that no longer exists is free for the folder to which it was moved.
    """
    if is_plain(inside(folder, RUN)):
        places = RunFolder.read(folder).places()
    elif is_plain(inside(folder, STUDY)):
        places = StudyFolder.read(folder).places()
    else:
        return {}
    return {
        place: name
        for name, place in places.items()
        if place and (not os.path.isabs(place) or is_local(place))  # noqa: PTH117
    }


def finish_study(plan: RunPlan, runs: Sequence[Run]) -> None:
    """Merge the tables of a study's runs, and print problems that the tables do not show."""
    if isinstance(plan, StudyPlan):
        plan.finish(runs)
    answers = [
        run.table("answers", ["model", "answer", "error"])
        for run in runs
        if "answers" in run.tables() and plan.stages[run.folder].spec.own_answers
    ]
    # One line per model: the stages of a study ask the same models much the same prompts.
    for note in (
        notes_without_answer(pd.concat(answers, ignore_index=True), said=()) if answers else ()
    ):
        echo(note)
    for run in runs:
        for done in progress(run):
            if done.failed:
                failed = counted(done.failed, "prompt")
                echo(f"{run.folder.name}: {failed} of {done.model} failed")
