"""`python -m interp compare DIR [DIR]`: two models, or two runs, on the same prompts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interp import texts
from interp.errors import UserError, shortened
from interp.models.names import model_name

if TYPE_CHECKING:
    import pandas as pd

    from interp.runs.folder import RunFolder

HELP = "compare two models, or two runs, on the same prompts"

EXAMPLES = (
    "compare runs/all --model organism/llama-deep organism/gemma2",
    "compare runs/plain runs/with-system-prompt",
)

_SHOWN = ["accuracy_a", "accuracy_b", "difference", "low", "high", "p"]
_COUNTED = ["only_a", "only_b", "p_mcnemar", "pairs", "clusters", "detectable"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "folders",
        nargs="+",
        type=texts.path,
        metavar="DIR",
        help="one folder that a command wrote as --out, of which two models are compared, or two",
    )
    parser.add_argument(
        "--model",
        nargs="+",
        type=model_name,
        default=[],
        dest="models",
        metavar="NAME",
        help="the models a and b; of two folders, one name is for both (default: the only ones)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run the command.

    Raises:
        UserError: not two things to compare, or answers to different prompts.
    """
    chosen = _chosen(arguments.folders, arguments.models)
    from interp.analysis.comparison import comparison_table, judged_pairs, measures_of
    from interp.cli.folders import answers_run
    from interp.console import echo
    from interp.prompts.systems import dependence_factor
    from interp.report.console import print_table
    from interp.statistics.decisions import SIGNIFICANT, left_open

    runs = [answers_run(folder) for folder, _ in chosen]
    models = [_model(run, name, folder) for run, (folder, name) in zip(runs, chosen, strict=True)]
    if (chosen[0][0], models[0]) == (chosen[1][0], models[1]):
        raise UserError(f"{models[0]} in {chosen[0][0]} was named twice; name two to compare")
    cluster = dependence_factor(runs[0].record.run.system) or "pair_id"
    prompts = [run.table("prompts") for run in runs]
    _check_same(*prompts)
    a, b = (
        judged_pairs(run.table("answers"), table, model=model, cluster=cluster)
        for run, table, model in zip(runs, prompts, models, strict=True)
    )
    measures = measures_of(a, cluster=cluster)
    table = comparison_table(a, b, measures=measures, cluster=cluster)
    print_table(table[["measure", *_SHOWN]], title="Accuracy of a and b, and a - b")
    print_table(table[["measure", *_COUNTED]], title="Pairs that one alone has right")
    for side, (folder, _), model in zip("ab", chosen, models, strict=True):
        echo(f"{side}: {model} in {folder}")
    echo(
        f"intervals and p take {cluster} as the unit, p_mcnemar pairs; detectable: the difference "
        "that is found with a power of 80%"
    )
    for note in table["note"].drop_duplicates():
        if note:
            echo(note)
    unshown = table.loc[table["p"] >= SIGNIFICANT, ["measure", "excluded_below", "excluded_above"]]
    if not unshown.empty:
        echo(
            "where p is 0.05 or more, by two one-sided tests at 5%: "
            f"{left_open(unshown.itertuples(index=False, name=None))}"
        )


def _chosen(folders: list[Path], models: list[str]) -> list[tuple[Path, str | None]]:
    """The folder of a and of b, each with the model that was named."""
    if len(folders) > 2 or len(models) > 2:
        raise UserError("more than two were named; expected one or two folders and models")
    if len(folders) == 1 and len(models) == 1:
        raise UserError(
            f"one model of one folder was named ({models[0]}); name two models, or two folders"
        )
    names: list[str | None] = [*models] if len(models) == 2 else [*models, None][:1] * 2
    return list(zip(folders if len(folders) == 2 else folders * 2, names, strict=True))


def _model(run: "RunFolder", name: str | None, folder: Path) -> str:
    """The model of that name, or the only one."""
    models = list(run.models())
    if name is None and len(models) == 1:
        return models[0]
    if name in models:
        return str(name)
    got = f"{name} is not among" if name else "--model is needed to choose from"
    raise UserError(f"{got} the models of {folder}: {shortened(', '.join(models), 200)}")


def _check_same(a: "pd.DataFrame", b: "pd.DataFrame") -> None:
    """Refuse answers to different prompts."""
    texts_a, texts_b = (table.set_index("prompt_id")["text"] for table in (a, b))
    alone = [
        len(one.index.difference(other.index))
        for one, other in ((texts_a, texts_b), (texts_b, texts_a))
    ]
    if any(alone):
        raise UserError(
            f"the prompts differ: {alone[0]:,} are only in the first and {alone[1]:,} only in the "
            "second; compare runs with the same --system, --limit, --seed and --data"
        )
    changed = int((texts_a != texts_b.loc[texts_a.index]).sum())
    if changed:
        raise UserError(f"{changed:,} prompts have the same id and another text; expected the same")
