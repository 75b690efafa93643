"""The tables of simulated studies, with or without effects, made without a model.

Answers are correlated as in real studies: for each entity pair, a model has a separate inclination
to accept, and a separate ability to distinguish the sides, which may be negative. Without effects
both are distributed symmetrically around zero.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from interp_experiments.logical_forms.forms import main_forms
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.templates import PHRASINGS, RULES

MODELS = ("first", "second")

CITIES, KINDS = 32, 20
"""Number of entity pairs in each group."""

ASKED = tuple(phrasing.id for phrasing in PHRASINGS)[:3]
"""The phrasings of each instance, all to be answered with Yes or No."""

WEIGHTS = {"geographical": 6.0, "categorical": 1.0}
"""Number of pairs in the data set that each drawn pair represents, by group."""

DIMENSIONS = 8
"""Width of the residual stream."""


@dataclass(frozen=True)
class Effects:
    """The planted effects, in log-odds unless stated; none if all are zero."""

    sides: float = 0.0
    """Log-odds of accepting a non-rulebreaker minus those of accepting a rulebreaker."""
    inclined: float = 0.0
    """Added to the log-odds of accepting any conclusion."""
    familiarity: float = 0.0
    """Added to `sides`, per standard deviation of a city's familiarity."""
    rule: float = 0.0
    """Added to `sides` under the first rule. Every field below but `direction` also adds to it."""
    group: float = 0.0
    """For cities, relative to other entity pairs."""
    phrasing: float = 0.0
    """Under the first phrasing, relative to the others."""
    model: float = 0.0
    """For the second model, relative to the first."""
    entity_ratio: float = 0.0
    """Per standard deviation of an entity pair's mean ratio of attention scores."""
    prompt_ratio: float = 0.0
    """Per standard deviation of a prompt's difference from this mean."""
    direction: float = 0.0
    """How far a prompt's side shifts its vector, in standard deviations."""


NOTHING = Effects()

EVERYTHING = Effects(
    sides=1.0,
    inclined=1.0,
    familiarity=1.5,
    rule=0.8,
    group=2.0,
    phrasing=1.0,
    model=1.5,
    entity_ratio=1.5,
    prompt_ratio=0.8,
    direction=0.3,
)


@cache
def _prompts() -> pd.DataFrame:
    """The prompts of every study; the two sides of a pair are adjacent.

    The non-rulebreaker has the entity A of a different entity pair.
    """
    entities = [("geographical", f"Land{n}", f"Town{n}") for n in range(CITIES)]
    entities += [("categorical", f"kind{n}", f"thing{n}") for n in range(KINDS)]
    verbs = {"geographical": ("is in", "was born in"), "categorical": ("caught", "saw")}
    rows = [
        {
            "prompt_id": f"{number}/{rule}/{phrasing}/{side}",
            "pair_id": f"{number}/{rule}/{phrasing}",
            "side": side,
            "entity": number,
            "entity_a": a if side == SIDES[0] else entities[number - 1][1],
            "entity_b": b,
            "entity_pair": f"{b} ({a})",
            "entity_group": group,
            "rule": rule,
            "verb": verbs[group][(number + place) % 2],
            "phrasing": phrasing,
            "question_verb": phrasing.partition("-")[0],
            "weight": WEIGHTS[group],
        }
        for number, (group, a, b) in enumerate(entities)
        for rule, (place, phrasing) in product(RULES, enumerate(ASKED))
        for side in SIDES
    ]
    return pd.DataFrame(rows)


def rulebreakers(rng: np.random.Generator, effects: Effects, folder: Path) -> Results:
    """The results of a study of RULEBREAKERS; residual streams are written into the folder."""
    prompts = _prompts()
    tables = [_of_model(rng, effects, place) for place in range(len(MODELS))]
    answers, options, ratios, familiarity = (
        pd.concat(parts, ignore_index=True) for parts in zip(*tables, strict=True)
    )
    return Results(
        models=MODELS,
        drawn=prompts,
        prompts=prompts,
        answers=answers,
        ratios=ratios,
        options=options,
        familiarity=familiarity,
        unknown=pd.DataFrame({"entity_b": [], "excluded": pd.Series([], dtype=bool)}),
        residuals=(_residuals(rng, effects, prompts, folder / "residuals.parquet"),),
        probed=prompts,
        probed_answers=answers,
    )


def _of_model(rng: np.random.Generator, effects: Effects, place: int) -> tuple[pd.DataFrame, ...]:
    """One model's answers, option probabilities, score ratios and familiarity."""
    prompts = _prompts()
    entity = prompts["entity"].to_numpy()
    familiar, of_entity = rng.normal(size=(2, CITIES + KINDS))
    of_prompt = rng.normal(size=len(prompts))
    city = prompts["entity_group"] == "geographical"
    apart = (
        effects.sides
        + effects.familiarity * familiar[entity] * city
        + effects.rule * (prompts["rule"] == RULES[0])
        + effects.group * city
        + effects.phrasing * (prompts["phrasing"] == ASKED[0])
        + effects.model * place
        + effects.entity_ratio * of_entity[entity]
        + effects.prompt_ratio * of_prompt
        + rng.normal(0, 2.0, CITIES + KINDS)[entity]
    )
    inclined = effects.inclined + rng.normal(0, 1.5, CITIES + KINDS)[entity]
    noise = rng.normal(0, 1.0, len(prompts))
    side = np.where(prompts["side"] == SIDES[1], 0.5, -0.5)
    relative = expit(inclined + side * apart + noise)
    accepted = relative > 0.5
    ids = {"model": MODELS[place], "prompt_id": prompts["prompt_id"]}
    correct = accepted == (side > 0)
    options = [
        pd.DataFrame(
            {**ids, "option": option, "probability": 0.95 * share, "relative_probability": share}
        )
        for option, share in (("Yes", relative), ("No", 1 - relative))
    ]
    scores = {
        "attention": of_entity[entity] + of_prompt,
        "input_gradient": rng.normal(size=CITIES + KINDS)[entity] + rng.normal(size=len(prompts)),
    }
    ratios = [
        pd.DataFrame({**ids, "method": method, "ratio": ratio, "ratio_unnormalized": ratio / 2})
        for method, ratio in ((method, np.exp(0.5 * score)) for method, score in scores.items())
    ]
    cities = prompts.drop_duplicates("entity")[
        ["entity_group", "entity_pair", "entity_a", "entity_b"]
    ]
    return (
        pd.DataFrame(
            {**ids, "answer": np.where(accepted, "Yes", "No"), "correct": correct, "error": ""}
        ),
        pd.concat(options),
        pd.concat(ratios),
        cities.assign(
            model=MODELS[place],
            familiarity=expit(familiar - 1),
            whole_name=expit(familiar + rng.normal(0, 0.5, CITIES + KINDS) - 2),
            shared_with=0,
        ),
    )


def _residuals(
    rng: np.random.Generator, effects: Effects, prompts: pd.DataFrame, file: Path
) -> Path:
    """Vectors of the first model in two layers, shifted differently for each entity pair."""
    sign = np.where(prompts["side"] == SIDES[0], 1.0, -1.0)[:, None]
    parts = []
    for layer in (0, 1):
        own = rng.normal(size=(CITIES + KINDS, DIMENSIONS))[prompts["entity"]]
        vectors = rng.normal(size=(len(prompts), DIMENSIONS)) + 0.3 * sign * own
        vectors[:, 0] += effects.direction * sign[:, 0]
        names = {"model": MODELS[0], "position": "last", "layer": layer}
        parts.append(
            pd.DataFrame(
                {
                    **names,
                    "prompt_id": prompts["prompt_id"],
                    "vector": list(vectors.astype(np.float32)),
                }
            )
        )
    pd.concat(parts).to_parquet(file)
    return file


MODALITIES, INTERPRETATIONS = ("none", "box", "diamond"), 20
"""Modalities of LogicalForms, and the number of questions of each form."""


def logical_forms(
    rng: np.random.Generator,
    *,
    models: int,
    modality: float = 0.0,
    argument_form: float = 0.0,
    interaction: float = 0.0,
    perplexity: float = 0.0,
    words: float = 0.05,
) -> pd.DataFrame:
    """The scores of models on LogicalForms, to which mixed models are fitted.

    The effects, in units of soft accuracy, are those of necessity, modus ponens, their interaction,
    and perplexity (per standard deviation). Each of several models has its own effects of every
    modality and argument form. Each interpretation has its own effect on all questions of a
    modality, with a standard deviation of `words`.
    """
    forms = pd.DataFrame(
        {
            "form": form.id,
            "modality": form.modality,
            "argument_form": form.group,
            "gold": "Yes" if form.valid("form") else "No",
        }
        for form in main_forms()
    )
    rows = forms.merge(pd.DataFrame({"interpretation": range(INTERPRETATIONS)}), how="cross")
    rows = rows.merge(pd.DataFrame({"model": [f"m{n}" for n in range(models)]}), how="cross")
    model, modal, form = (
        pd.factorize(rows[name])[0] for name in ("model", "modality", "argument_form")
    )
    interpretation = rows["interpretation"].to_numpy()
    rows["relative_perplexity"] = rng.normal(size=len(rows)) + np.array([0.0, 1.0, -1.0])[modal]
    necessary, ponens = rows["modality"] == "box", rows["argument_form"] == "mp"
    rows["soft_accuracy"] = (
        0.6
        + modality * necessary
        + argument_form * ponens
        + interaction * (necessary & ponens)
        + perplexity * rows["relative_perplexity"]
        + rng.normal(0, 0.06, (models, 3))[model, modal] * (models > 1)
        + rng.normal(0, 0.06, (models, form.max() + 1))[model, form] * (models > 1)
        + rng.normal(0, words, (INTERPRETATIONS, 3))[interpretation, modal]
        + rng.normal(0, 0.15, len(rows))
    )
    return rows
