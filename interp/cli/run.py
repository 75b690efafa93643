"""`python -m interp run STUDY`: every measurement of a study, its tables, figures and report."""

import argparse

from interp.cli import options

HELP = "run a whole study: measure all models, make every table and figure, write one report"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("study", help="name of the study, such as rulebreakers")
    options.add_model_options(parser, default="the packaged organisms")
    options.add_data_option(parser)
    options.add_selection_options(parser, default_limit="the study's own, told when it starts")
    options.add_run_options(parser)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from interp.cli.measuring import checked_models, default_folder, loaded, say
    from interp.cli.report import write_study_report
    from interp.models.organisms import organism_names
    from interp.studies import find_study, run_study

    study = find_study(arguments.study)
    if not hasattr(arguments, "limit"):
        arguments.limit = study.default_limit
    models = checked_models(arguments, organism_names(study.organisms))
    folder = arguments.out or default_folder(arguments, "run", arguments.study, {})
    pairs = "all" if arguments.limit is None else f"{arguments.limit:,}"
    say(f"{arguments.study}: {len(models)} models, {pairs} pairs, results in {folder}")
    run_study(
        arguments.study,
        folder,
        models=models,
        load=lambda name: loaded(name, arguments),
        limit=arguments.limit,
        seed=arguments.seed,
        data=arguments.data,
        batch_tokens=arguments.batch_tokens,
    )
    write_study_report(folder)
