"""`python -m interp patch`: what activations of each prompt's counterpart do to its answer."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from interp.choices import (
    DIRECTIONS,
    ESTIMATES,
    GRANULARITIES,
    PATCHING_BACKENDS,
    POLICIES,
    SITES,
)
from interp.cli import options, values
from interp.cli.parser import Listed, program
from interp.files import make_folder, write_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from interp.runs.folder import RunFolder
    from interp.runs.plan import Work

HELP = "patch activations between the prompts of pairs and print the effects by role"

EXAMPLES = (
    "patch --model organism/phi3-deep --limit 48",
    "patch --site z attn_out --layers 0-2 --granularity position --limit 24",
)

_PARAMETERS = (
    "sites",
    "granularity",
    "direction",
    "policy",
    "layers",
    "heads",
    "estimate",
    "verify",
    "backend",
    "remote",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    options.add_model_options(parser)
    options.add_prompt_options(parser)
    group = parser.add_argument_group("patching")
    group.add_argument(
        "--site",
        nargs="+",
        action=Listed,
        type=values.some_of("site", SITES),
        default=["resid_pre"],
        dest="sites",
        metavar="NAME",
        help="resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, "
        "pattern (default: resid_pre)",
    )
    group.add_argument(
        "--granularity",
        type=values.one_of("granularity", GRANULARITIES),
        default="role",
        metavar="NAME",
        help="what is patched at once: role, segment, position or all (default: role)",
    )
    group.add_argument(
        "--direction",
        type=values.one_of("direction", DIRECTIONS),
        default="denoising",
        metavar="NAME",
        help="denoising: clean activations into the corrupt prompt; noising: the other way "
        "(default: denoising)",
    )
    group.add_argument(
        "--clean", metavar="SIDE", help="the clean side of a pair (default: the system's first)"
    )
    group.add_argument(
        "--policy",
        type=values.one_of("policy", POLICIES),
        default="last",
        metavar="NAME",
        help="where differing spans have unequal numbers of tokens: last, mean, or all to refuse "
        "such pairs (default: last)",
    )
    for name in ("layers", "heads"):
        group.add_argument(
            f"--{name}",
            nargs="+",
            action=Listed,
            type=values.numbers,
            metavar="N",
            help=f"which {name}, such as 0,2,5 or 0-2 (default: all)",
        )
    group.add_argument(
        "--estimate",
        nargs="?",
        const="gradient",
        type=values.one_of("estimate", ESTIMATES),
        metavar="NAME",
        help="estimate all effects from one backward pass (gradient) or five (integrated)",
    )
    group.add_argument(
        "--verify",
        type=values.whole_number(0, values.MOST_TOKENS),
        default=0,
        metavar="K",
        help="run the K cells with the largest estimates of each pair exactly (default: 0)",
    )
    group.add_argument(
        "--backend",
        type=values.one_of("backend", PATCHING_BACKENDS),
        default="native",
        metavar="NAME",
        help="native, transformer-lens or nnsight (default: native)",
    )
    group.add_argument(
        "--remote", action="store_true", help="run a hub model on NDIF's servers, by nnsight"
    )
    group.add_argument(
        "--attributions",
        type=values.path,
        metavar="DIR",
        help="folder of a run of attribute on the same prompts, to compare scores with effects",
    )
    options.add_run_options(parser)


def work(arguments: argparse.Namespace) -> "Work":
    """What the command measures."""
    from interp.cli.common import work_of_command
    from interp.measurements.patching import patching
    from interp.patching.pairs import in_pairs
    from interp.prompts.systems import load_prompts

    prompts = load_prompts(
        arguments.system, limit=arguments.limit, seed=arguments.seed, data=arguments.data
    )
    return work_of_command(
        arguments,
        command="patch",
        measurement=patching,
        parameters={name: getattr(arguments, name) for name in _PARAMETERS},
        # Pairs are checked before any model is loaded.
        prompts=in_pairs(prompts, clean=arguments.clean),
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.analysis.patching_effects import effect_table, verification_table
    from interp.cli.common import run_plan
    from interp.console import echo
    from interp.report.console import print_table
    from interp.report.patching_report import asked_patches, heat_map_items, shares_for_people
    from interp.runs.conclusion import concluding

    (finished,) = run_plan(arguments, work(arguments))
    with concluding(finished.folder) as conclusion:
        run = conclusion.run
        pairs = run.table("pairs")
        effects = effect_table(asked_patches(run), pairs)
        _write_csv(run, "effect_table", effects)
        for item in heat_map_items(effects, asked_patches(run)):
            _save(run, item.name, item.draw())
        conclusion.summary = _summary(pairs)
        for title, block in shares_for_people(effects):
            print_table(block, title=title)
        if arguments.verify:
            verified = verification_table(run.parts("patches"))
            _write_csv(run, "verification_table", verified)
            print_table(verified, title="Estimates against exact effects, in logits")
        if arguments.attributions is not None:
            _compare(run, arguments.attributions, pairs)
    echo(
        f"written to {finished.folder}: intervals in effect_table.csv; "
        f"{program()} report {finished.folder} draws the effects"
    )


def _compare(finished: "RunFolder", folder: Path, pairs: "pd.DataFrame") -> None:
    """The table and figures of effects beside attribution scores."""
    from interp.analysis.groups import grouped
    from interp.analysis.patching_attribution import agreement_table, premise_effects
    from interp.report.console import print_table
    from interp.report.patch_figures import scores_and_effects
    from interp.report.patching_report import asked_patches
    from interp.report.run_report import run_ratios
    from interp.runs.folder import RunFolder

    ratios = run_ratios(RunFolder.read(folder))
    effects = premise_effects(asked_patches(finished), pairs, ratios)
    table = agreement_table(effects)
    _write_csv(finished, "premise_effects", effects)
    _write_csv(finished, "agreement_table", table)
    for cell, rows in grouped(effects, ["model", "site"]):
        name = re.sub(r"[^A-Za-z0-9-]+", "_", "-".join(map(str, cell.values())))
        _save(finished, f"scores_and_effects-{name}", scores_and_effects(rows))
    print_table(table, title="Does the premise with the higher score carry the larger effect?")


def _save(finished: "RunFolder", name: str, axes: "Axes") -> None:
    folder = make_folder(finished.folder, "figures")
    figure = axes.get_figure(root=True)
    assert figure is not None
    write_whole(folder / f"{name}.png", lambda path: figure.savefig(path, format="png"))


def _write_csv(finished: "RunFolder", name: str, table: "pd.DataFrame") -> None:
    file = finished.folder / f"{name}.csv"
    write_whole(file, lambda path: table.to_csv(path, index=False))


def _summary(pairs: "pd.DataFrame") -> dict[str, dict[str, object]]:
    """Pairs, recognized ones and errors, by model, and a line on each error."""
    from interp.cli.summary import tell_errors

    summary: dict[str, dict[str, object]] = {}
    for model, rows in pairs.groupby("model", sort=False):
        errors = tell_errors(str(model), rows.loc[rows["error"] != "", "error"], "pairs")
        recognized = int(rows["recognized"].fillna(False).astype(bool).sum())
        summary[str(model)] = {"pairs": len(rows), "recognized": recognized, "errors": errors}
    return summary
