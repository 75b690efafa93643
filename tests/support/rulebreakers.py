"""Results of RULEBREAKERS from the tables that a test makes up."""

from dataclasses import fields

import pandas as pd

from interp_experiments.rulebreakers.results import Results


def results_of(**tables):
    """A study with these tables; all others are empty."""
    nothing = dict.fromkeys((field.name for field in fields(Results)), pd.DataFrame())
    models = tuple(tables["answers"]["model"].unique())
    others = {"models": models, "residuals": (), "cautions": ()}
    return Results(**{**nothing, **others, **tables})
