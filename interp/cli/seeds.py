"""`python -m interp seeds DIR DIR [DIR ...]`: what another seed of the data would change."""

import argparse
from typing import TYPE_CHECKING

from interp import texts
from interp.choices import DEFAULT_SYSTEM
from interp.errors import UserError, shortened

if TYPE_CHECKING:
    from interp.runs.folder import RunFolder

HELP = "show how much accuracy varies between runs with different --seed"

EXAMPLES = ("seeds runs/seed-0 runs/seed-1 runs/seed-2 runs/seed-3 runs/seed-4",)

_SHOWN = ["mean", "sd_of_mean", "sd_low", "sd_high", "p", "seeds", "clusters"]
_COMPONENTS = ["sd_seed", "sd_cluster", "sd_residual"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folders",
        nargs="+",
        type=texts.path,
        metavar="DIR",
        help="folders that commands wrote as --out, alike but for --seed",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: fewer than two runs, runs of one seed, of different systems, or without a model
            in common.
    """
    import pandas as pd

    from interp.analysis.comparison import judged_pairs, measures_of
    from interp.analysis.seeds import seed_table
    from interp.cli.folders import answers_run
    from interp.console import echo
    from interp.prompts.systems import installed_system
    from interp.report.console import print_table

    runs = [answers_run(folder) for folder in arguments.folders]
    models = _common_models(runs)
    name = runs[0].record.run.system
    system = installed_system(name)
    if system is None or (cluster := system.cluster) is None:
        raise UserError(
            f"the system {name!r} names no cluster that is the same under every seed; expected one "
            f"with the attribute cluster, such as {DEFAULT_SYSTEM}"
        )
    tables = [
        judged_pairs(
            one.table("answers"), one.table("prompts"), model=model, cluster=cluster
        ).assign(seed=one.record.run.seed)
        for one in runs
        for model in models
    ]
    pairs = pd.concat(tables, ignore_index=True)
    measures = [name for name in measures_of(pairs, cluster=cluster) if name != "seed"]
    table = seed_table(pairs, measures=measures, cluster=cluster)
    first = ["model", "measure"]
    print_table(table[[*first, *_SHOWN]], title="Accuracy from seed to seed")
    print_table(table[[*first, *_COMPONENTS]], title="Components of its standard deviation")
    echo(
        "sd_of_mean: of the overall accuracy between seeds, with its 95% interval; sd_seed: common "
        f"to every {cluster} under one seed; sd_cluster: between them; sd_residual: of each from "
        "seed to seed"
    )
    for note in table["note"].drop_duplicates():
        if note:
            echo(note)


def _common_models(runs: list["RunFolder"]) -> list[str]:
    """The models of all runs, which differ in their seed alone."""
    seeds = [one.record.run.seed for one in runs]
    if len(set(seeds)) < max(len(seeds), 2):
        got = shortened(", ".join(map(str, seeds)), 200)
        raise UserError(f"the runs have the seeds {got}; expected at least two, all different")
    systems = dict.fromkeys(one.record.run.system for one in runs)
    if len(systems) > 1:
        raise UserError(f"the runs are of the systems {', '.join(systems)}; expected one")
    models = [name for name in runs[0].models() if all(name in one.models() for one in runs)]
    if not models:
        raise UserError("no model is in all of these runs; measure one with every seed")
    return models
