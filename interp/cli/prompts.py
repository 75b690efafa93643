"""Commands that write prompts: a generated data set, or tasks for other libraries."""

from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from interp import texts
from interp.cli.fields import OptionsCommand
from interp.errors import UserError
from interp.options import Flag, FromText
from interp.prompts.source import PromptSource, Seed


class Dataset(OptionsCommand):
    """Write a system's generated data set as Parquet, CSV or JSONL."""

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "dataset rulebreakers --out rulebreakers.parquet",
        "dataset rulebreakers --seed 1 --out rulebreakers.csv",
    )

    system: Annotated[str, FromText(texts.system), Flag("SYSTEM", positional=True)]
    """name of the system, such as rulebreakers"""
    out: Annotated[Path, FromText(texts.path, "FILE")]
    """where to write; the suffix decides the format: .parquet, .csv or .jsonl"""
    seed: Seed = 0
    """seed"""

    def _execute(self) -> None:
        from interp.console import echo
        from interp.prompts.files import check_writable, write_table
        from interp.prompts.systems import find_system

        check_writable(self.out)
        if self.out.exists():
            raise UserError(f"{self.out} exists and is kept; give another name, or remove the file")
        frame = find_system(self.system).dataset(seed=self.seed)
        write_table(frame, self.out)
        echo(f"{len(frame):,} rows written to {self.out}")


class Export(PromptSource, OptionsCommand):
    """Write prompts as a task of lm-eval or inspect, or as a data set described by croissant."""

    EXAMPLES: ClassVar[tuple[str, ...]] = (
        "export lm-eval --system rulebreakers --limit 480 --out tasks",
        "export inspect --data pairs.csv --out tasks",
        "export croissant --out rulebreakers",
    )

    format: Annotated[Literal["lm-eval", "inspect", "croissant"], Flag("FORMAT", positional=True)]
    """lm-eval, inspect or croissant"""
    out: Annotated[Path, FromText(texts.path, "DIR")]
    """folder of the files"""

    def _execute(self) -> None:
        from interp.console import echo
        from interp.export.prompts import described, inspect_task, lm_eval_task
        from interp.files import write_whole, writing

        write = {"lm-eval": lm_eval_task, "inspect": inspect_task, "croissant": described}
        prompts = self.load()
        files = write[self.format](prompts)
        with writing(self.out):
            self.out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_whole(self.out / name, partial(Path.write_bytes, data=text.encode("utf-8")))
        echo(f"{len(prompts):,} prompts written to {self.out}: {', '.join(files)}")
