"""What the page on thoughts says, from tables with planted shares."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from interp.measurements.specs import Thoughts
from interp.measurements.thoughts.show import ThoughtEffects
from interp.report.page import TableItem
from interp.results.measured import InMemory
from tests.support.prompts import some_prompts

PROMPTS = some_prompts(40)
BY_RULE = {"mt": 1.0, "ds": 0.0}


def result(share_of, *, models=("org/model",), effect=2.0):
    """Tables in which a share of each prompt's effect passes through the thought."""
    rng, effects, answers = np.random.default_rng(0), [], []
    names = ("own", "changed", "own_under_other", "changed_under_other")
    kinds = (("empty", 0), ("whole", 1), ("placebo", None), ("filler", None))
    for model, (number, prompt) in product(models, enumerate(PROMPTS)):
        key = {"model": model, "prompt_id": prompt.id, "error": ""}
        sign, share = rng.choice([-1.0, 1.0]), share_of(prompt)
        size, parts = effect * rng.uniform(0.5, 1.5), [[1.0], [share], [1 - share], [0.0]]
        for segment in ("all", "premise1"):
            draws = (sign * size + rng.normal(0, 0.05, (4, 3))) * parts
            place = {"donor_kind": "instance", "donor": f"donor {number % 20}", "segment": segment}
            values = dict(zip(names, map(list, draws), strict=True))
            effects.append({**key, **place, "draws": 3, "draws_asked": 4, **values})
        answers.append({**key, "reading": "direct", "answer": "No", "value": -1.0})
        for draw, (kind, read) in product(range(3), kinds):
            answer = prompt.answer.gold if kind == "whole" else "No"
            place = {"draw": draw, "sentences": 1, "reading": kind, "sentence": read}
            answers.append({**key, **place, "answer": answer, "value": 1.0})
    readings = pd.DataFrame(answers)
    gold = {prompt.id: prompt.answer.gold for prompt in PROMPTS}
    readings["correct"] = readings["answer"] == readings["prompt_id"].map(gold)
    sentences = readings.loc[readings["reading"] == "direct", ["model", "prompt_id", "error"]]
    sentences = sentences.assign(sentence=1, sentences=1, text="So.", left_out=1.0)
    tables = {
        "thought_answers": readings,
        "thought_effects": pd.DataFrame(effects),
        "sentence_effects": sentences.assign(exchanged=np.nan, resampled=np.nan),
    }
    return ThoughtEffects(InMemory(Thoughts(), PROMPTS, tables))


def test_an_answer_that_is_read_from_the_thought():
    found = result(lambda prompt: 0.9)
    assert found.glance().question.endswith(" 80 prompts, 1 model.")
    numbers = found.opening().numbers.set_index("number")["value"]
    assert numbers["mediated share"] == pytest.approx(0.9, abs=0.01)
    assert numbers["accuracy after its thought"] == 1
    assert found.noted() == {"org/model": {"draws_without_end": 0.25}}
    # Nothing is said about a model whose prompts have no effect.
    numbers = result(lambda prompt: 0.5, effect=0.0).opening().numbers.set_index("number")
    assert np.isnan(numbers.loc["mediated share", "low"]) and numbers.loc["mediated share", "note"]


def test_groups_have_shares_of_their_own():
    groups = result(lambda prompt: BY_RULE[prompt.factors["rule"]]).derived()["group_table"]
    by_rule = groups[groups["factor"] == "rule"].set_index("value")["share"]
    assert by_rule["mt"] == pytest.approx(1.0, abs=0.02)
    assert by_rule["ds"] == pytest.approx(0.0, abs=0.02)


def test_two_models_have_rows_of_their_own_are_compared_and_tables_lead_to_pairs():
    models = ("org/one", "org/two")
    found = result(lambda prompt: 0.5, models=models)
    assert found.opening().numbers["number"].value_counts()["mediated share"] == 2
    table = found.mediation()
    segments = table.groupby("model")["segment"].apply(list).to_dict()
    assert segments == {model: ["all", "premise1"] for model in models}
    assert table["share"].tolist() == pytest.approx([0.5] * 4, abs=0.02)
    of = {"model": "org/one", "reading": "whole"}
    (right,) = (n for n in found.browser().numbers if n.name == "accuracy" and n.of == of)
    assert set(right.values) == {prompt.pair_id for prompt in PROMPTS}
    assert set(right.values.values()) == {1.0}
    table = found.derived()["reading_table_differences"].set_index("reading")
    assert (table["accuracy"] == 0).all() and table["prompts"].eq(len(PROMPTS)).all()
    assert "sentence_table_differences" not in found.derived()


def test_every_item_is_shown(tmp_path):
    found = result(lambda prompt: -0.0004)
    assert set(found.derived()) == {
        *("mediation_table", "reading_table", "early_answer_table", "sentence_table"),
        "group_table",
    }
    assert found.plot().axes
    for item in found.report().sections[0].items:
        if hasattr(item, "draw"):
            item.draw().figure.savefig(tmp_path / f"{item.name}.png")
    # Zero has no sign.
    items = [item for item in found.items() if isinstance(item, TableItem)]
    shown = pd.concat([table.astype(str) for item in items for _, table in item.shown])
    assert not shown.map(lambda cell: re.search("[-−]0\\.00", str(cell))).notna().any(axis=None)
    assert shown["share"].str.startswith("0.00 [").any()
