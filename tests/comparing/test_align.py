"""Items are paired by ids whose texts agree, and depend on each other if they share text."""

import json

import pytest

from interp.comparing.differences import compared
from interp.errors import UserError
from tests.support.logs import archive, log, question, samples, says, table

YES = [1, 0, 1, 1] * 5
NO = [0, 0, 1, 0] * 5


def both(*logs, **options):
    found = compared(logs, **options)
    return found, [set(side.items) for side in found.sides]


def test_four_kinds_of_file_have_the_same_items(tmp_path):
    by_item = {n: ["C" if own else "I"] for n, own in enumerate(YES)}
    document = log(by_item)
    (tmp_path / "log.json").write_text(json.dumps(document))
    files = (
        samples(tmp_path / "samples.jsonl", YES),
        archive(tmp_path / "log.eval", document),
        tmp_path / "log.json",
        table(tmp_path / "table.csv", YES),
    )
    found, (first, *others) = both(*files, metric=("acc", "match", "score"))
    assert len(first) == 20 and all(own == first for own in others)
    frame = found.differences.frame
    assert len(frame) == 6 and (frame["difference"] == 0).all() and (frame["items"] == 20).all()
    assert (frame["score_a"] == 0.75).all()


def test_ids_in_numbers_and_in_text_are_the_same(tmp_path):
    (tmp_path / "text.json").write_text(
        json.dumps([{"id": str(n), "score": own, "text": question(n)} for n, own in enumerate(YES)])
    )
    (tmp_path / "float.json").write_text(
        json.dumps(
            [{"id": float(n), "score": own, "text": question(n)} for n, own in enumerate(NO)]
        )
    )
    _, (one, other) = both(tmp_path / "text.json", tmp_path / "float.json")
    assert one == other == set(map(str, range(20)))


def test_items_of_one_log_alone_are_counted(tmp_path):
    found, _ = both(table(tmp_path / "a.csv", YES[:15]), table(tmp_path / "b.csv", NO))
    assert says(found.said[:1], 15, 0, "a", 5, "b")
    assert found.differences.frame["items"].tolist() == [15]


def shuffled(file, place):
    rows = [f"{n},{own},{question(place(n))}" for n, own in enumerate(NO)]
    file.write_text("\n".join(["item,score,text", *rows]) + "\n")
    return file


def test_ids_that_agree_by_chance_are_refused_unless_texts_are_asked_for(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    other = shuffled(tmp_path / "b.csv", lambda n: (n + 1) % 20)
    with pytest.raises(UserError, match=r"\b20\b.*\b20\b.*\b20\b.*--pair text"):
        compared([one, other])
    found, (first, second) = both(one, other, pair="text")
    assert first == second
    items = [side.items for side in found.sides]
    assert all(items[0][n].text == items[1][n].text for n in first)
    assert items[1]["1"].item == "0"


def test_a_few_other_texts_are_left_out_and_said(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    other = shuffled(tmp_path / "b.csv", lambda n: 100 if n == 3 else n)
    found, (_, second) = both(one, other)
    assert second == set(map(str, range(20))) - {"3"}
    assert says(found.said, "b", 1, "texts", "3")


def test_ids_without_texts_are_said(tmp_path):
    bare = table(tmp_path / "b.csv", NO, texts=False)
    found, _ = both(table(tmp_path / "a.csv", YES), bare)
    assert says(found.said, 20, "id")


def test_other_ids_are_paired_by_text(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    rows = [{"id": f"q{n}", "score": own, "text": question(n)} for n, own in enumerate(NO)]
    rows.append({"id": "again", "score": 1, "text": question(4)})
    (tmp_path / "b.json").write_text(json.dumps(rows))
    found, (first, second) = both(one, tmp_path / "b.json")
    assert first - second == {"4"}  # whose text is there twice
    assert says(found.said, "texts", "ids")
    (tmp_path / "c.json").write_text(json.dumps([{"id": "z", "score": 1, "text": "Nothing alike"}]))
    with pytest.raises(UserError, match="no id and no text"):
        compared([one, tmp_path / "c.json"])


def test_other_shots_are_the_same_items_and_said(tmp_path):
    one = samples(tmp_path / "a.jsonl", YES)
    other = samples(tmp_path / "b.jsonl", NO, shots="Question: Legs of a hen?\nAnswer: 2\n\n")
    found, (first, second) = both(one, other)
    assert first == second
    assert says(found.said, 20, "form")


def test_other_documents_under_the_same_ids_are_refused(tmp_path):
    one = samples(tmp_path / "a.jsonl", YES)
    text = samples(tmp_path / "b.jsonl", NO).read_text().replace("cows", "spiders")
    (tmp_path / "b.jsonl").write_text(text)
    with pytest.raises(UserError, match=r"\b20\b.*\b20\b"):
        compared([one, tmp_path / "b.jsonl"])


def test_another_target_is_said(tmp_path):
    one = samples(tmp_path / "a.jsonl", YES)
    text = samples(tmp_path / "b.jsonl", NO).read_text().replace('"target": "4"', '"target": "8"')
    (tmp_path / "b.jsonl").write_text(text)
    found, _ = both(one, tmp_path / "b.jsonl")
    assert says(found.said, 20, "target")


def test_a_field_names_the_clusters(tmp_path):
    herds = [f"h{n // 2}" for n in range(20)]
    files = [
        samples(tmp_path / f"{n}.jsonl", own, herd=herds) for n, own in (("a", YES), ("b", NO))
    ]
    assert both(*files)[0].differences.frame["clusters"].tolist() == [20]
    assert both(*files, cluster="herd")[0].differences.frame["clusters"].tolist() == [10]
    with pytest.raises(UserError, match=r"'cow'.*herd"):
        compared(files, cluster="cow")


STORY = "A farmer went to the market with all of her animals and came back with "


@pytest.mark.parametrize("how", ["beginning", "field", "text"])
def test_shared_stems_are_clusters_unless_told_otherwise(how, tmp_path):
    stems = [STORY + f"number {n // 2} of them." for n in range(24)]
    files = []
    for name in "ab":
        file = tmp_path / f"{name}.jsonl"
        if how == "field":
            files.append(samples(file, YES + YES[:4], passage=stems))
            continue
        texts = [
            own + f" What is left of {n}?" * (how == "beginning") for n, own in enumerate(stems)
        ]
        texts = [f"{n // 2:03}{own}" for n, own in enumerate(texts)]  # apart from the first letter
        rows = [{"item": n, "score": n % 2, "text": text} for n, text in enumerate(texts)]
        file.write_text("\n".join(map(json.dumps, rows)))
        files.append(file)
    found, _ = both(*files)
    assert found.differences.frame["clusters"].tolist() == [12]
    assert says(found.said, 24, 24, 12)
    alone, _ = both(*files, cluster="item")
    assert alone.differences.frame["clusters"].tolist() == [24]


def test_what_all_items_share_makes_none_dependent(tmp_path):
    one = samples(tmp_path / "a.jsonl", YES, passage=[STORY] * 20)
    other = samples(tmp_path / "b.jsonl", NO, passage=[STORY] * 20)
    assert both(one, other)[0].differences.frame["clusters"].tolist() == [20]


def test_too_few_clusters_leave_the_item_as_unit_and_say_so(tmp_path):
    stems = [STORY + f"number {n // 10} of them." for n in range(20)]
    files = [samples(tmp_path / f"{n}.jsonl", YES, passage=stems) for n in "ab"]
    found, _ = both(*files)
    assert found.differences.frame["clusters"].tolist() == [20]
    assert says(found.said, 2, "few")


def test_equal_fields_of_other_questions_pair_nothing(tmp_path):
    files = []
    for name, scores, first in (("a", YES, 0), ("b", NO, 1)):
        subjects = [f"the subject {(n + first) % 20}" for n in range(20)]
        files.append(samples(tmp_path / f"{name}.jsonl", scores, subject=subjects))
    found, _ = both(*files, pair="text")
    one, other = (side.items for side in found.sides)
    assert {name: one[name].text for name in one} == {name: other[name].text for name in other}
