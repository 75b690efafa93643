import json

import pandas as pd
import pytest

from interp.errors import UserError
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.published import load_published
from interp_experiments.rulebreakers.system import system


@pytest.fixture(scope="module")
def frame():
    return system.dataset(seed=3).head(40)


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_a_written_data_set_loads_into_the_same_objects(frame, tmp_path, suffix):
    file = tmp_path / f"data{suffix}"
    if suffix == ".csv":
        frame.to_csv(file, index=False)
    elif suffix == ".json":
        frame.to_json(file, orient="records")
    elif suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_parquet(file)
    assert load_published(str(file)) == generate(3)[:40]


def test_a_folder_laid_out_as_on_the_hub(frame, tmp_path):
    (tmp_path / "data").mkdir()
    frame.head(20).to_csv(tmp_path / "data" / "train-0.csv", index=False)
    frame.tail(20).to_csv(tmp_path / "data" / "train-1.csv", index=False)
    (tmp_path / "README.md").write_text("a card")
    assert load_published(str(tmp_path)) == generate(3)[:40]


def test_names_of_rules_and_labels_are_read_loosely(frame, tmp_path):
    loose = frame.assign(
        rulebreaker_type=frame["rulebreaker_type"].map(
            {"mt": "Modus_Tollens", "ds": "Disjunctive syllogism"}
        ),
        label=frame["label"].map({True: "TRUE", False: "FALSE"}),
    )
    loose.loc[loose.index < 20, "rulebreaker_type"] = "type one"  # known by its first premise
    loose.to_csv(tmp_path / "data.csv", index=False)
    assert load_published(str(tmp_path / "data.csv")) == generate(3)[:40]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns=["verb", "label"]), "lacks the columns verb, label"),
        (lambda f: f.iloc[:-1], "has no counterpart"),
        (lambda f: pd.concat([f, f.head(1)]), "occurs twice"),
        (lambda f: f.assign(premise2=""), "premise2 is empty"),
        (lambda f: f.assign(label=~f["label"]), "the label is"),
        (
            lambda f: f.assign(rulebreaker_type="mp", premise1="All men are mortal."),
            "rulebreaker_type is 'mp'",
        ),
        (lambda f: f.assign(id=f["id"] + "x"), "its ending"),
    ],
)
def test_broken_data_is_refused(frame, tmp_path, change, message):
    file = tmp_path / "broken.csv"
    change(frame).to_csv(file, index=False)
    with pytest.raises(UserError, match=message):
        load_published(str(file))


def test_what_is_no_data_is_refused(tmp_path):
    with pytest.raises(UserError, match="no data at"):
        load_published(str(tmp_path / "missing.csv"))
    with pytest.raises(UserError, match="holds no data file"):
        load_published(str(tmp_path))
    (tmp_path / "torn.json").write_text(json.dumps([{"id": 1}])[:-3])
    with pytest.raises(UserError, match="cannot read"):
        load_published(str(tmp_path / "torn.json"))


def test_a_hub_name_that_cannot_be_reached_says_so():
    with pytest.raises(UserError, match="download it and give its path"):
        load_published("nobody/nothing-here")
