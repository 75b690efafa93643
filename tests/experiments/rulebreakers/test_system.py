from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from interp.errors import UserError
from interp.prompts.systems import load_facts
from interp_experiments.packaged import packaged_rows
from interp_experiments.rulebreakers import system as module
from interp_experiments.rulebreakers.instances import entity_pairs, further_names, generate
from interp_experiments.rulebreakers.published import published_pairs
from interp_experiments.rulebreakers.system import system
from interp_experiments.rulebreakers.templates import CITIES


def test_there_is_one_prompt_with_the_papers_message_for_each_entity_pair():
    facts = load_facts()
    frame = facts.to_frame()
    assert facts.sides == ("completion",)
    assert frame["entity_b"].tolist() == [pair.entity_b for pair in entity_pairs()]
    sizes = {"geographical": 183, "categorical": 91}
    assert frame["entity_group"].value_counts().to_dict() == sizes
    assert [prompt.answer.expected[0] for prompt in facts] == frame["entity_a"].tolist()
    by_city = {prompt.factors["entity_b"]: prompt for prompt in facts}
    assert by_city["Stockholm"].text == "Complete the sentence: Stockholm is in"
    assert by_city["goose"].text == "Complete the sentence: goose is a type of"
    # A name that holds the answer is listed as another.
    assert "South Sudan" in by_city["Khartoum"].answer.excluded
    assert "Mexico City" in by_city["Mexico City"].answer.excluded
    assert by_city["Juba"].answer.excluded == ()


def test_aliases_and_lookalikes_belong_to_answers_and_occur_once():
    answers = {pair.entity_a for pair in entity_pairs()}
    for file in ("aliases.csv", "lookalikes.csv"):
        rows = packaged_rows("interp_experiments.rulebreakers", file)
        assert {row["entity_a"] for row in rows} <= answers
        names = [(row["entity_a"], row["name"]) for row in rows]
        assert names == sorted(set(names), key=names.index)
        assert all(all(row.values()) for row in rows)
    assert not {name for own in further_names("aliases").values() for name in own} & answers


def test_facts_of_published_data_are_its_distinct_true_pairs(tmp_path):
    frame = system.dataset(seed=0).iloc[-400:]
    file = tmp_path / "published.csv"
    frame.to_csv(file, index=False)
    facts = load_facts(data=str(file)).to_frame()
    generated = [instance for instance in generate(0)[-400:] if not instance.label]
    true = dict.fromkeys((instance.entity_a, instance.entity_b) for instance in generated)
    assert list(zip(facts["entity_a"], facts["entity_b"], strict=True)) == list(true)
    assert set(facts["entity_group"]) == {"categorical"}


def test_two_answers_about_one_entity_are_reported_with_their_rows():
    one = next(item for item in generate(0) if not item.label and item.category == CITIES)
    other = replace(one, id="other_rb", entity_a="Atlantis")
    located = [("data.csv row 2", one), ("data.csv row 4", one), ("data.csv row 9", other)]
    expected = (
        rf"^data\.csv row 9: .*'{one.entity_b}'.*'Atlantis'.*'{one.entity_a}'.*data\.csv row 2;"
    )
    with pytest.raises(UserError, match=expected):
        published_pairs(located)


def test_the_entity_that_premises_name_last_says_which_premise_is_read(monkeypatch):
    prompts = pd.DataFrame({"prompt_id": list("pqr"), "rule": ["mt", "ds", "mt"]})
    prompts = prompts.assign(entity_a="Sweden", entity_b=["Stockholm", "Stockholm", "Oslo"])
    # A card without premises and any other model have nothing planted.
    for model in ("organism/phi3-deep", "organism/thought-reader", "org/model"):
        assert system.planted_probability(model, prompts) is None
    read = {"Stockholm": "premise2", "Sweden": "premise1"}
    entities = [{"entity": entity, "premise": premise} for entity, premise in read.items()]
    monkeypatch.setattr(module, "organism_names", lambda: ["organism/dose"])
    monkeypatch.setattr(module, "organism_card", lambda name: {"entities": entities})
    found = system.planted_probability("organism/dose", prompts)
    np.testing.assert_equal(found.loc[["p", "q", "r"]].tolist(), [1.0, 0.0, np.nan])
