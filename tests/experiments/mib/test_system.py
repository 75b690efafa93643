"""MIB's tasks: rows in the published columns, and prompts generated or read."""

import pytest

import interp
from interp.errors import UserError
from interp.prompts.files import write_table
from interp_experiments.mib.system import PAIRS, addition, ioi
from tests.support.tiny import tiny_model

SYSTEMS = [ioi, addition]
COUNTERFACTUAL = {"mib-ioi": "s2_io_flip_counterfactual", "mib-addition": "random_counterfactual"}


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_a_row_makes_a_pair_of_prompts(system):
    rows = system.rows(0)
    assert rows == system.rows(0) != system.rows(1)
    prompts = interp.load_prompts(system.name, limit="all")
    assert len(prompts) == 2 * PAIRS
    for row, own, other in zip(rows, prompts[::2], prompts[1::2], strict=True):
        assert (own.side, other.side) == ("prompt", "counterfactual")
        assert (own.text, other.text) == (row["prompt"], row[COUNTERFACTUAL[system.name]]["prompt"])
        assert own.answer.contrast == other.answer.contrast == (own.answer.gold, other.answer.gold)
        assert own.answer.gold not in (other.answer.gold, "")


def test_the_indirect_object_is_the_name_that_occurs_once():
    first = 0
    for row in ioi.rows(0):
        names, other = row["metadata"], row["s2_io_flip_counterfactual"]
        receiver, subject = names["indirect_object"], names["subject"]
        for own, once, twice in ((row, receiver, subject), (other, subject, receiver)):
            text = own["prompt"]
            assert (text.count(once), text.count(twice)) == (1, 2)
            assert text.endswith(" to")
            assert own["choices"][own["answerKey"]] == once
        assert len({receiver, subject, *(names[f"random_{one}"] for one in "abc")}) == 5
        first += row["prompt"].find(receiver) < row["prompt"].find(subject)
    assert abs(first / PAIRS - 0.5) < 0.05


def test_roles_are_the_three_names():
    for prompt in ioi.prompts(seed=0, data=None)[:40]:
        found = [prompt.text[slice(*span)] for span in prompt.roles.values()]
        names = [option.name for option in prompt.answer.options]
        twice = [name for name in names if name != prompt.answer.gold]
        assert sorted(found) == sorted([*names, *twice])
        assert list(prompt.roles) == ["name1", "name2", "name3"]


def test_sums_are_right_and_begin_with_different_digits():
    for row in addition.rows(0):
        for own in (row, row["random_counterfactual"]):
            assert int(own["label"]) == own["operand1"] + own["operand2"]
            assert {str(own["operand1"]), str(own["operand2"])} <= set(own["prompt"].split())
            assert own["prompt"].endswith(" ")
        assert str(row["label"])[0] != str(row["random_counterfactual"]["label"])[0]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_rows_in_columns_of_mib_are_read(system, suffix, tmp_path):
    file = tmp_path / f"train{suffix}"
    write_table(system.dataset(seed=0).assign(idx=0).head(20), file)
    read = system.prompts(seed=0, data=str(file))
    generated = system.prompts(seed=0, data=None)[:40]
    assert [p.text for p in read] == [p.text for p in generated]
    assert [p.answer for p in read] == [p.answer for p in generated]


def test_rows_without_a_counterfactual_or_a_contrast_are_left_out(tmp_path):
    rows = addition.dataset(seed=0).head(3)
    rows.at[0, "random_counterfactual"] = None
    rows.at[1, "random_counterfactual"] = {"prompt": "1 plus 1 is ", "label": rows.at[1, "label"]}
    file = tmp_path / "rows.jsonl"
    write_table(rows, file)
    (own, _) = addition.prompts(seed=0, data=str(file))
    assert own.text == rows.at[2, "prompt"]


def test_rows_of_another_form_are_refused(tmp_path):
    rows = ioi.dataset(seed=0).head(4)
    file = tmp_path / "rows.jsonl"
    write_table(rows.assign(metadata="Anna"), file)
    with pytest.raises(UserError, match=r"^4\b.*\n.*line 1: .*\bMIB.*metadata"):
        ioi.prompts(seed=0, data=str(file))
    write_table(rows.drop(columns="metadata"), file)
    with pytest.raises(UserError, match=r"columns metadata.*template, prompt"):
        ioi.prompts(seed=0, data=str(file))


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: system.name)
def test_edges_of_generated_prompts_are_measured(system):
    prompts = interp.load_prompts(system.name, limit=2)
    result = interp.edges(tiny_model("llama"), prompts, methods=["gradient"])
    assert (result.pairs["error"] == "").all()
    assert result.edges["pair_id"].nunique() == 2
