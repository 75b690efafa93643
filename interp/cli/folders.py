"""Commands that inspect a folder written by another command, and the runs in such a folder."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interp import texts
from interp.cli.fields import Folder, OptionsCommand
from interp.console import clock, counted, echo
from interp.errors import UserError
from interp.models.loading import Loading
from interp.models.names import ModelChoice, model_choice
from interp.options import Flag, FromText, flag
from interp.prompts.source import Around

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet
    from interp.runs.folder import ModelProgress, RunFolder
    from interp.studies.folder import StudyFolder


class StatusCommand(OptionsCommand):
    """Show the progress of a run or a study: done, running, failed, rate, time left."""

    EXAMPLES = ("status runs/all", "status runs/study")

    folder: Folder
    """folder that a command wrote as --out"""

    def _execute(self) -> None:
        from interp.report.console import print_table
        from interp.runs.folder import progress
        from interp.runs.workers import worker_records
        from interp.studies.folder import runs_in

        models = [
            (name, each) for name, run in runs_in(self.folder).items() for each in progress(run)
        ]
        counts = ("prompts", "done", "failed", "running")
        table = {
            "run": [name for name, _ in models],
            "model": [each.model for _, each in models],
            **{count: [getattr(each, count) for _, each in models] for count in counts},
            "rate": ["" if isnan(each.rate) else f"{each.rate:,.1f}/s" for _, each in models],
            "left": [_time_left(each) for _, each in models],
        }
        print_table(table, title="Prompts by run and model")
        for worker in worker_records(self.folder):
            job = f", job {worker.job}" if worker.job else ""
            where = f"worker {worker.number} (host {worker.host}{job})"
            if worker.finished is None:
                echo(f"{where}: began {worker.started}, no end reported")
            elif worker.error:
                echo(f"{where}: ended {worker.finished}, {worker.error}")


def _time_left(progress: "ModelProgress") -> str:
    """Expected time of completion; empty while no worker is measuring the remaining prompts."""
    if progress.done == progress.prompts:
        return "done"
    return "" if isnan(progress.seconds_left) else clock(progress.seconds_left)


class ValidateCommand(Around, Loading, OptionsCommand):
    """Check the files that a command wrote, or a table of your own pairs or facts."""

    EXAMPLES = (
        "validate runs/all",
        "validate runs/study",
        "validate pairs.csv",
        "validate pairs.csv --model org/model",
        "validate pairs.csv --shots 4 --instruction 'Answer Yes or No.'",
    )

    path: Annotated[Path, FromText(texts.path), Flag("PATH", positional=True)]
    """folder that a command wrote as --out, or a file of pairs or facts"""
    template: Annotated[tuple[str, ...], FromText(texts.template, "TEXT")] = ()
    """phrasings of the pairs, as given to other commands"""
    models: Annotated[
        tuple[ModelChoice, ...], FromText(model_choice, "[NAME=]MODEL"), Flag("model")
    ] = ()
    """models that will read the table: also list what each of them will refuse"""

    def _execute(self) -> None:
        if self.model_fields_set & Loading.model_fields.keys() and not self.models:
            raise UserError("got options for loading a model, but no model; name one with --model")
        asked = [*self.written, *["model"] * bool(self.models)]
        if asked and not self.path.is_file():
            raise UserError(
                f"{self.path} is not a file; omit {', '.join(map(flag, asked))}, which belong to a "
                "table of pairs or facts"
            )
        if self.path.is_file():
            prompts = _check_own(self.path, self.template, self)
            if self.models:
                _check_with(self.models, self, prompts)
        elif self.path.exists():
            _check_folder(self.path)
        else:
            raise UserError(f"there is no file or folder {self.path}; check its name")


def _check_own(file: Path, templates: Sequence[str], around: Around) -> "PromptSet":
    """Reject a faulty table, listing each fault with its line; otherwise show the first prompt."""
    from interp.prompts.files import SHOWN, read_rows
    from interp.prompts.own.facts import read_facts
    from interp.prompts.own.layout import FACTS, PAIR, REQUIRED
    from interp.prompts.own.pairs import faults, read_pairs
    from interp.prompts.prompt_set import counting_notes
    from interp.statistics.clusters import small_sample

    columns = set(read_rows(file, (), others=True)[0].cells)
    if len(columns & set(FACTS)) > 1 and not columns & set(REQUIRED):
        if around.written:
            asked = ", ".join(map(flag, around.written))
            raise UserError(f"facts are asked as they are; omit {asked}")
        facts = read_facts(file)
        echo(f"{file} has no faults: {counted(len(facts), 'fact')}; the first prompt:")
        echo(facts[0].text)
        return facts
    if problems := faults(file, templates=templates):
        raise UserError("\n  ".join([f"{file} has {counted(len(problems), 'fault')}:", *problems]))
    prompts = around.around(read_pairs(file, templates=templates))
    refused = []
    for place in range(len(prompts)):
        try:
            prompts[place]
        except UserError as error:
            refused.append(str(error))
    if refused:
        listed = "\n  ".join(dict.fromkeys(refused[:SHOWN]))
        raise UserError(
            f"{', '.join(map(flag, around.written))}: {len(refused):,} of "
            f"{counted(len(prompts), 'prompt')} cannot be written, the first:\n  {listed}"
        )
    pairs = counted(len({prompt.pair_id for prompt in prompts}), "pair")
    first = prompts[0]
    echo(f"{file} has no faults: {pairs} of {', '.join(prompts.sides)}; the first prompt:")
    echo(first.text)
    echo(f"-> segments: {', '.join(first.segments) or 'none, so only its answer can be measured'}")
    if first.messages.record():
        echo(f"-> messages around it: {', '.join(first.messages.record())}")
    echo(f"-> options: {', '.join(option.name for option in first.answer.options)}")
    echo(f"-> factors: {', '.join(name for name in first.factors if name != PAIR) or 'none'}")
    for note in (
        small_sample((prompt.factors[PAIR] for prompt in prompts), PAIR),
        counting_notes(prompts, PAIR),
    ):
        if note:
            echo(f"-> {note}")
    return prompts


def _check_with(models: Sequence[ModelChoice], loading: Loading, prompts: "PromptSet") -> None:
    """Reject prompts that any of the models will refuse, before anything is measured."""
    from interp.doctor import refusals
    from interp.models.find import find_chosen
    from interp.models.load import load_found
    from interp.prompts.files import SHOWN

    count = counted(len(prompts), "prompt")
    refused: list[str] = []
    for chosen in find_chosen(models, loading):
        model = load_found(chosen, loading.alone())
        if reasons := list(refusals(model, prompts)):
            head = f"{model.name} will refuse {len(reasons):,} of {count}, the first:"
            refused.append("\n  ".join([head, *dict.fromkeys(reasons[:SHOWN])]))
        else:
            echo(f"{model.name} accepts all {count}")
    if refused:
        raise UserError("\n".join(refused))


def _check_folder(folder: Path) -> None:
    """Check the checksums and columns of every shard, and the merged tables."""
    from interp.runs.folder import problems
    from interp.runs.written import unlisted, unsealed
    from interp.studies.folder import runs_in, study_in

    runs, study = runs_in(folder), study_in(folder)
    if study is not None:
        lines = study.faults()
    else:
        lines = [f"{name}: {line}" for name, run in runs.items() for line in problems(run)]
    if lines:
        listed = "\n  ".join([f"{folder} is incomplete:", *lines])
        again = "Rerun the command that wrote it to measure missing or changed parts"
        raise UserError(f"{listed}\n{again}")
    for each in (holder(folder), *runs.values()):
        arguments = each.folder, each.record
        if unchecked := [*unsealed(*arguments), *unlisted(*arguments)]:
            echo(
                f"{each.folder}: not every change of these files can be noticed, because an "
                f"earlier version of interp wrote them without checksums: {', '.join(unchecked)}"
            )
    shards = sum(len(run.shards(model)) for run in runs.values() for model in run.models())
    echo(f"{folder} is complete: {counted(shards, 'shard')} and the merged tables")


def holder(folder: Path) -> "StudyFolder | RunFolder":
    """The study in a folder or, without one, the run in it; a UserError if it holds neither."""
    from interp.studies.folder import runs_in, study_in

    return study_in(folder) or next(iter(runs_in(folder).values()))
