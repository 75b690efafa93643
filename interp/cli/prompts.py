"""Commands that write data sets, and prompts or answers for other libraries."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from interp import texts
from interp.cli.fields import OptionsCommand
from interp.console import counted, echo
from interp.errors import UserError
from interp.options import Flag, FromText, flag
from interp.prompts.source import PromptSource, Seed

if TYPE_CHECKING:
    from interp.prompts.prompt_set import PromptSet


class DatasetCommand(OptionsCommand):
    """Write a system's generated data set as Parquet, CSV or JSONL."""

    EXAMPLES = (
        "dataset rulebreakers --out rulebreakers.parquet",
        "dataset rulebreakers --seed 1 --out rulebreakers.csv",
    )

    system: Annotated[str, FromText(texts.system), Flag("SYSTEM", positional=True)]
    """name of the system, such as rulebreakers"""
    out: Annotated[Path, FromText(texts.path, "FILE")]
    """output file; the suffix determines the format: .parquet, .csv or .jsonl"""
    seed: Seed = 0
    """seed of the data set"""

    def _execute(self) -> None:
        from interp.prompts.files import check_writable, write_table
        from interp.prompts.systems import find_system

        check_writable(self.out)
        if self.out.exists():
            raise UserError(f"{self.out} already exists; choose another name, or remove the file")
        frame = find_system(self.system).dataset(seed=self.seed)
        write_table(frame, self.out)
        echo(f"{counted(len(frame), 'row')} written to {self.out}")


class ExportCommand(PromptSource, OptionsCommand):
    """Write prompts as a task of lm-eval or inspect, prompts as a data set, or a run's answers."""

    EXAMPLES = (
        "export lm-eval --system rulebreakers --limit 480 --out tasks",
        "export inspect --data pairs.csv --out tasks",
        "export croissant --out rulebreakers",
        "export inspect-log --answers runs/all --out logs",
    )

    format: Annotated[
        Literal["lm-eval", "inspect", "croissant", "inspect-log"], Flag("FORMAT", positional=True)
    ]
    """lm-eval or inspect: prompts as a task; croissant: prompts as a data set with its card;
    inspect-log: the answers of a run as logs that inspect view opens"""
    out: Annotated[Path, FromText(texts.path, "DIR")]
    """folder for the files"""
    system_prompt: Annotated[str | None, FromText(texts.passage, "TEXT")] = None
    """system message before each prompt of a task"""
    answers: Annotated[Path | None, FromText(texts.path, "DIR")] = None
    """for inspect-log: the folder that evaluate, attribute, generate or a study wrote"""

    def _execute(self) -> None:
        if (self.format == "inspect-log") != (self.answers is not None):
            raise UserError(
                "inspect-log requires --answers DIR, the folder of a run or study; the other "
                "formats write prompts and do not accept it"
            )
        if self.answers is None:
            self._write_prompts()
        else:
            self._write_answers(self.answers)

    def _write_prompts(self) -> None:
        from interp.export.prompts import described, inspect_task, lm_eval_task
        from interp.files import read_bytes, write_whole, writing

        write: dict[str, Callable[[PromptSet], Mapping[str, str | bytes]]] = {
            "lm-eval": lm_eval_task,
            "inspect": inspect_task,
            "croissant": described,
        }
        from interp.prompts.around import with_messages

        prompts = self.load()
        if self.system_prompt is not None:
            prompts = with_messages(prompts, system_prompt=self.system_prompt)
        files = {
            self.out / name: text.encode("utf-8") if isinstance(text, str) else text
            for name, text in write[self.format](prompts).items()
        }
        for file, data in files.items():
            if os.path.lexists(file) and read_bytes(file) != data:
                raise UserError(f"{file} already exists; choose another --out, or remove it")
        with writing(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        for file, data in files.items():
            write_whole(file, partial(Path.write_bytes, data=data))
        names = ", ".join(file.name for file in files)
        echo(f"{counted(len(prompts), 'prompt')} written to {self.out}: {names}")

    def _write_answers(self, run: Path) -> None:
        from interp.export.inspect_log import answered_runs, write_logs
        from interp.runs.folder import evaluating
        from interp.studies.folder import runs_in

        of_prompts = {*PromptSource.model_fields, "system_prompt"}
        if given := self.model_fields_set & of_prompts:
            named = ", ".join(sorted(map(flag, given)))
            raise UserError(f"a run has its own prompts; omit {named}")
        with evaluating(run):
            answered = answered_runs(runs_in(run))
            files = [file for each in answered for file in write_logs(each, self.out)]
        echo(f"{counted(len(files), 'log')} written to {self.out}; inspect view opens them")
