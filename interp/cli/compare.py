"""`python -m interp compare A [B ...]`: models, runs, seeds, or logs that other tools wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interp import texts
from interp.choices import DEFAULT_SYSTEM
from interp.cli.fields import OptionsCommand
from interp.comparing.options import Comparing
from interp.console import echo
from interp.errors import UserError, shortened
from interp.options import Flag, FromText

if TYPE_CHECKING:
    from interp.runs.folder import RunFolder


class CompareCommand(OptionsCommand, Comparing):
    """Compare models or runs on the same prompts, runs of several seeds, or logs of other tools."""

    EXAMPLES = (
        "compare runs/two-models",
        "compare runs/all --model llama-deep gemma2",
        "compare runs/plain runs/with-system-prompt",
        "compare runs/seed-0 runs/seed-1 runs/seed-2 runs/seed-3 runs/seed-4",
        "compare results/model-a results/model-b --by task",
        "compare first.eval second.eval --cluster passage --out comparison.html",
    )

    logs: Annotated[tuple[Path, ...], FromText(texts.path), Flag("LOG", positional=True)]
    """folders that commands wrote as --out: one folder, to compare two of its models; two folders;
    or several folders that differ only in --seed, to see the effect of the seed. With logs of other
    tools, or an option below --model, two or more in any mixture: folders of interp, samples of
    lm-eval or their folder, logs of Inspect (.eval, .json), tables with an item and a score
    """
    out: Annotated[Path | None, FromText(texts.path, "FILE")] = None
    """page with the differences and the pairs behind them"""

    def _execute(self) -> None:
        from interp.comparing.items import is_own

        all_own = len(self.logs) > 1 and all(map(is_own, self.logs))
        if all_own and not self.model_fields_set - {"logs", "model"}:
            from interp.runs.folder import evaluating
            from interp.studies.folder import answers_run

            with evaluating(*self.logs):
                answered = [answers_run(folder) for folder in self.logs]
                if len({run.record.run.seed for run, _ in answered}) > 1:
                    _print_seeds(answered, self.model)
                    return
        from interp.comparing.differences import compared
        from interp.files import check_replaceable
        from interp.report.console import print_cautions, print_sentences, print_table

        if self.out is not None:
            check_replaceable(self.out)
        result = compared(self.logs, self)
        print_cautions(result.said)
        for title, table in result.differences.item.shown:
            print_table(table, title=title)
        print_sentences(result.sentences())
        if self.out is not None:
            from interp.comparing.result import Comparison  # importing these is slow
            from interp.report.write import write_page

            echo(f"page written to {write_page(Comparison(result).report(), self.out)}")


def _print_seeds(answered: Sequence[tuple["RunFolder", str]], models: Sequence[str]) -> None:
    import pandas as pd

    from interp.comparing.items import objections
    from interp.measurements.answers.seeds import judged_pairs, measures_of, seed_table
    from interp.prompts.systems import installed_system
    from interp.report.console import print_cautions, print_table

    runs = [run for run, _ in answered]
    models = _common_models(runs, models)
    name = runs[0].record.run.system
    system = installed_system(name)
    if system is None or (cluster := system.cluster) is None:
        raise UserError(
            f"the system {name!r} has no cluster that all seeds share; expected a system with "
            f"the attribute cluster, such as {DEFAULT_SYSTEM}"
        )
    tables = [
        judged_pairs(run.table(answers), run.table("prompts"), model=model, cluster=cluster).assign(
            seed=run.record.run.seed
        )
        for run, answers in answered
        for model in models
    ]
    pairs = pd.concat(tables, ignore_index=True)
    measures = [name for name in measures_of(pairs, cluster=cluster) if name != "seed"]
    print_cautions(
        f"{run.folder}, {model}: {objection}"
        for run in runs
        for model in models
        for objection in objections(run, model)
    )
    table = seed_table(pairs, measures=measures, cluster=cluster)
    shown = {
        "Accuracy across seeds": "mean sd_of_mean sd_low sd_high p seeds clusters",
        "Components of the standard deviation of accuracy": "sd_seed sd_cluster sd_residual",
    }
    for title, columns in shown.items():
        print_table(table[["model", "measure", *columns.split()]], title=title)
    echo(
        "sd_of_mean: standard deviation of the overall accuracy between seeds, with its 95% "
        f"interval; sd_seed: the component shared by every {cluster} under one seed; sd_cluster: "
        "the component between clusters; sd_residual: the variation of each cluster across seeds"
    )
    for note in filter(None, table["note"].unique()):
        echo(note)


def _common_models(runs: Sequence["RunFolder"], named: Sequence[str]) -> Sequence[str]:
    """The requested models, or all models that the runs share; the runs may differ only in seed."""
    from interp.studies.folder import model_named

    seeds = [run.record.run.seed for run in runs]
    if len(set(seeds)) < len(seeds):
        got = shortened(", ".join(map(str, seeds)), 200)
        raise UserError(
            f"the runs have the seeds {got}; expected one seed, or only different seeds"
        )
    systems = dict.fromkeys(run.record.run.system for run in runs)
    if len(systems) > 1:
        raise UserError(f"the runs have the systems {', '.join(systems)}; expected one system")
    common = [name for name in runs[0].models() if all(name in run.models() for run in runs)]
    if not common:
        raise UserError("no model is in all of these runs; measure the same model in each of them")
    wanted = [model_named(runs[0], name) or name for name in named]
    if missing := [name for name in wanted if name not in common]:
        raise UserError(
            f"{missing[0]} is not among the models of all these runs: "
            f"{shortened(', '.join(common), 200)}"
        )
    return wanted or common
