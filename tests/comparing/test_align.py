"""Items are paired by ids whose texts agree, and depend on each other if they share text."""

import json

import pytest

from interp.errors import UserError
from tests.support.logs import (
    NO,
    YES,
    archive,
    compared,
    letters,
    log,
    question,
    samples,
    says,
    table,
)

ALL = set(map(str, range(20)))
STORY = "A farmer went to the market with all of her animals and came back with "


def both(*logs, **options):
    found = compared(logs, **options)
    return found, [set(side.items) for side in found.sides]


def rows(file, ids, scores=NO, texts=question):
    """A table whose n-th row has the n-th id, and a text of its number."""
    cells = [
        {"id": own, "score": score, "text": texts(n)}
        for n, (own, score) in enumerate(zip(ids, scores, strict=True))
    ]
    file.write_text(json.dumps(cells))
    return file


def pair(folder, change=lambda text: text, **fields):
    """Samples of two logs, with a change to the second."""
    files = [samples(folder / f"{n}.jsonl", own, **fields) for n, own in (("a", YES), ("b", NO))]
    files[1].write_text(change(files[1].read_text()))
    return files


def test_four_kinds_of_file_have_the_same_items(tmp_path):
    document = log(letters(YES))
    (tmp_path / "log.json").write_text(json.dumps(document))
    files = (
        samples(tmp_path / "samples.jsonl", YES),
        archive(tmp_path / "log.eval", document),
        tmp_path / "log.json",
        table(tmp_path / "table.csv", YES),
    )
    found, items = both(*files, metric=("acc", "match", "score"))
    assert items == [ALL] * 4
    frame = found.differences.frame
    assert len(frame) == 6 and (frame["difference"] == 0).all() and (frame["items"] == 20).all()
    assert (frame["score_a"] == 0.75).all()


@pytest.mark.parametrize("kinds", [(int, str), (str, float), (float, int)])
def test_ids_in_numbers_and_in_text_are_the_same(kinds, tmp_path):
    files = [rows(tmp_path / f"{n}.json", map(own, range(20))) for n, own in enumerate(kinds)]
    assert both(*files)[1] == [ALL, ALL]


def test_ids_may_be_paths(tmp_path):
    ids = [*map("/{}".format, range(19)), "0"]
    assert both(*(rows(tmp_path / name, ids) for name in ("a.json", "b.json")))[1] == [{*ids}] * 2


def test_items_of_one_log_alone_are_counted(tmp_path):
    found, _ = both(table(tmp_path / "a.csv", YES[:15]), table(tmp_path / "b.csv", NO))
    assert says(found.said[:1], 15, 0, "a", 5, "b")
    assert found.differences.frame["items"].tolist() == [15]


def test_ids_that_agree_by_chance_are_refused_unless_texts_are_asked_for(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    other = rows(tmp_path / "b.json", range(20), texts=lambda n: question((n + 1) % 20))
    with pytest.raises(UserError, match=r"\b20\b.*\b20\b.*\b20\b.*--pair text"):
        compared([one, other])
    found, (first, second) = both(one, other, pair="text")
    assert first == second
    items = [side.items for side in found.sides]
    assert all(items[0][n].text == items[1][n].text for n in first)
    assert items[1]["1"].item == "0"


def test_a_few_other_texts_are_left_out_and_said(tmp_path):
    other = rows(tmp_path / "b.json", range(20), texts=lambda n: question(100 if n == 3 else n))
    found, (_, second) = both(table(tmp_path / "a.csv", YES), other)
    assert second == ALL - {"3"}
    assert says(found.said, "b", 1, "texts", "3")


def test_other_ids_are_paired_by_text(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    ids = [f"q{n}" for n in range(20)]
    texts = [*map(question, range(20)), question(4)]
    other = rows(tmp_path / "b.json", [*ids, "again"], [*NO, 1], texts=texts.__getitem__)
    found, (first, second) = both(one, other)
    assert first - second == {"4"}  # whose text is there twice
    assert says(found.said, "texts", "ids")
    with pytest.raises(UserError, match="no id and no text"):
        compared([one, rows(tmp_path / "c.json", ["z"], [1], texts=lambda _: "Nothing alike")])


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda text: text.replace("Question:", "Legs of a hen?\\n2\\n\\nQuestion:"), "form"),
        (lambda text: text.replace('"target": "4"', '"target": "8"'), "target"),
    ],
)
def test_other_shots_and_targets_are_the_same_items_and_said(change, fact, tmp_path):
    found, items = both(*pair(tmp_path, change))
    assert items == [ALL, ALL] and says(found.said, 20, fact)
    assert not says(both(*pair(tmp_path))[0].said, 20, fact)


def test_ids_without_texts_are_said(tmp_path):
    bare = table(tmp_path / "b.csv", NO, texts=False)
    assert says(both(table(tmp_path / "a.csv", YES), bare)[0].said, 20, "id")


def test_other_documents_under_the_same_ids_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"\b20\b.*\b20\b"):
        compared(pair(tmp_path, lambda text: text.replace("cows", "spiders")))


def test_a_field_names_the_clusters(tmp_path):
    files = pair(tmp_path, herd=[f"h{n // 2}" for n in range(20)])
    assert both(*files)[0].differences.frame["clusters"].tolist() == [20]
    one_that_has_it = [samples(tmp_path / "plain.jsonl", NO), files[1]]
    for logs in (files, one_that_has_it):
        assert both(*logs, cluster="herd")[0].differences.frame["clusters"].tolist() == [10]
    with pytest.raises(UserError, match=r"'cow'.*herd"):
        compared(files, cluster="cow")


@pytest.mark.parametrize("how", ["beginning", "field", "text"])
def test_shared_stems_are_clusters_unless_told_otherwise(how, tmp_path):
    stems = [f"{STORY}number {n // 2} of them." for n in range(20)]
    files = pair(tmp_path, passage=stems)
    if how != "field":
        ends = [f" What is left of {n}?" * (how == "beginning") for n in range(20)]
        texts = [f"{n // 2:03}{stems[n]}{ends[n]}" for n in range(20)]  # apart from the start
        files = [rows(tmp_path / name, range(20), texts=texts.__getitem__)
                 for name in ("a.json", "b.json")]  # fmt: skip
    found, _ = both(*files)
    assert found.differences.frame["clusters"].tolist() == [10]
    assert says(found.said, 20, 20, 10)
    alone, _ = both(*files, cluster="item")
    assert alone.differences.frame["clusters"].tolist() == [20]


@pytest.mark.parametrize("clusters", [1, 2])
def test_what_all_share_or_few_clusters_leave_the_item_as_unit(clusters, tmp_path):
    stems = [f"{STORY}number {n % clusters} of them." for n in range(20)]
    found, _ = both(*pair(tmp_path, passage=stems))
    assert found.differences.frame["clusters"].tolist() == [20]
    assert says(found.said, clusters, "few") is (clusters == 2)


def test_equal_fields_of_other_questions_pair_nothing(tmp_path):
    files = [
        samples(
            tmp_path / f"{n}.jsonl", NO, subject=[f"the subject {(n + k) % 20}" for k in range(20)]
        )
        for n in range(2)
    ]
    found, _ = both(*files, pair="text")
    one, other = (side.items for side in found.sides)
    assert {name: one[name].text for name in one} == {name: other[name].text for name in other}
