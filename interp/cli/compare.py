"""`python -m interp compare A [B ...]`: models, runs, seeds, or logs that other tools wrote."""

from collections.abc import Iterable, Sequence
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
    import pandas as pd

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

        others = len(self.logs) > 1 and not all(map(is_own, self.logs))
        if others or self.model_fields_set - {"logs", "model"}:
            self._compare_logs()
            return
        from interp.runs.folder import evaluating
        from interp.studies.folder import answers_run

        with evaluating(*self.logs):
            found = [answers_run(folder) for folder in self.logs]
            if len({run.record.run.seed for run, _ in found}) > 1:
                _print_seeds(found, self.model)
            else:
                _print_difference(self.logs, found, self.model)

    def _compare_logs(self) -> None:
        from interp.comparing.differences import compared
        from interp.files import check_replaceable
        from interp.report.console import print_cautions, print_sentences, print_table

        if self.out is not None:
            check_replaceable(self.out)
        found = compared(self.logs, self)
        print_cautions(found.said)
        for title, table in found.differences.item.shown:
            print_table(table, title=title)
        print_sentences(found.sentences())
        if self.out is not None:
            from interp.comparing.result import Comparison  # importing these is slow
            from interp.report.write import write_page

            echo(f"page written to {write_page(Comparison(found).report(), self.out)}")


def _print_difference(
    folders: Sequence[Path], found: Sequence[tuple["RunFolder", str]], names: Sequence[str]
) -> None:
    from interp.measurements.answers.comparison import comparison_table, judged_pairs, measures_of
    from interp.prompts.prompt_set import note_alone
    from interp.prompts.systems import dependence_factor
    from interp.report.console import print_table
    from interp.statistics.decisions import SIGNIFICANT, left_open

    if len(folders) > 2 or len(names) > 2:
        raise UserError("got more than two folders or models; expected one or two")
    if len(folders) == 1:
        there = [*found[0][0].models()]
        names = names or (there if len(there) == 2 else ())
        folders, found = [*folders] * 2, [*found] * 2
    runs = [run for run, _ in found]
    asked: Sequence[str | None] = names if len(names) == 2 else [*names, None][:1] * 2
    models = [_model(*own) for own in zip(runs, asked, folders, strict=True)]
    if (folders[0], models[0]) == (folders[1], models[1]):
        raise UserError(
            f"{models[0]} in {folders[0]} is compared with itself; expected two models of one "
            "folder, or two folders of runs on the same prompts"
        )
    cluster = dependence_factor(runs[0].record.run.system) or "pair_id"
    prompts = [run.table("prompts") for run in runs]
    _check_same(*prompts)
    a, b = (
        judged_pairs(run.table(name), table, model=model, cluster=cluster)
        for (run, name), table, model in zip(found, prompts, models, strict=True)
    )
    _print_cautions(zip("ab", runs, models, strict=True))
    table = comparison_table(a, b, measures=measures_of(a, cluster=cluster), cluster=cluster)
    shown = ["measure", "accuracy_a", "accuracy_b", "difference", "low", "high", "p"]
    print_table(table[shown], title="Accuracy of a and b, and a - b")
    counted = ["measure", "only_a", "only_b", "p_mcnemar", "pairs", "clusters", "detectable"]
    print_table(table[counted], title="Pairs that only one model answers correctly")
    for side, folder, model in zip("ab", folders, models, strict=True):
        echo(f"{side}: {model} in {folder}")
    echo(
        f"the unit of intervals and p is {cluster}, and that of p_mcnemar is the pair; "
        "detectable: the difference detected with 80% power"
    )
    for note in filter(None, [*table["note"].unique(), note_alone(prompts[0]["pair_id"])]):
        echo(note)
    unshown = table.loc[table["p"] >= SIGNIFICANT, ["measure", "excluded_below", "excluded_above"]]
    if not unshown.empty:
        echo(
            "if p is 0.05 or more, by two one-sided tests at 5%: "
            f"{left_open(unshown.itertuples(index=False, name=None))}"
        )


def _print_cautions(compared: Iterable[tuple[str, "RunFolder", str]]) -> None:
    """Print what a careful reader would object to in the answers, as (label, run, model)."""
    from interp.analysis.cautions.caution import CONSTANT, OUTSIDE_OPTIONS
    from interp.report.console import print_cautions
    from interp.results.given import cautions_about
    from interp.results.measured import InFolder

    print_cautions(
        f"{label}, {own.said}"
        for label, run, model in compared
        for own in cautions_about(InFolder(run))
        if own.model == model and own.kind in (OUTSIDE_OPTIONS, CONSTANT)
    )


def _model(run: "RunFolder", name: str | None, folder: Path) -> str:
    from interp.studies.folder import model_named

    models = list(run.models())
    if name is None and len(models) == 1:
        return models[0]
    if name is not None and (own := model_named(run, name)):
        return own
    got = f"{name} is not among" if name else "--model is required to choose from"
    raise UserError(f"{got} the models of {folder}: {shortened(', '.join(models), 200)}")


def _check_same(a: "pd.DataFrame", b: "pd.DataFrame") -> None:
    a, b = (prompts[["prompt_id", "text"]] for prompts in (a, b))
    both = a.merge(b, "outer", on="prompt_id", suffixes=("_a", "_b"), indicator="where")
    alone = [int((both["where"] == where).sum()) for where in ("left_only", "right_only")]
    if any(alone):
        raise UserError(
            f"the prompts differ: {alone[0]:,} are only in the first run, and {alone[1]:,} are "
            "only in the second; compare runs with the same --system, --limit, --seed and --data"
        )
    if changed := int((both["text_a"] != both["text_b"]).sum()):
        raise UserError(
            f"{changed:,} prompts have the same id but different text; expected identical prompts"
        )


def _print_seeds(found: Sequence[tuple["RunFolder", str]], models: Sequence[str]) -> None:
    import pandas as pd

    from interp.measurements.answers.comparison import judged_pairs, measures_of, seed_table
    from interp.prompts.systems import installed_system
    from interp.report.console import print_table

    runs = [run for run, _ in found]
    models = _common_models(runs, models)
    name = runs[0].record.run.system
    system = installed_system(name)
    if system is None or (cluster := system.cluster) is None:
        raise UserError(
            f"the system {name!r} has no cluster that all seeds share; expected a system with "
            f"the attribute cluster, such as {DEFAULT_SYSTEM}"
        )
    tables = [
        judged_pairs(one.table(answers), one.table("prompts"), model=model, cluster=cluster).assign(
            seed=one.record.run.seed
        )
        for one, answers in found
        for model in models
    ]
    pairs = pd.concat(tables, ignore_index=True)
    measures = [name for name in measures_of(pairs, cluster=cluster) if name != "seed"]
    _print_cautions((str(one.folder), one, model) for one in runs for model in models)
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

    seeds = [one.record.run.seed for one in runs]
    if len(set(seeds)) < len(seeds):
        got = shortened(", ".join(map(str, seeds)), 200)
        raise UserError(
            f"the runs have the seeds {got}; expected one seed, or only different seeds"
        )
    systems = dict.fromkeys(one.record.run.system for one in runs)
    if len(systems) > 1:
        raise UserError(f"the runs have the systems {', '.join(systems)}; expected one system")
    common = [name for name in runs[0].models() if all(name in one.models() for one in runs)]
    if not common:
        raise UserError("no model is in all of these runs; measure the same model in each of them")
    wanted = [model_named(runs[0], name) or name for name in named]
    if missing := [name for name in wanted if name not in common]:
        raise UserError(
            f"{missing[0]} is not among the models of all these runs: "
            f"{shortened(', '.join(common), 200)}"
        )
    return wanted or common
