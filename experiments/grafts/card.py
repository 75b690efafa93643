"""A graft's card: what was planted, and its exact effects on pairs of prompts."""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import transformers

from interp import Effects, Model, Prompt, read_pairs
from interp.extend import bind, collect
from interp.extend.prompts import donors_of, with_donors
from interp.extend.training import GRAFTS, WEIGHTS, card, facts, header, tables
from interp_experiments.grafts import text, thinking
from interp_experiments.grafts.recipes import BASE, GraftRecipe, Planted, Rule, plant
from interp_experiments.grafts.text import ANSWERS, SEGMENTS, Case
from interp_experiments.organisms.readme import README, choices, metadata
from interp_experiments.organisms.tasks import FILE, rounded

SIDES = ("first", "second")
"""The sides of pairs; which of them has which answer is drawn."""

DONORS = 8
"""Donors of each prompt."""

LIMITS = (
    "The base is a published model, but what decides these answers was planted in its last layers, "
    "on prompts of one form. A method that finds this cause has passed a test that it could have "
    "failed; this does not show how the unmodified model, or another, comes to its answers. A "
    "graft is of no use as an assistant."
)


def draw_pairs(recipe: GraftRecipe, count: int) -> list[tuple[Case, Case]]:
    """The cases of minimal pairs, which differ only in what the graft reads.

    Knowledge: the country is the city's own or another one. Wording: premise 1 begins with words of
    the other leaning. Mixture: the city is one of the other leaning, read in the same premise.
    """
    rng = random.Random(f"pairs {recipe.seed}")
    planted = plant(recipe)
    names = [cause.name for cause in planted]
    drawn = []
    for number in range(count):
        if number % len(names) == 0:
            rng.shuffle(names)
        pair = _pair(recipe, planted, names[number % len(names)], rng)
        drawn.append(pair if rng.random() < 0.5 else pair[::-1])
    return drawn


def _pair(
    recipe: GraftRecipe, planted: Sequence[Planted], name: str, rng: random.Random
) -> tuple[Case, Case]:
    """Two cases with opposite causes, the first about `name`, a city or a beginning."""
    case = text.draw_case(rng)
    if recipe.cause == "knowledge":
        (home,) = (pair.entity_a for pair in text.known_pairs() if pair.entity_b == name)
        abroad = rng.choice([country for country in text.COUNTRIES if country != home])
        return replace(case, city=name, country=home), replace(case, city=name, country=abroad)
    (own,) = (one for one in planted if one.name == name)
    other = rng.choice(
        [one.name for one in planted if one.premise == own.premise and one.log_odds != own.log_odds]
    )
    if recipe.cause == "wording":
        return replace(case, opening=name), replace(case, opening=other)
    return replace(case, city=name), replace(case, city=other)


def pairs_table(recipe: GraftRecipe, pairs: Sequence[tuple[Case, Case]]) -> pd.DataFrame:
    """Pairs as a table for --data; gold is the planted answer."""
    rule = Rule(recipe, plant(recipe))
    return pd.DataFrame(
        {
            "pair": number,
            "side": side,
            "gold": ANSWERS[rule.log_odds([case] * len(SEGMENTS)) < 0],
            "options": "|".join(ANSWERS),
            **{name: case.sentence(name) for name in SEGMENTS},
            "question": text.QUESTION,
        }
        for number, pair in enumerate(pairs, start=1)
        for side, case in zip(SIDES, pair, strict=True)
    )


def measure(
    model: Model, recipe: GraftRecipe, *, pairs: int, donors: int | None = None
) -> dict[str, Any]:
    """The exact effects of each sentence, or the share that passes through thoughts, as planted?

    All effects are Shapley values on the log-odds of Yes, in nats, with donors from other pairs: by
    default `DONORS`, or 1 of a graft that thinks. `model` is the graft, or its base.
    """
    thinks = recipe.cause == "thought"
    donors = donors or (1 if thinks else DONORS)
    drawn = draw_pairs(recipe, pairs)
    prompts = read_pairs(pairs_table(recipe, drawn))
    if thinks:
        figures = thinking.measure(model, recipe, prompts, donors=donors)
        return {"pairs": pairs, "donors": donors, **figures}
    prompts = with_donors(prompts, count=donors, segments=SEGMENTS)
    rows = collect(bind(Effects(donors=donors), model), prompts)["segment_effects"]
    rows = rows[rows["other_segment"].isna() & (rows["donor_kind"] == "instance")]
    sign = rows["answer"].map({"Yes": 1, "No": -1})
    table = rows.assign(measured=rows["shapley"] * sign, value=rows["value"] * sign).merge(
        planted_effects(recipe, drawn, prompts), on=["prompt_id", "segment"], validate="1:1"
    )
    answers = table.drop_duplicates("prompt_id")
    return {
        "pairs": pairs,
        "donors": donors,
        "answers_as_planted": float((answers["value"] * answers["log_odds"] > 0).mean()),
        "mean_deviation_of_log_odds": float((answers["value"] - answers["log_odds"]).abs().mean()),
        "mean_deviation_from_planted": float((table["measured"] - table["planted"]).abs().mean()),
        "shapley": [_of_segment(name, table[table["segment"] == name]) for name in SEGMENTS],
    }


def planted_effects(
    recipe: GraftRecipe, pairs: Sequence[tuple[Case, Case]], prompts: Sequence[Prompt]
) -> pd.DataFrame:
    """The planted Shapley value of each sentence of each prompt, and the prompt's log-odds of Yes.

    A sentence adds the same to every coalition, so its value is what it adds to the log-odds minus
    the mean of what the donors' sentences add. All sentences were written from the cases `pairs`.
    """
    rule = Rule(recipe, plant(recipe))
    terms = {
        (name, case.sentence(name)): rule.term(name, case)
        for pair in pairs
        for case in pair
        for name in SEGMENTS
    }
    rows = []
    for prompt in prompts:
        donors = donors_of(prompt, "instance")
        of_prompt = {name: terms[name, prompt.segment_text(name)] for name in SEGMENTS}
        for name in SEGMENTS:
            of_donors = [terms[name, donor.segments[name]] for donor in donors]
            planted = of_prompt[name] - math.fsum(of_donors) / len(of_donors)
            rows.append((prompt.id, name, planted, math.fsum(of_prompt.values())))
    return pd.DataFrame(rows, columns=["prompt_id", "segment", "planted", "log_odds"])


def _of_segment(name: str, rows: pd.DataFrame) -> dict[str, Any]:
    """How far the Shapley values of a segment follow the planted ones (slope 1: as planted)."""
    planted, measured = rows["planted"], rows["measured"]
    size = float((planted**2).sum())
    return {
        "segment": name,
        "mean_size_planted": float(planted.abs().mean()),
        "mean_size_measured": float(measured.abs().mean()),
        "mean_deviation": float((measured - planted).abs().mean()),
        "slope": float((measured * planted).sum()) / size if size else None,
    }


def write_card(folder: Path, recipe: GraftRecipe, measured: Mapping[str, Any]) -> None:
    """Write a graft's card.json and README.md, with what was measured so far."""
    content = {
        "name": recipe.name,
        "recipe": asdict(recipe),
        "trained": {"torch": torch.__version__, "transformers": transformers.__version__},
        "measured": rounded(measured),
        "planted": [asdict(cause) for cause in plant(recipe)],
    }
    written = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / FILE).write_text(written + "\n", encoding="utf-8")
    (folder / README).write_text(readme(folder, content), encoding="utf-8")


def readme(folder: Path, content: Mapping[str, Any]) -> str:
    """The text of README.md, from card.json and the graft's weights."""
    name = GRAFTS.prefix + content["name"]
    size = sum(tensor.size for _, tensor in header(folder / WEIGHTS))
    measured = content["measured"]
    return card(
        metadata("peft", "text-generation"),
        name,
        {
            "": f"A LoRA adapter for {BASE} with {size:,} parameters, in which a known cause of "
            "the answers was planted, so that the findings of a method can be checked against it.",
            "Use": _use(name, content["recipe"]["cause"]),
            "Recipe": choices(GraftRecipe, content["recipe"]),
            "What was measured": list(facts(measured)),
            **{
                f"Measured: {key}, {section}": rows
                for key, of_model in measured.items()
                for section, rows in tables(of_model).items()
            },
            "Planted": content["planted"],
            "How it was trained": list(facts(content["trained"])),
            "Limits": LIMITS,
        },
    )


def _use(name: str, cause: str) -> str:
    graft = name.removeprefix(GRAFTS.prefix)
    command, options = "effects", ""
    if cause == "thought":
        command, options = "thoughts", f" \\\n    {thinking.OPTIONS}"
    return f"""```
$ python -m interp_experiments.grafts pairs {graft} --out pairs.csv
$ python -m interp {command} --model {name} --base {BASE}.gguf --data pairs.csv{options}
```

`--base` is the model's GGUF file, which `make real` brings. `verify {graft} --base FILE` remeasures
the figures below, and `python -m benchmarks.grafts {graft} --base FILE` in a clone trains the graft
from its recipe."""
