import numpy as np
import pandas as pd

from interp_experiments.rulebreakers import planted
from interp_experiments.rulebreakers.system import system

PROMPTS = pd.DataFrame(
    [
        ["p", "mt", "Sweden", "Stockholm"],
        ["q", "ds", "Sweden", "Stockholm"],
        ["r", "mt", "Sweden", "Oslo"],
    ],
    columns=["prompt_id", "rule", "entity_a", "entity_b"],
)


def test_the_entity_that_premises_name_last_says_which_premise_is_read(monkeypatch):
    entities = [
        {"entity": "Stockholm", "log_odds": 2.0, "premise": "premise2"},
        {"entity": "Sweden", "log_odds": -2.0, "premise": "premise1"},
    ]
    monkeypatch.setattr(planted, "organism_names", lambda: ["organism/dose"])
    monkeypatch.setattr(planted, "organism_card", lambda name: {"entities": entities})
    found = system.planted_second("organism/dose", PROMPTS)
    np.testing.assert_equal(found.loc[["p", "q", "r"]].tolist(), [1.0, 0.0, np.nan])


def test_a_card_without_entities_and_any_other_model_have_nothing_planted():
    assert system.planted_second("organism/phi3-deep", PROMPTS) is None
    assert system.planted_second("org/model", PROMPTS) is None
