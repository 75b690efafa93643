import csv
import re

import pytest

from interp.errors import UserError
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS, GroupMaker
from interp_experiments.robustlr.learning import TheoryMaker
from interp_experiments.robustlr.published import COLUMNS, load_published, to_row
from interp_experiments.robustlr.sampling import Words
from interp_experiments.robustlr.system import system

REAL = Words.of("real")


def made(*names, number=3):
    makers = [GroupMaker(name, 0, REAL) for name in names]
    return [one for maker in makers for i in range(number) for one in maker.group(i)]


def write(path, rows, columns=COLUMNS, *, header=True):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        if header:
            writer.writerow(columns)
        writer.writerows([[row[column] for column in columns] for row in rows])
    return path


def same(read, written):
    return [
        (a.set, a.version, a.group, a.base_label, a.context, a.statement, a.label)
        == (b.set, b.version, b.group, b.base_label, b.context, b.statement, b.label)
        for a, b in zip(read, written, strict=True)
    ]


@pytest.mark.parametrize("header", [True, False])
def test_what_is_written_is_read(tmp_path, header):
    instances = made(*EVALUATION_SETS)
    file = write(tmp_path / "test.csv", map(to_row, instances), header=header)
    read = load_published(file)
    assert len(same(read, instances)) == len(instances)
    assert all(same(read, instances))


def test_a_folder_may_hold_several_edits_of_one_theory(tmp_path):
    for name in ("C-CS", "N-CS"):
        rows = [to_row(one) for one in made(name, number=1)]
        named = [{**row, "theory_id": f"7dfe482a_{row['theory_id'].split('_')[1]}"} for row in rows]
        write(tmp_path / f"{name}.csv", named, header=False)
    read = load_published(tmp_path)
    assert {one.theory_id for one in read} == {"7dfe482a-conj", "7dfe482a-neg"}
    assert len({one.id for one in read}) == 11


def test_rows_without_a_theory_id_stand_alone(tmp_path):
    group = TheoryMaker("All", "train", 0).group(0)
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


def test_a_wrong_label_is_reported_by_row(tmp_path, rows):
    message = refused(tmp_path, changed(rows, 1, label=1))
    assert re.search(r"csv, line 3: .*label .* 1 \(True\).* 2 \(Unknown\)", message)


def test_a_missing_column_is_reported(tmp_path, rows):
    assert re.search("columns label", refused(tmp_path, rows, ("context", "statement")))


def test_an_unknown_predicate_is_reported_by_row(tmp_path, rows):
    message = refused(tmp_path, changed(rows, 2, context="Anna likes Bob. Bob is tall."))
    assert re.search(r"csv, line 4: 'Anna likes Bob'", message)


def test_an_incomplete_group_is_reported_by_row(tmp_path, rows):
    message = refused(tmp_path, rows[:6] + rows[7:])
    assert re.search(r"csv, line 7: .*'C-CS-00000-conj'.*versions", message)
    assert "expected " + ", ".join(f"conj{number}" for number in range(7)) in message
    message = refused(tmp_path, rows[:-1])
    assert re.search("'D1-ES-00001@0'.* base; .*base, equiv_type1", message)


def test_a_version_twice_is_reported(tmp_path, rows):
    assert re.search("version", refused(tmp_path, [*rows, rows[-1]]))


def test_a_group_with_labels_of_another_table_is_reported(tmp_path, rows):
    swapped = changed(rows, 1, theory_id=rows[2]["theory_id"])
    swapped = changed(swapped, 2, theory_id=rows[1]["theory_id"])
    assert re.search(r"conj1 .*True; .*Unknown", refused(tmp_path, swapped))


def test_a_pair_that_is_no_paraphrase_is_reported(tmp_path, rows):
    base = rows[14]
    other = {**base, "theory_id": rows[15]["theory_id"]}
    assert re.search("paraphrase", refused(tmp_path, [base, other]))


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
