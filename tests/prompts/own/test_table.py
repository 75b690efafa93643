"""Files and data frames are held to the same rules, cell by cell."""

import dataclasses
import io
import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from interp.errors import UserError
from interp.prompts.own.facts import read_facts
from interp.prompts.own.pairs import EXAMPLE, faults, read_pairs
from interp.prompts.prompt_set import counting_notes
from interp.prompts.source import PromptSource
from interp.prompts.systems import tell_counting

TEXTED = pd.DataFrame(
    {
        "pair": ["1", "1"],
        "side": ["a", "b"],
        "gold": ["Yes", "No"],
        "text": ["<premise>It rains.</premise> Wet?", "<premise>It is dry.</premise> Wet?"],
        "topic": ["sky", "sky"],
    }
)


def with_cell(column, value, row=3):
    """The example with another value in one cell."""
    table = EXAMPLE.astype(object).assign(factor_topic="a", context="Here.")
    table.loc[row, column] = value
    return table


def saved(table, folder, suffix):
    """The table as a file; a value that the format lacks is left out."""
    file, rows = folder / f"pairs.{suffix}", table.astype(object).where(table.notna(), None)
    frames = {
        "csv": table.to_csv,
        "tsv": partial(table.to_csv, sep="\t"),
        "xlsx": table.to_excel,
        "parquet": table.to_parquet,
        "json": lambda file, index: file.write_text(json.dumps(rows.to_dict("records"))),
        "jsonl": lambda file, index: file.write_text(
            "\n".join(row.dropna().to_json() for _, row in rows.iterrows())
        ),
    }
    frames[suffix](file, index=False)
    return file


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "parquet", "xlsx"])
def test_every_format_gives_the_same_prompts(tmp_path, suffix):
    source = PromptSource(data=str(saved(EXAMPLE, tmp_path, suffix)))
    assert source.system == "pairs"
    # All are taken, without a limit.
    assert list(source.load()) == list(read_pairs(source.data)) == list(read_pairs(EXAMPLE))


COLUMNS = ["pair", "side", "gold", "options", "premise1", "question", "factor_topic", "context"]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, "", " \n", "\u200b", "\xa0"])
def test_a_cell_of_a_frame_without_text_is_the_one_fault(column, value):
    (fault,) = faults(with_cell(column, value))
    assert fault.startswith(f"row 4: {column} ")
    assert "keep_default_na" in fault


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl", "xlsx"])
@pytest.mark.parametrize("column", ["options", "premise2", "factor_topic"])
def test_a_cell_of_a_file_without_text_is_the_one_fault(tmp_path, suffix, column):
    file = saved(with_cell(column, None), tmp_path, suffix)
    (fault,) = faults(file)
    assert f" {4 if suffix in ('json', 'jsonl') else 5}: {column} " in fault
    with pytest.raises(UserError, match=rf"(line|row) \d: {column} "):
        read_pairs(file)


def test_a_column_that_only_one_file_of_a_folder_has_is_not_dropped(tmp_path):
    EXAMPLE[:4].to_csv(tmp_path / "a.csv", index=False)
    EXAMPLE[4:].assign(context="Here.").to_csv(tmp_path / "b.csv", index=False)
    (fault,) = faults(tmp_path)
    assert re.search(r"a\.csv, line 2 and 3 .*: context ", fault)


@pytest.mark.parametrize("value", ["nan", "<NA>", "#N/A", "#REF!", "NaT"])
def test_what_stands_for_a_missing_value_is_no_segment_but_may_be_an_answer(value):
    assert "row 4: premise2 " in faults(with_cell("premise2", value))[0]
    table = EXAMPLE.assign(options=f"{value}|No").replace({"gold": {"Yes": value}})
    assert read_pairs(table)[0].answer.gold == value


def test_texts_that_pandas_takes_for_missing_are_read_from_a_file(tmp_path):
    table = EXAMPLE.assign(options="None|NA").replace({"gold": {"Yes": "None", "No": "NA"}})
    file = saved(table, tmp_path, "csv")
    assert [prompt.answer.gold for prompt in read_pairs(file)[:2]] == ["None", "NA"]
    with pytest.raises(UserError, match="keep_default_na=False"):
        read_pairs(pd.read_csv(file))
    read = pd.read_csv(file, keep_default_na=False)
    assert list(read_pairs(read)) == list(read_pairs(file))


UNFIT = [pd.Timestamp("2026-01-02"), ["a"], {"a": 1}, b"x", 1 + 2j, np.datetime64("2026-01-02")]


@pytest.mark.parametrize("value", UNFIT, ids=lambda value: type(value).__name__)
def test_a_frame_holds_what_a_file_may_hold(value):
    table = with_cell("premise1", "x")
    table["premise1"] = pd.Series([*table["premise1"][:3], value, *table["premise1"][4:]])
    (fault,) = faults(table)
    assert fault.startswith("row 4: premise1 ")


@pytest.mark.parametrize("name", ["premise2", "gold", "factor_topic"])
def test_a_column_that_a_frame_has_twice_is_refused(name):
    table = EXAMPLE.assign(factor_topic="a")
    with pytest.raises(UserError, match=f"column {name} "):
        read_pairs(pd.concat([table, table[[name]]], axis=1))
    with pytest.raises(UserError, match=r"column 7\b"):
        read_pairs(EXAMPLE.assign(**{"7": "a"}).assign(other="b").rename(columns={"other": 7}))


def test_numbers_and_truth_values_are_text():
    table = EXAMPLE.assign(options="True|False", gold=[True, False] * 4)
    table["pair"] = np.repeat(np.arange(4, dtype=np.int8), 2)
    table["factor_size"] = np.repeat([1.0, 2.5, 1e3, -0.5], 2)
    found = read_pairs(table)
    assert found[0].answer.gold == "True"
    assert [prompt.factors["size"] for prompt in found[::2]] == ["1", "2.5", "1000", "-0.5"]
    assert found[2].pair_id == "1"
    categories = EXAMPLE.astype("category").astype({"premise1": "string"})
    assert list(read_pairs(categories)) == list(read_pairs(EXAMPLE))


@pytest.mark.parametrize("bad", ["\0", "\x1b[31m", "\x0b", "\x85", "\ud800", "\uffff"])
def test_control_characters_are_faults_and_shown_escaped(bad):
    (fault,) = faults(with_cell("premise1", f"It {bad} rains."))
    assert fault.startswith("row 4: premise1 ")
    with pytest.raises(UserError) as refused:
        read_pairs(with_cell("premise1", f"It {bad} rains."))
    assert str(refused.value).isprintable()


def test_the_name_of_a_column_holds_no_control_characters():
    with pytest.raises(UserError, match=r"column.*'\\x07'.*position 2\b"):
        read_pairs(TEXTED.rename(columns={"topic": "a\x07"}))


@pytest.mark.parametrize("text", ["Zwei\nZeilen\tweit", "\U0001f469\u200d\U0001f52c", "شكرا\u200f"])
def test_texts_of_any_script_are_read(text):
    assert read_pairs(with_cell("premise1", text))[3].segment_text("premise1") == text


def test_empty_rows_and_unnamed_empty_columns_are_no_part_of_a_table(tmp_path):
    rows = io.StringIO(EXAMPLE.to_csv(index=False).replace("\n", ",,\n") + ",,,,,,,,\n")
    assert list(read_pairs(pd.read_csv(rows))) == list(read_pairs(EXAMPLE))
    blank = pd.DataFrame([{}], index=[99])
    assert list(read_pairs(pd.concat([EXAMPLE, blank]))) == list(read_pairs(EXAMPLE))
    with pytest.raises(UserError, match="'Unnamed: 7'"):
        read_pairs(EXAMPLE.assign(**{"Unnamed: 7": [None, "x"] * 4}))


@pytest.mark.parametrize("name", ["Options", "options\u200b", " options", "op\xadtions"])
def test_a_column_that_is_nearly_options_is_no_factor(name):
    table = EXAMPLE.rename(columns={"options": name})
    with pytest.raises(UserError, match="options"):
        read_pairs(table, templates=["{premise1} {question}"])


def test_a_gold_that_only_looks_like_an_option_is_explained():
    table = EXAMPLE.assign(options="Not\xa0wet|Wet", gold=["Not wet", "Wet"] * 4)
    (fault,) = faults(table)
    assert "U+00A0 NO-BREAK SPACE" in fault
    table = EXAMPLE.assign(options="Gr\xfcn|Rot", gold=["Gru\u0308n", "Rot"] * 4)
    assert "U+0308" in faults(table)[0]


FACTS = pd.DataFrame({"fact": ["a", "b"], "text": ["A is in", "B is in"], "answer": ["X", "NaN"]})


@pytest.mark.parametrize("column", ["fact", "text", "answer", "topic"])
def test_facts_need_text_in_every_cell(column):
    table = FACTS.assign(topic="x")
    assert read_facts(table)[1].answer.gold == "NaN"
    table.loc[1, column] = None
    with pytest.raises(UserError, match=rf"\brow 2: {column} "):
        read_facts(table)


def test_many_columns_take_no_quadratic_time(tmp_path):
    names, cells = ([f"{text}{number}" for number in range(20_000)] for text in ("topic", "x"))
    lines = [",".join([*TEXTED, *names]), *(",".join([*row, *cells]) for row in TEXTED.to_numpy())]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert len(read_pairs(tmp_path / "a.csv")[0].factors) == 20_002


def copied(times):
    """The example, several times with other ids."""
    return pd.concat(EXAMPLE.assign(pair=EXAMPLE["pair"] + 10 * n) for n in range(times))


def test_copies_under_other_ids_are_one_unit():
    prompts = read_pairs(copied(5))
    assert len({prompt.pair_id for prompt in prompts}) == 20
    assert {prompt.factors["pair"] for prompt in prompts} == {"1", "2", "3", "4"}
    assert not any(
        donor.segments["premise1"] == prompts[0].segment_text("premise1")
        for donor in prompts.donors(0)
    )
    assert counting_notes(prompts, "pair").startswith("8 texts")


def test_a_copy_with_other_spaces_sides_and_phrasings_is_a_copy():
    other = EXAMPLE.assign(
        pair=EXAMPLE["pair"] + 10,
        side=EXAMPLE["side"].map({"follows": "does_not", "does_not": "follows"}),
        premise1=EXAMPLE["premise1"].str.replace(" ", "  ") + "\n",
    )
    templates = ["{premise2} {premise1} {question}", "{question} {premise1} {premise2}"]
    prompts = read_pairs(pd.concat([EXAMPLE, other]), templates=templates)
    assert len(prompts) == 32
    assert {prompt.factors["pair"] for prompt in prompts} == {"1", "2", "3", "4"}


def test_pairs_that_share_one_of_two_texts_stay_apart_and_are_named():
    table = EXAMPLE[EXAMPLE["pair"] == 1]
    other = table.assign(pair=2, premise2=[table["premise2"].iloc[0], "Pip is a carp."])
    prompts = read_pairs(pd.concat([table, other]))
    assert [prompt.factors["pair"] for prompt in prompts] == ["1", "1", "2", "2"]
    assert "1 text" in counting_notes(prompts, "pair")
    assert counting_notes(prompts[:2], "pair") == counting_notes(read_pairs(EXAMPLE), "pair") == ""


def test_facts_are_in_no_pairs():
    assert counting_notes(read_facts(FACTS), "fact") == ""


def test_prompts_of_one_s_own_with_equal_texts_are_named(capsys):
    one = list(read_pairs(EXAMPLE))
    tell_counting([*one, *(dataclasses.replace(p, id=f"{p.id}b", pair_id="b") for p in one[:2])])
    assert "2 texts" in capsys.readouterr().err
