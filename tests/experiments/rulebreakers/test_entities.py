import numpy as np
import pandas as pd
import pytest

from interp_experiments.rulebreakers.entities import entities, extremes
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.ratios import attribution, attribution_section
from tests.support.rulebreakers import results_of

ENTITIES = pd.DataFrame(
    {
        "model": ["m"] * 5 + ["n"] * 5,
        "entity_pair": list("abcde") * 2,
        "paired_accuracy": [0.9, 0.1, 0.5, 0.5, 0.0, 0.7, 0.3, 0.6, 0.6, np.nan],
        "pairs": 40,
    }
)


def test_the_ends_are_ordered_by_the_estimate_then_by_name():
    table = extremes(ENTITIES, k=2)
    assert table["end"].tolist() == ["most"] * 2 + ["least"] * 2
    assert table["entity_pair"].tolist() == ["a", "c", "e", "b"]
    assert table["share"].tolist() == pytest.approx([0.8, 0.55, 0.0, 0.2])
    assert table["models"].tolist() == [2, 2, 1, 2]
    assert table["trials"].tolist() == [80, 80, 40, 80]
    assert table["estimate"].between(table["low"], table["high"], inclusive="neither").all()
    # One lucky answer is not the best of all.
    lucky = ENTITIES.iloc[[0, 5]].assign(entity_pair="z", paired_accuracy=1.0, pairs=1)
    table = extremes(pd.concat([ENTITIES, lucky]), k=1)
    assert table["entity_pair"][0] == "a"
    # Equal estimates have no ends.
    alike = ENTITIES.dropna(subset="paired_accuracy").assign(paired_accuracy=0.5)
    table = extremes(alike)
    assert table.empty and "end" in table


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_no_entity_pair_stands_at_both_ends(k):
    table = extremes(ENTITIES, k=k)
    assert table["entity_pair"].is_unique
    assert len(table) == min(2 * k, 5)


def test_the_ends_say_how_many_intervals_are_apart_and_give_no_ranks():
    models = [ENTITIES[:5].assign(model=str(number)) for number in range(6)]
    table = extremes(pd.concat(models), k=2)
    assert "rank" not in table
    ends = table.set_index(["end", "entity_pair"])
    apart = {
        (one, other): ends.loc[("most", one), "low"] > ends.loc[("least", other), "high"]
        for one in ends.loc["most"].index
        for other in ends.loc["least"].index
    }
    for end, place in (("most", 0), ("least", 1)):
        for name, number in ends.loc[end, "apart"].items():
            assert number == sum(value for key, value in apart.items() if key[place] == name)
    assert 0 < sum(apart.values()) < 4


@pytest.fixture
def study():
    """Two models, entity pairs u (two pairs of prompts) and v (one); the second model is right."""
    prompts = pd.DataFrame(
        {
            "prompt_id": ["1b", "1k", "2b", "2k", "3b", "3k"],
            "pair_id": list("112233"),
            "side": SIDES * 3,
            "entity_pair": list("uuuuvv"),
            "entity_group": "geographical",
            # The pair about v counts twice.
            "weight": [1.0, 1.0, 1.0, 1.0, 2.0, 2.0],
        }
    )
    right = [True, True, False, True, False, False]
    first = prompts[["prompt_id"]].assign(model="m", correct=right)
    answers = pd.concat([first, first.assign(model="n", correct=True)], ignore_index=True)
    ratio = np.array([1.0, 2.0, 3.0, np.nan, 4.0, 6.0])
    asked = prompts[["prompt_id"]].assign(target="predicted", ratio_unnormalized=0.5)
    ratios = pd.concat(
        asked.assign(model=model, method=method, ratio=ratio * factor)
        for model in "mn"
        for method, factor in (("input_gradient", 1), ("attention", 10))
    )
    familiarity = pd.DataFrame(
        {"model": ["m", "m", "n"], "entity_pair": list("uvu"), "familiarity": [0.2, 0.4, 0.9]}
    )
    return results_of(answers=answers, prompts=prompts, ratios=ratios, familiarity=familiarity)


def test_the_entity_level_by_hand(study):
    table = entities(study)
    expected = {
        "entity_pair": ["u", "v", "u", "v"],
        "model": ["m", "m", "n", "n"],
        "rulebreaker_accuracy": [0.5, 0.0, 1.0, 1.0],
        "non_rulebreaker_accuracy": [1.0, 0.0, 1.0, 1.0],
        "paired_accuracy": [0.5, 0.0, 1.0, 1.0],
        "pairs": [2, 1, 2, 1],
        "gradient_ratio": [2.0, 5.0, 2.0, 5.0],
        "attention_ratio": [20.0, 50.0, 20.0, 50.0],
        "familiarity": [0.2, 0.4, 0.9, np.nan],
        "entity_group": ["geographical"] * 4,
    }
    pd.testing.assert_frame_equal(table, pd.DataFrame(expected), check_names=False)


def test_the_model_level_by_hand(study):
    table = attribution(study)
    assert table["model"].tolist() == ["m", "n"]
    mean, geometric = (1 + 2 + 3 + 2 * 4 + 2 * 6) / 7, (1 * 2 * 3 * 4**2 * 6**2) ** (1 / 7)
    expected = {
        "paired_accuracy": [1 / 4, 1.0],
        "rulebreaker_accuracy": [1 / 4, 1.0],
        "familiarity": [0.3, 0.9],
        "gradient_mean_ratio": [mean] * 2,
        "attention_mean_ratio": [10 * mean] * 2,
        "gradient_geometric": [geometric] * 2,
        "gradient_mean_ratio_unnormalized": [0.5] * 2,
        "pairs": [3, 3],
    }
    for name, values in expected.items():
        assert table[name].tolist() == pytest.approx(values), name


def test_every_published_number_stands_below_a_measured_one(study):
    item = next(one for one in attribution_section(study).items if one.name == "attribution")
    assert item.on_page["source"].value_counts().to_dict() == {"published": 6, "measured": 2}
    assert item.on_page.drop(columns=["pairs"], errors="ignore").notna().all(axis=None)
    published = item.on_page.query("model == 'Mistral-7B-Instruct-v0.3'").iloc[0]
    assert (published["gradient_mean_ratio"], published["paired_accuracy"]) == (0.844, 0.474)
