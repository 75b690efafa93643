import csv
import re
from dataclasses import replace

import pytest

from interp.errors import UserError
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS, evaluation_set
from interp_experiments.robustlr.learning import training_set
from interp_experiments.robustlr.published import COLUMNS, load_published, to_row
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.system import system

REAL = Words.of("real")


def made(*names, number=3):
    makers = [evaluation_set(name, 0, REAL) for name in names]
    return [one for maker in makers for i in range(number) for one in maker.group(i)]


def write(path, rows, columns=COLUMNS, *, header=True):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        if header:
            writer.writerow(columns)
        writer.writerows([[row[column] for column in columns] for row in rows])
    return path


@pytest.mark.parametrize("header", [True, False])
def test_what_is_written_is_read(tmp_path, header):
    instances = made(*EVALUATION_SETS)
    file = write(tmp_path / "test.csv", map(to_row, instances), header=header)
    for one, read in zip(instances, load_published(file), strict=True):
        # A rule of one literal in its body says "and" as well as "or".
        named = replace(read, theory_id=one.theory_id, theory=one.theory)
        assert (named, read.context) == (one, one.context)


def test_a_folder_may_hold_several_edits_of_one_theory(tmp_path):
    for name in ("C-CS", "N-CS"):
        rows = [to_row(one) for one in made(name, number=1)]
        named = [{**row, "theory_id": f"7dfe482a_{row['theory_id'].split('_')[1]}"} for row in rows]
        write(tmp_path / f"{name}.csv", named, header=False)
    read = load_published(tmp_path)
    assert {one.theory_id for one in read} == {"7dfe482a-conj", "7dfe482a-neg"}
    assert len({one.id for one in read}) == 11


def test_rows_without_a_theory_id_stand_alone(tmp_path):
    group = training_set("All", "train", 0).group(0)
    rows = [to_row(one) for one in group]
    for name, columns, header in (
        ("hub.csv", COLUMNS[:3], True),
        ("train.csv", COLUMNS[:6], False),
        ("train2.csv", COLUMNS[:6], True),
    ):
        read = load_published(write(tmp_path / name, rows, columns, header=header))
        assert [one.label for one in read] == [one.label for one in group]
        assert {one.version for one in read} == {"statement"}
        prompts = system.prompts(seed=0, data=str(tmp_path / name))
        prompts.check()
        assert len(prompts) == 6


def changed(rows, place, **cells):
    return [{**row, **cells} if number == place else row for number, row in enumerate(rows)]


def refused(tmp_path, rows, columns=COLUMNS):
    with pytest.raises(UserError) as error:
        load_published(write(tmp_path / "test.csv", rows, columns))
    assert len(str(error.value)) < 900
    return str(error.value)


@pytest.fixture
def rows():
    return [to_row(one) for one in made("C-CS", "D1-ES", number=2)]


def swapped(rows):
    """Two edits of one group, each under the other's name."""
    one, other = (rows[place]["theory_id"] for place in (1, 2))
    return changed(changed(rows, 1, theory_id=other), 2, theory_id=one)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: changed(rows, 1, label=1), r"csv, line 3: .*label .* 1 \(True\).* 2 \("),
        (
            lambda rows: changed(rows, 2, context="Anna likes Bob. Bob is tall."),
            r"csv, line 4: 'Anna likes Bob'",
        ),
        (
            lambda rows: rows[:6] + rows[7:],
            r"csv, line 7: .*'C-CS-00000-conj'.*versions.*expected conj0, .*, conj6$",
        ),
        (lambda rows: rows[:-1], "'D1-ES-00001@0'.* base; .*base, equiv_type1"),
        (lambda rows: [*rows, rows[-1]], "version"),
        (swapped, r"conj1 .*True; .*Unknown"),
        (lambda rows: [rows[14], {**rows[14], "theory_id": rows[15]["theory_id"]}], "paraphrase"),
    ],
    ids=["label", "predicate", "incomplete", "alone", "twice", "swapped", "no paraphrase"],
)
def test_rows_that_do_not_agree_are_reported(tmp_path, rows, change, expected):
    assert re.search(expected, refused(tmp_path, change(rows)), re.DOTALL)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"label": "3"}, "expected 0 (False), 1 (True) or 2 (Unknown)"),
        ({"label": ""}, "expected 0 (False), 1 (True) or 2 (Unknown)"),
        ({"context": " "}, "context is ' '; expected sentences"),
        ({"statement": "Anna is tall"}, "expected a full stop"),
        ({"context": "Anna is tall. " * 2000}, "28,000 characters"),
        ({"context": "Anna\x00 is tall."}, "unprintable"),
        ({"theory_id": "../../etc"}, "expected one such as 7dfe482a_conj0"),
        ({"theory_id": "x_conj9"}, "versions"),
        ({"theory_id": "x\x1b_conj0"}, "expected one such as 7dfe482a_conj0"),
        ({"context": "Anna is tall. Anna is not tall."}, "contradicts itself"),
    ],
)
def test_damaged_cells_are_reported(tmp_path, rows, cells, expected):
    assert expected in refused(tmp_path, changed(rows, 0, **cells))


def test_a_missing_column_is_reported(tmp_path, rows):
    assert "columns label" in refused(tmp_path, rows, ("context", "statement"))
