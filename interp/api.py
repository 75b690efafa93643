"""Functions for notebooks: they measure prompts and return tables, in memory or in a folder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import cleandoc, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pandas as pd
from pydantic import InstanceOf, JsonValue

from interp.console import echo
from interp.errors import UserError, described, one_line, shortened, unknown
from interp.jobs import Job, finish_study
from interp.measurements import specs
from interp.measurements.activations.show import ActivationVectors
from interp.measurements.answers.show import Completions, Scores
from interp.measurements.attribution.show import Attributions
from interp.measurements.edges.show import EdgeEffects
from interp.measurements.effects.show import SegmentEffects
from interp.measurements.lens.show import LensReadings
from interp.measurements.patching.show import Patches
from interp.measurements.steering.show import Steered
from interp.measurements.thoughts.show import ThoughtEffects
from interp.measuring.core import bind, collect
from interp.measuring.spec import Spec, facts_of, spec_named
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.names import ModelChoice, chosen
from interp.options import Options, with_options_of
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet, check_kinds
from interp.prompts.source import Around, PromptSource
from interp.prompts.systems import tell_counting
from interp.results.files import finish
from interp.results.measured import InMemory
from interp.results.result import Result, result_class
from interp.runs.options import INLINE, ComputeOptions, ExecutionOptions
from interp.runs.plan import load_for_run
from interp.studies.folder import StudyFolder
from interp.studies.study import Study, find_study
from interp.training.folder import TrainRecord
from interp.training.spec import CheckpointOptions, TrainSpec

if TYPE_CHECKING:
    from interp.measurements.circuits.show import CircuitAnswers

P = ParamSpec("P")
R = TypeVar("R")
_Kind = TypeVar("_Kind", bound=Result)


def run(
    what: Spec | Study,
    *,
    models: Model | str | Sequence[Model | str],
    prompts: Sequence[Prompt] | None = None,
    **options: Any,
) -> Result | StudyFolder:
    """Measure one or more models, with every option of the command line.

    Args:
        what: a measurement, such as `Attribute(methods=("attention",))` or
            `measurement("probe-linear")`, or a `study`.
        models: models from `load_model`, or names (or "NAME=PATH"), which are loaded one at a
            time.
        prompts: prompts from `load_prompts`, or any sequence of prompts, for a measurement or for
            the study faithfulness. By default, prompts are loaded according to the options of
            `PromptSource`: system, data, limit, seed, template, shots, shots_seed, instruction,
            answer_prefix.
        options: the options of `PromptSource`, `Loading` (dtype, device ...), `ComputeOptions`
            (batch_tokens ...) and `ExecutionOptions` (out, executor, workers ...), named like the
            flags. With `out`, results are written to a run folder, and repeating the call resumes
            the run; without `out`, the results of a measurement are kept in memory. For workers in
            other processes, pass model names and no prompts.

    Returns:
        One result over all models; for a study, its folder, which contains a report.

    Raises:
        UserError: an option is unknown or has an invalid value, or models or prompts cannot be
            found, loaded or measured.
    """
    _check_what(what)
    settings = what.with_thinking(options) if isinstance(what, Spec) else options
    source, loading, computing, execution = _parted(
        settings, PromptSource, Loading, ComputeOptions, ExecutionOptions
    )
    all_models = _models(models)
    if loading.ranks > 1 and any(isinstance(model, Model) for model in all_models):
        raise UserError(
            f"got tensor_parallel {loading.ranks} and a loaded model, which this process holds by "
            "itself; pass the model's name"
        )
    if prompts is not None:
        _check_prompts(prompts)
        _check_source(what, source)
        source = _Held(prompts=PromptSet.of(prompts))
    job = Job(
        what=what,
        models=tuple(model for model in all_models if not isinstance(model, Model)),
        prompts=source,
        loading=loading,
        computing=computing,
    )
    if isinstance(what, Spec) and execution.out is None:
        if execution != ExecutionOptions():
            raise UserError(
                "without a folder (out=...), results stay in memory and everything is measured in "
                "this process; pass out=FOLDER to use workers or to retry errors"
            )
        arranged = what.prompts_of(source) if prompts is None else what.arranged(prompts)
        return _in_memory(what.fitted(arranged), job, all_models, arranged)
    starts = loading.ranks > 1 or execution.executor != INLINE
    others = f"the {execution.executor} executor" if loading.ranks == 1 else "tensor_parallel"
    if starts and (len(job.models) < len(all_models) or prompts is not None):
        raise UserError(
            f"{others} starts other processes, which cannot access the models and prompts of this "
            "process; pass model names, and a system with its options"
        )
    chosen_prompts = None if prompts is None else PromptSet.of(prompts)
    plan, runs = job.run(execution, models=all_models, prompts=chosen_prompts)
    if isinstance(what, Spec):
        return finish(plan.folder, type(what))
    from interp.report.write import files_of, write_report  # importing matplotlib is slow

    finish_study(plan, runs)
    study = StudyFolder.read(plan.folder)
    report = what.report(study)
    write_report(report, plan.folder)
    study.note_report(files_of(report, plan.folder))
    return StudyFolder.read(plan.folder)


def measurement(name: str, **options: Any) -> Spec:
    """The measurement with this name, for `run`: from interp, its probes or another package.

    Args:
        name: such as "effects", "probe-familiarity", "probe-knowledge" or "probe-linear".
        options: the measurement's own options, named like the flags.

    Raises:
        UserError: there is no such measurement, or the measurement has no such options.
    """
    return spec_named(name)(**options)


def study(name: str, **options: Any) -> Study:
    """The study with this name, for `run`: several measurements and one report.

    Args:
        name: such as "rulebreakers" or "faithfulness".
        options: the study's own options, named like the flags.

    Raises:
        UserError: there is no such study, or the study has no such options.
    """
    return find_study(name)(**options)


def api_call(spec: type[Spec]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Complete the signature and docstring of a function that measures one model on prompts."""

    def documented(call: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(call).parameters

        @wraps(call)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            for name in options:
                # The measurement itself rejects options that no call takes.
                taken = next((t for kind, t in _TAKEN_BY.items() if name in kind.model_fields), "")
                if taken and name not in parameters and name not in spec.model_fields:
                    taken = taken.format(name)
                    raise UserError(f"interp.{call.__name__} has no option {name!r}; {taken}")
            return call(*arguments, **options)

        checked.__doc__ = f"{call.__doc__}\n\n{_ARGUMENTS}"
        return with_options_of(spec)(checked)

    return documented


def call_of(spec: type[Spec], kind: type[_Kind], *, module: str = __name__) -> Callable[..., _Kind]:
    """The function of a measurement in a module, named and documented like its spec.

    `kind` is the class of the result, as specified in the spec.
    """

    def call(
        model: Model, prompts: Sequence[Prompt], *, batch_tokens: int | None = None, **options: Any
    ) -> _Kind:
        return measured_in_memory(kind, spec(**options), model, prompts, batch_tokens)

    call.__name__ = call.__qualname__ = spec.name.replace("-", "_")
    call.__module__, call.__doc__ = module, cleandoc(spec.__doc__ or "")
    return api_call(spec)(call)


_TAKEN_BY: Mapping[type[Options], str] = {
    Around: "interp.with_messages(prompts, {}=...) writes it around the prompts",
    PromptSource: "interp.load_prompts and interp.read_pairs choose the prompts",
    Loading: "interp.load_model(name, {}=...) takes it",
    ComputeOptions: "interp.run(interp.measurement(...), {}=...) takes it",
    ExecutionOptions: "interp.run(interp.measurement(...), {}=...) takes it",
}
"""What takes the options that belong to no measurement: the first class that has an option."""


_ARGUMENTS = """Args:
    model: from `load_model`, or `Model(name, hf, tokenizer)`.
    prompts: from `load_prompts`, or any sequence of prompts.
    batch_tokens: token budget of a batch, including padding.
    **options: the options of the measurement.

Raises:
    UserError: the model, the prompts or a choice is invalid, there are no prompts, ids are not
        unique, the model cannot read a prompt, or two answers have the same first token.
"""


def faithfulness(
    model: Model | str,
    prompts: Sequence[Prompt],
    *,
    scores: Mapping[str, pd.DataFrame | Path | str] | None = None,
    **options: Any,
) -> StudyFolder:
    """The study that judges attribution methods, and scores of other tools, by exact effects.

    Args:
        model: from `load_model`, or a model's name.
        prompts: from `load_prompts`, or any sequence of prompts.
        scores: data frames or files of scores, by the names under which they are judged, with
            the columns of the page "Faithfulness".
        options: the options of the study (methods, segments, reinitialized, answers) and of `run`,
            such as `out`, by default a folder in runs/.

    Returns:
        The study's folder; `table("verdicts")` has the verdicts.

    Raises:
        UserError: as `run`, or scores cannot be read or fit no prompt.
    """
    from interp.judging.study import Faithfulness
    from interp.stored.text_file import TextFile

    by_name = {} if scores is None else scores
    if not isinstance(by_name, Mapping):
        raise UserError(f"scores is {described(by_name)}; expected {{name: data frame or file}}")
    fields = {name: options.pop(name) for name in Faithfulness.model_fields if name in options}
    with TemporaryDirectory() as place:
        files = tuple(
            TextFile(name=name, file=_file_of(table, Path(place) / f"{number}.parquet"))
            for number, (name, table) in enumerate(by_name.items())
        )
        folder = run(Faithfulness(scores=files, **fields), models=model, prompts=prompts, **options)
    assert isinstance(folder, StudyFolder)
    return folder


def _file_of(scores: object, file: Path) -> Path:
    """The file of scores, which is written if they are a data frame."""
    if isinstance(scores, str | Path):
        return Path(scores)
    if not isinstance(scores, pd.DataFrame):
        raise UserError(f"scores are {described(scores)}; expected a data frame or a file")
    floats = [name for name in scores if pd.api.types.is_float_dtype(scores[name])]
    try:
        # Numbers of 32 bits would be read as the decimals that stand for them.
        scores.astype(dict.fromkeys(floats, float)).to_parquet(file, index=False)
    # Such as a column of numbers and texts, complex numbers, or numbers of more than 64 bits.
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        raise UserError(f"cannot read scores: {one_line(str(error))}") from error
    return file


def train(spec: TrainSpec, *, model: str, **options: Any) -> TrainRecord:
    """Train a model, with every option of the command line.

    Args:
        spec: a training task with its options.
        model: hub name, local folder or organism/NAME; to train from scratch, also a folder without
            weights, or a built-in configuration such as "small-encoder".
        options: the options of `Loading` (device, revision ...) and `CheckpointOptions` (out,
            checkpoint_steps, threads), named like the flags. Repeating the call resumes the run.

    Returns:
        The record of the finished run, with the scores on the held-out splits. The model is in the
        folder `out`.

    Raises:
        UserError: an option is unknown or has an invalid value, the model or prompts cannot be
            found or loaded, or the folder contains something other than this run.
    """
    if not isinstance(spec, TrainSpec) or not isinstance(model, str):
        raise UserError(
            f"got {described(spec, 60)} and the model {described(model, 60)}; expected a training "
            "task, such as interp.training.spec.find_training('irft')(), and the name of a model"
        )
    # This imports Hugging Face's Trainer, peft and bitsandbytes.
    from interp.training.run import Training

    loading, kept = _parted(options, Loading, CheckpointOptions)
    return Training(spec, model, loading).run(kept)


evaluate = call_of(specs.Evaluate, Scores)
soft_score = call_of(specs.SoftScore, Scores)
attribute = call_of(specs.Attribute, Attributions)
patch = call_of(specs.Patch, Patches)
steer = call_of(specs.Steer, Steered)
edges = call_of(specs.Edges, EdgeEffects)
effects = call_of(specs.Effects, SegmentEffects)
generate = call_of(specs.Generate, Completions)
thoughts = call_of(specs.Thoughts, ThoughtEffects)
activations = call_of(specs.Activations, ActivationVectors)
lens = call_of(specs.Lens, LensReadings)


@api_call(specs.Circuits)
def find_circuits(
    model: Model,
    prompts: Sequence[Prompt],
    *,
    effects: EdgeEffects | None = None,
    batch_tokens: int | None = None,
    **options: Any,
) -> "CircuitAnswers":
    """The answers of a model restricted to the edges of circuits.

    The circuits are chosen by the effects in `effects` (a result of `edges` on any prompts of the
    system) or in the run folder `edges`. Without either, the edges are first measured on these
    prompts.
    """
    from interp.measurements.circuits.measure import circuits_by
    from interp.measurements.circuits.show import CircuitAnswers
    from interp.runs.edge_effects import EdgesRun

    _check_model(model)
    _check_prompts(prompts)
    spec = specs.Circuits(**options)
    if spec.edges is not None and effects is not None:
        raise UserError("got both effects and edges; omit one of them")
    if not isinstance(effects, EdgeEffects | None):
        raise UserError(f"effects is {described(effects)}; expected the result of interp.edges")
    arranged = spec.arranged(prompts)
    if spec.edges is None:
        measured = effects or measured_in_memory(
            EdgeEffects, spec.first(), model, prompts, batch_tokens
        )
        chosen_by = measured.of_model(model.name, factor=spec.split)
    else:
        chosen_by = EdgesRun.read(spec.edges).effects(model.name, factor=spec.split)
    tables = collect(circuits_by(chosen_by, model, spec, batch_tokens=batch_tokens), arranged)
    facts = {model.name: facts_of(model, arranged, spec)}
    return _noted(CircuitAnswers(InMemory(spec, arranged, tables, facts), chosen_by))


def measured_in_memory(
    kind: type[_Kind],
    spec: Spec,
    model: Model,
    prompts: Sequence[Prompt],
    batch_tokens: int | None = None,
    *,
    noted: bool = True,
) -> _Kind:
    """Measure one loaded model in memory, and return the result, of the spec's class `kind`.

    If `noted`, lines about problems are printed. The token budget of a batch includes padding.

    Raises:
        UserError: in the same cases as `evaluate`.
    """
    _check_model(model)
    _check_prompts(prompts)
    if noted:
        tell_counting(prompts)
    arranged = spec.arranged(prompts)
    spec = spec.fitted(arranged)
    tables = collect(bind(spec, model, batch_tokens=batch_tokens), arranged)
    facts = {model.name: facts_of(model, arranged, spec)}
    result = kind(InMemory(spec, arranged, tables, facts))
    return _noted(result) if noted else result


def _in_memory(
    spec: Spec, job: Job, models: Sequence[Model | ModelChoice], prompts: Sequence[Prompt]
) -> Result:
    """The result over all models of a job, with one model in memory at a time."""
    tell_counting(prompts)
    parts, facts = [], {}
    for found in job.found_models(models).values():
        model = (
            found
            if isinstance(found, Model)
            else load_for_run(
                found, job.loading, job.computing, prompts=prompts, weights=spec.needs_weights
            )
        )
        parts.append(collect(bind(spec, model, batch_tokens=job.computing.batch_tokens), prompts))
        facts[model.name] = facts_of(model, prompts, spec)
    joined = {
        name: pd.concat([part[name] for part in parts], ignore_index=True) for name in parts[0]
    }
    return _noted(result_class(type(spec))(InMemory(spec, prompts, joined, facts)))


def _noted(result: _Kind) -> _Kind:
    """Return the result, after printing lines about problems that its tables do not show."""
    result.noted()
    for caution in result.cautions:
        if caution.model:
            echo(caution.said)
    return result


def _parted(options: Mapping[str, Any], *kinds: type[Options]) -> Iterator[Any]:
    """One instance of each class of options, made from the options that belong to the class."""
    fields = [name for kind in kinds for name in kind.model_fields]
    for name in options:
        if name not in fields:
            raise UserError(unknown("option", name, fields))
    for kind in kinds:
        yield kind(**{name: options[name] for name in kind.model_fields if name in options})


def _check_what(what: object) -> None:
    """Reject arguments that would fail much later, such as a measurement's name alone."""
    if not isinstance(what, Spec | Study):
        name = shortened(what) if isinstance(what, str) else "attribute"
        raise UserError(
            f"got {described(what)} to run; expected a measurement or a study, such as "
            f"interp.measurement({name!r}) or interp.study('faithfulness')"
        )


def _models(models: Any) -> list[Model | ModelChoice]:
    """The models of a run as a list, from one model or several."""
    alone = isinstance(models, str) or not isinstance(models, Sequence)
    several = [models] if alone else models
    if not several:
        raise UserError("models is empty; expected at least one model")
    for model in several:
        if not isinstance(model, Model | str):
            raise UserError(
                f"models contains {described(model)}; expected names, such as "
                "'organism/llama-shallow', or models from interp.load_model"
            )
    return [chosen(model) if isinstance(model, str) else model for model in several]


def _check_model(model: object) -> None:
    if not isinstance(model, Model):
        raise UserError(
            f"model is {described(model)}; expected a Model, as returned by interp.load_model"
        )


def _check_prompts(prompts: Sequence[Prompt]) -> None:
    """Reject prompts that would fail much later, or be silently measured wrongly."""
    if not check_kinds(prompts):
        raise UserError("there are no prompts; expected at least one")
    PromptSet.of(prompts).check_names()


class _Held(PromptSource):
    """Prompts in memory, from which a study draws none."""

    prompts: InstanceOf[PromptSet]

    def whole(self) -> PromptSet:
        return self.prompts

    def pairs(self, default: int | None) -> int | None:
        return None

    def drawn(self, prompts: PromptSet, default: int | None) -> PromptSet:
        return self.prompts

    def as_json(self) -> dict[str, JsonValue]:
        return {"prompts": self.prompts.content_hash()}


def _check_source(what: Spec | Study, source: PromptSource) -> None:
    """Reject prompts that are passed together with options for loading prompts."""
    if isinstance(what, Study) and not what.any_system:
        raise UserError(
            f"got prompts, but the study {what.name} loads its own; omit them, and select "
            "prompts by data, limit and seed"
        )
    if source.model_fields_set:
        names = ", ".join(sorted(source.model_fields_set))
        raise UserError(
            f"got both prompts and {names}; omit one of them: prompts are measured unchanged, "
            f"whereas {names} selects prompts to load"
        )
