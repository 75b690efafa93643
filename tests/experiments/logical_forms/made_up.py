"""Scores whose effects are known, for the tests of tables, models and sections."""

import numpy as np
import pandas as pd

from interp_experiments.logical_forms.effects import confirmatory
from interp_experiments.logical_forms.findings import first_screen
from interp_experiments.logical_forms.forms import ARGUMENT_FORMS, MODALITIES, main_forms
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.tables import perplexity_correlations

MODALITY_EFFECTS = {"none": 0.0, "box": -0.2, "diamond": 0.1}
FORM_EFFECTS = {"or": 0.0, "mp": 0.05, "mt": -0.1, "or_fallacy": -0.05, "ac": -0.15, "da": 0.02}
YES_EFFECTS = {"none": 0.15, "box": -0.15, "diamond": 0.0}


def made_up(models=5, *, questions=30, answered=1.0, seed=0):
    """Scores of the 24 forms with known effects, a model's own level and slope, and noise."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(models):
        level, slope = rng.normal(0, 0.05), rng.normal(-0.03, 0.01)
        for form in main_forms():
            standard = rng.normal(size=questions)
            accuracy = 0.6 + MODALITY_EFFECTS[form.modality] + FORM_EFFECTS[form.group]
            yes = 0.5 + YES_EFFECTS[form.modality] + (0.2 if form.valid() else -0.2)
            noise = rng.normal(0, 0.05, (2, questions))
            parts.append(
                pd.DataFrame(
                    {
                        "model": f"model {number}",
                        "prompt_id": [f"{i}/{form.id}" for i in range(questions)],
                        "interpretation": [f"{i}" for i in range(questions)],
                        "form": form.id,
                        "modality": form.modality,
                        "argument_form": form.group,
                        "schema": form.schema,
                        "formula": form.sequent(),
                        "gold": "Yes" if form.valid() else "No",
                        "perplexity": 10 + 2 * standard,
                        "relative_perplexity": standard,
                        "soft_accuracy": accuracy + level + slope * standard + noise[0],
                        "relative_positive": yes + level + noise[1],
                        "answered": answered,
                        "hard_accuracy": (accuracy + noise[0] > 0.5).astype(float),
                    }
                )
            )
    rows = pd.concat(parts, ignore_index=True)
    rows["modality"] = pd.Categorical(rows["modality"], MODALITIES)
    rows["argument_form"] = pd.Categorical(rows["argument_form"], list(ARGUMENT_FORMS))
    return rows


def with_vocabulary(scores):
    """Results with these scores, of models that know a thousand tokens."""
    answers = pd.DataFrame({"model": scores["questions"]["model"], "answer": "Yes", "error": ""})
    vocabulary = dict.fromkeys(scores["questions"]["model"], 1_000)
    nothing = pd.DataFrame()
    return Results(scores, vocabulary, answers, prompts=nothing, answers_of_all=nothing)


def of_rows(rows):
    return with_vocabulary({"questions": rows, "nonsense": rows})


def screen(results):
    valid, correlations = confirmatory(results), perplexity_correlations(results)
    return first_screen(results, valid=valid, correlations=correlations)


def differences(tests, factor):
    rows = tests[tests["factor"] == factor]
    return {(r.first, r.second): (r.difference, r.p_holm) for r in rows.itertuples()}


def apart():
    """Perplexity and modality hardly overlap: no question without modality has mean perplexity."""
    rows = made_up(1)
    moved = rows["modality"].map({"none": 8.0, "box": -4.0, "diamond": -4.0}).astype(float)
    return rows.assign(relative_perplexity=rows["relative_perplexity"] + moved)
