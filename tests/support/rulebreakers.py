"""Results of RULEBREAKERS from the tables that a test makes up."""

from dataclasses import fields

import pandas as pd

from interp.runs.folder import RunFolder
from interp_experiments.rulebreakers.results import Results


def results_of(**tables):
    """A study with these tables; all others are empty."""
    nothing = dict.fromkeys((field.name for field in fields(Results)), pd.DataFrame())
    models = tuple(tables["answers"]["model"].unique())
    run = RunFolder.__new__(RunFolder)  # nothing is read from it
    others = {"models": models, "residuals": (), "cautions": (), "example_run": run}
    return Results(**{**nothing, **others, **tables})
