"""`python -m interp probe familiarity|knowledge|linear`: what a model knows."""

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from interp.cli import options, values
from interp.cli.parser import Listed, Parser
from interp.errors import UserError, unknown

if TYPE_CHECKING:
    import pandas as pd

    from interp.prompts.prompt_set import PromptSet
    from interp.runs.folder import RunFolder
    from interp.runs.plan import Work

HELP = "ask what a model knows: familiarity with facts, facts it fails, linear probes"

EXAMPLES = (
    "probe familiarity --model organism/llama-shallow",
    "probe linear --limit 120 --positions last_token premise2",
)

_ENTITIES = ["entity_a", "entity_b"]

_FACTS = ["prompt_id", "category", "entity_group", *_ENTITIES]


def configure(parser: Parser) -> None:
    """Add the probes, each with its options."""
    probes = parser.add_subparsers(dest="probe", required=True, metavar="PROBE")
    for name, help_ in (
        ("familiarity", "probability that a model begins to say each fact"),
        ("knowledge", "facts whose greedy completion does not name the answer"),
    ):
        example = f"probe {name} --model organism/llama-shallow organism/gemma2"
        probe = probes.add_parser(name, help=help_, description=help_, examples=(example,))
        options.add_model_options(probe)
        options.add_system_options(probe)
        options.add_run_options(probe)
        # Facts are few: all of them are asked, in the order of the data.
        probe.set_defaults(limit=None, seed=0)
    _configure_linear(probes)


def _configure_linear(probes: "argparse._SubParsersAction[Parser]") -> None:
    help_ = "whether a prompt's side is linearly readable from the residual stream"
    linear = probes.add_parser("linear", help=help_, description=help_, examples=EXAMPLES[1:])
    options.add_model_options(linear)
    options.add_prompt_options(linear)
    linear.add_argument(
        "--positions",
        nargs="+",
        action=Listed,
        type=values.names,
        default=["last_token", "premise2"],
        metavar="NAME",
        help="tokens to read: last_token, or a segment, which is read at its last token "
        "(default: last_token premise2)",
    )
    options.add_run_options(linear)


def work(arguments: argparse.Namespace) -> "Work":
    """What the probe measures."""
    from interp.cli.common import work_of_command
    from interp_probes.facts import load_facts
    from interp_probes.familiarity import familiarity
    from interp_probes.knowledge import knowledge
    from interp_probes.residuals import residuals

    command = f"probe-{arguments.probe}"
    if arguments.probe == "linear":
        return work_of_command(
            arguments,
            command=command,
            measurement=residuals,
            parameters={"positions": arguments.positions},
            prompts=_prompts_for_linear(arguments),
        )
    return work_of_command(
        arguments,
        command=command,
        measurement={"familiarity": familiarity, "knowledge": knowledge}[arguments.probe],
        parameters={},
        prompts=load_facts(arguments.system, data=arguments.data),
    )


def _prompts_for_linear(arguments: argparse.Namespace) -> "PromptSet":
    """The prompts of the command line, which must have what linear probes need.

    Raises:
        UserError: prompts without entities, or without a segment that is to be read.
    """
    from interp.prompts.systems import load_prompts
    from interp_probes.residuals import LAST_TOKEN

    prompts = load_prompts(
        arguments.system, limit=arguments.limit, seed=arguments.seed, data=arguments.data
    )
    if not set(_ENTITIES) <= set(prompts[0].factors):
        raise UserError(
            f"the prompts of {arguments.system} name no entities, by which linear probes are held "
            f"out; expected the factors {' and '.join(_ENTITIES)}, as rulebreakers has them"
        )
    for position in arguments.positions:
        known = [LAST_TOKEN, *prompts[0].segments]
        if position not in known:
            raise UserError(unknown("position", position, known))
    return prompts


def run(arguments: argparse.Namespace) -> None:
    """Run one probe."""
    from interp.cli.common import run_plan
    from interp.runs.conclusion import concluding

    report = {"familiarity": _familiarity, "knowledge": _knowledge, "linear": _linear}
    (finished,) = run_plan(arguments, work(arguments))
    with concluding(finished.folder) as conclusion:
        conclusion.summary = report[arguments.probe](arguments, conclusion.run)


def _familiarity(arguments: argparse.Namespace, finished: "RunFolder") -> dict[str, Any]:
    from interp.report.console import print_table
    from interp_probes.familiarity import flag_shared

    facts, table = finished.table("prompts", _FACTS), _measured(finished, "familiarity")
    table = flag_shared(table, facts).merge(facts, on="prompt_id")
    groups = table.assign(shared=table["shared_with"] > 0).groupby(
        ["model", "entity_group"], sort=False
    )
    summary = groups["familiarity"].agg(["mean", "median", "min", "max"])
    summary = summary.assign(facts=groups.size(), shared_first_token=groups["shared"].sum())
    print_table(summary.reset_index(), title="Familiarity: P(first token of the answer)")
    _write(finished, {"familiarity": table})
    return {}


def _knowledge(arguments: argparse.Namespace, finished: "RunFolder") -> dict[str, Any]:
    from interp.report.console import print_table
    from interp_probes.knowledge import excluded

    facts, table = finished.table("prompts", _FACTS), _measured(finished, "knowledge")
    failed = excluded(table, facts)
    table = table.merge(facts, on="prompt_id")
    known = table.groupby(["model", "entity_group"], sort=False)["known"]
    summary = known.agg(known="sum", facts="size", share="mean").reset_index()
    print_table(summary, title="Facts known, by greedy completion")
    shown = failed[["category", "entity_a", "entity_b", "excluded", "why"]].replace(
        {"excluded": {True: "yes", False: "no"}}
    )
    if len(shown):
        title = "Facts that a model fails (categorical ones: to be checked by hand)"
        print_table(shown, title=title)
    _write(finished, {"knowledge": table, "excluded": failed})
    return {}


def _measured(finished: "RunFolder", name: str) -> "pd.DataFrame":
    """A table that has a row for each fact that could be measured.

    Raises:
        UserError: it has none.
    """
    table = finished.table(name)
    if table.empty:
        raise UserError(
            f"no fact could be measured, so there is nothing to report; {finished.folder} says "
            "in models/ and workers/ what was tried"
        )
    return table


def _linear(arguments: argparse.Namespace, finished: "RunFolder") -> dict[str, Any]:
    from interp.cli.summary import summarize
    from interp.report.console import print_table
    from interp_probes.linear import linear_probes

    prompts = finished.table("prompts", ["prompt_id", "pair_id", "side", *_ENTITIES])
    answers = finished.table("answers", ["model", "prompt_id", "answer", "correct", "error"])
    table = linear_probes(
        finished.files("residuals", finished.models()), prompts, answers, seed=arguments.seed
    )
    title = "Accuracy of linear probes of the prompt's side; control: labels shuffled"
    print_table(_for_people(table), title=title)
    _write(finished, {"linear_probes": table})
    return summarize(answers, answers[answers["error"] != ""])


def _for_people(table: "pd.DataFrame") -> "pd.DataFrame":
    """One row per model, position and layer: accuracy on each subset, and the control's on all."""
    key = ["model", "position", "layer"]
    shown = table.pivot(index=key, columns="prompts", values="accuracy")
    everything = table[table["prompts"] == "all"].set_index(key)
    shown = shown[["all", "recognized", "failed"]].assign(control=everything["control_accuracy"])
    return shown.loc[everything.index].reset_index()


def _write(finished: "RunFolder", tables: "dict[str, pd.DataFrame]") -> None:
    """Write tables as CSV into the run's folder."""
    from interp.console import echo
    from interp.files import write_whole

    for name, table in tables.items():
        file = finished.folder / f"{name}.csv"
        write_whole(file, partial(table.to_csv, index=False))
        echo(f"written to {file}")
