"""`python -m interp plan`: what differences prompts can show, before any model is run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from interp import texts
from interp.choices import DEFAULT_SYSTEM
from interp.cli.fields import OptionsCommand
from interp.console import counted, echo
from interp.errors import UserError
from interp.options import FromText
from interp.prompts.source import Seed

if TYPE_CHECKING:
    import pandas as pd

    from interp.prompts.systems import Contrast, Filter
    from interp.statistics.power import Planned

MODELS = 2
"""Number of models that is assumed without a pilot."""

Share = Annotated[float, FromText(texts.share, "SHARE")]


class PlanCommand(OptionsCommand):
    """Print the smallest differences that a set of prompts can show."""

    EXAMPLES = ("plan --system rulebreakers --limit 240", "plan --pilot runs/small --limit 1440")

    system: Annotated[str, FromText(texts.system)] = DEFAULT_SYSTEM
    """the system, which must define contrasts"""
    limit: Annotated[int, Field(ge=1, le=texts.MOST_PAIRS)] | None = None
    """number of pairs (default: all)"""
    seed: Seed = 0
    """seed of the prompts"""
    pilot: Annotated[Path | None, FromText(texts.path, "DIR")] = None
    """a run or study of the same system; its answers give the expected accuracy and correlation"""
    accuracy: Share = 0.5
    """expected accuracy if there is no pilot; differences are hardest to detect at 0.5"""
    correlation: Share = 0.8
    """expected correlation between a model's answers about one cluster, if there is no pilot (the
    median for the packaged organisms on the default system is 0.82)
    """
    known: Share | None = None
    """share of the facts that all models complete, if the system's study leaves out pairs about
    other facts (default: the share in the pilot, if it is a study, or 1)
    """
    models: Annotated[int, Field(ge=1, le=1000)] | None = None
    """number of models whose tests are corrected together (default: as many as the pilot has, or 2)
    """

    def _execute(self) -> None:
        from interp.prompts.systems import find_system, load_prompts
        from interp.report.console import print_table
        from interp.statistics.power import STUDIES, family_size, plan_table

        system = find_system(self.system)
        cluster = system.cluster
        if not system.contrasts or cluster is None:
            raise UserError(
                f"the system {self.system!r} names no contrasts; expected one with the attributes "
                f"contrasts and cluster, such as {DEFAULT_SYSTEM}"
            )
        planned, models, source = _expected(self, system.contrasts, cluster)
        models = self.models or models
        tests = family_size(system.contrasts, models)
        prompts = load_prompts(self.system, limit=self.limit or "all", seed=self.seed)
        pairs = prompts.to_frame().drop_duplicates("pair_id")
        pairs, note = _known(self, system.known, pairs, cluster)
        table = plan_table(pairs, planned, cluster=cluster, tests=tests)
        clusters = counted(pairs[cluster].nunique(), "cluster")
        print_table(table, title=f"{counted(len(pairs), 'pair')}, {clusters}")
        echo(
            f"detectable: the difference that a 5% test detects in 80% of {STUDIES} simulated "
            "studies; detectable_holm: that difference if it is the only one among "
            f"{counted(tests, 'test')} of {counted(models, 'model')}, corrected by Holm's method; "
            "none: no difference can be detected at this size"
        )
        echo(source)
        if note:
            echo(note)


def _known(
    options: PlanCommand, known: "Filter | None", pairs: "pd.DataFrame", cluster: str
) -> "tuple[pd.DataFrame, str]":
    """The pairs about facts that the models are expected to complete, and what to say of them."""
    from interp.statistics.power import known_pairs

    if known is None:
        if options.known is not None:
            raise UserError(
                f"got --known {options.known:g}, but the study of {options.system} leaves out no "
                "pairs by their facts; expected no --known"
            )
        return pairs, ""
    share = options.known
    if share is None and options.pilot is not None:
        share = _known_share(options.pilot, known)
    levels = " and ".join(known.levels)
    if share is None:
        return pairs, (
            f"assumed: models complete all facts as asked. The study leaves out {levels} pairs "
            "whose fact a model does not complete; --known SHARE plans for this"
        )
    left = known_pairs(pairs, known, share=share, cluster=cluster, seed=options.seed)
    return left, (
        f"completed: {share:.0%} of the facts of {levels} pairs, so {len(left):,} of "
        f"{len(pairs):,} pairs and {left[cluster].nunique():,} of {pairs[cluster].nunique():,} "
        "clusters are left"
    )


def _known_share(folder: Path, known: "Filter") -> float | None:
    """The share of the filtered facts that all models complete as asked; None if not measured."""
    from interp.prompts.systems import FACT_SIDE
    from interp.studies.folder import runs_in

    runs = [run for run in runs_in(folder).values() if "knowledge" in run.tables()]
    if not runs:
        return None
    facts, knowledge = runs[0].table("prompts"), runs[0].table("knowledge")
    asked = facts["side"].eq(FACT_SIDE) & facts[known.factor].isin(known.levels)
    fact_prompts = facts.loc[asked, "prompt_id"]
    asked_facts = knowledge[knowledge["prompt_id"].isin(fact_prompts)]
    return float(asked_facts["known"].astype(bool).groupby(asked_facts["prompt_id"]).all().mean())


def _expected(
    options: PlanCommand, contrasts: "Sequence[Contrast]", cluster: str
) -> "tuple[list[Planned], int, str]":
    """The comparisons, the number of models, and where the expected values come from."""
    from interp.statistics.power import assumed, of_pilot

    accuracy, correlation = options.accuracy, options.correlation
    if options.pilot is None:
        return (
            assumed(contrasts, accuracy=accuracy, correlation=correlation),
            MODELS,
            f"assumed: an accuracy of {accuracy:g}; a correlation of {correlation:g} between "
            f"answers about one {cluster} at one level, half of that at two levels, and zero "
            "between models. --pilot DIR estimates these values from a run",
        )
    if options.model_fields_set & {"accuracy", "correlation"}:
        raise UserError(
            "got --pilot together with --accuracy or --correlation; expected either the pilot or "
            "these values"
        )
    answered = _answered(options.pilot, options.system, contrasts, cluster)
    planned = of_pilot(answered, contrasts, cluster=cluster)
    source = f"accuracies and correlations are from {options.pilot}"
    return planned, answered["model"].nunique(), source


def _answered(
    folder: Path, name: str, contrasts: "Sequence[Contrast]", cluster: str
) -> "pd.DataFrame":
    """One row per model and pair of a pilot, with the columns that contrasts need."""
    from interp.analysis.accuracy import pairs_of
    from interp.statistics.contrasts import MODEL
    from interp.studies.folder import answers_run

    run, answers = answers_run(folder)
    if run.record.run.system != name:
        raise UserError(
            f"{folder} has answers to prompts of {run.record.run.system}; expected a pilot of the "
            f"planned system, {name}"
        )
    prompts = run.table("prompts")
    factors = [contrast.factor for contrast in contrasts if contrast.factor != MODEL]
    sides = tuple(prompts["side"].unique())
    keep = list(dict.fromkeys([*factors, cluster, "weight"]))
    pairs = pairs_of(run.table(answers), prompts, keep=keep, sides=sides).dropna(subset="paired")
    if pairs.empty:
        raise UserError(f"{folder} has no completely answered pair yet; continue the run")
    return pairs
