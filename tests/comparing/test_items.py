"""What a log says about its items: metrics, filters, epochs, errors, names."""

import json
import re

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from interp.errors import UserError
from tests.support.logs import NO, YES, archive, compared, letters, log, samples, says, table


def changed(scores=YES, name="org/model", again=(), header=(), **of_item):
    """A log of Inspect, with other fields of its items."""
    document = log(letters(scores), name=name)
    for place, fields in of_item.items():
        document["samples"][int(place[1:])] |= fields
    document["samples"] += again
    return {**document, **dict(header)}


def against(folder, one, other=None):
    """A log of Inspect, and another one whose scores are NO."""
    return [
        archive(folder / "a.eval", one),
        archive(folder / "b.eval", other or changed(NO, "org/b")),
    ]


GONE = {"error": {"message": "gone"}, "scores": {}}
STOPPED = {"status": "error", "results": {"total_samples": 40, "completed_samples": 20}}
OTHER_TEXT = {"id": "1", "input": "Which?", "epoch": 1, "scores": {"match": {"value": "C"}}}
LOGS = {
    "no scores": (changed(i3={"scores": None}, i4={"scores": {}}), 18, (2, "match")),
    "an error": (changed(i3=GONE), 19, (1, "errors")),
    "stopped early": (changed(header=STOPPED), 20, ("error", 20, 40)),
    "no answer": (changed(i3={"scores": {"match": {"value": "N"}}}), 20, (1, "refusals")),
    "repeated": (changed(again=[log(letters(YES))["samples"][3]]), 20, (1, "repeated")),
    "an id with two texts": (changed(again=[OTHER_TEXT]), 19, (1, "ids", "twice", "1")),
}


@pytest.mark.parametrize("case", LOGS)
def test_what_a_log_lacks_is_said(case, tmp_path):
    document, items, facts = LOGS[case]
    found = compared(against(tmp_path, document))
    assert found.differences.frame["items"].tolist() == [items]
    assert says(found.said, *facts)
    assert not says(compared(against(tmp_path, changed())).said, *facts)


def test_letters_of_inspect_and_words_are_scores(tmp_path):
    values = ["C", "P", "I", "N", "yes", "no", True, 0.25]
    found = compared(against(tmp_path, log({n: [own] for n, own in enumerate(values)})))
    trials = found.differences.trials.set_index("pair_id")
    assert trials["score_a"].tolist() == [1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 1.0, 0.25]


def test_epochs_are_averaged_and_the_unit_stays_the_item(tmp_path):
    several = {n: ["C", "I", "C"][: 1 + n % 3] for n in range(12)}
    found = compared(against(tmp_path, log(several)))
    row = found.differences.frame.iloc[0]
    assert row["score_a"] == pytest.approx(np.mean([1, 1 / 2, 2 / 3]))
    assert (row["items"], row["clusters"]) == (12, 12)
    assert np.isnan(row["p_mcnemar"])
    assert says(found.said, 1, 4, 2, 4, 3, 4)


def filtered(file, scores):
    samples(file, scores, filter_="strict")
    return samples(file, [1] * 20, filter_="loose", append=True)


def test_filters_are_told_apart_and_no_draws(tmp_path):
    files = [filtered(tmp_path / "a.jsonl", YES), filtered(tmp_path / "b.jsonl", NO)]
    found = compared(files).differences.frame.set_index("metric")
    assert found["score_a"].to_dict() == {"acc,strict": 0.75, "acc,loose": 1.0}
    assert (found["items"] == 20).all()
    (row,) = compared(files, filter=("strict",)).differences.frame.to_dict("records")
    assert (row["metric"], row["score_b"]) == ("acc", 0.25)
    with pytest.raises(UserError, match=r"'lose'.*loose"):
        compared(files, filter=("lose",))


def test_one_filter_of_several_is_compared_with_a_log_without_any_and_said(tmp_path):
    files = [filtered(tmp_path / "a.jsonl", YES), samples(tmp_path / "b.jsonl", NO)]
    with pytest.raises(UserError, match=r"acc,strict.*--filter"):
        compared(files)
    found = compared(files, filter=("strict",))
    assert found.differences.frame["difference"].tolist() == [0.5]
    assert says(found.said, "strict", "a", "none", "b")


def test_metrics_of_other_names_are_compared_if_named_or_alone(tmp_path):
    one, alone = samples(tmp_path / "a.jsonl", YES), archive(tmp_path / "b.eval", changed(NO))
    found = compared([one, alone])
    assert found.differences.frame["metric"].tolist() == ["acc and match"]
    assert says(found.said, "acc", "a", "match", "org/model")
    two = {"match": {"value": "C"}, "includes": {"value": {"first": 1, "second": 0}}}
    several = archive(tmp_path / "c.eval", changed(NO, "org/c", i0={"scores": two}))
    with pytest.raises(UserError, match=r"includes.*--metric"):
        compared([one, several])
    found = compared([one, several], metric=("acc", "match")).differences.frame
    assert found["difference"].tolist() == [0.45]
    with pytest.raises(UserError, match="'mach'"):
        compared([one, several], metric=("mach",))
    found = compared([alone, several])  # which shares a metric with it
    assert found.differences.frame["metric"].tolist() == ["match"]
    assert any("includes/first, includes/second" in own for own in found.said)


def test_ids_given_twice_are_left_out_and_said(tmp_path):
    one, other = table(tmp_path / "a.csv", YES), table(tmp_path / "b.csv", NO)
    one.write_text(one.read_text() + "7,1,other\n")
    found = compared([one, other])
    assert found.differences.frame["items"].tolist() == [19]
    assert says(found.said, 1, "ids", "7")
    other.write_text(other.read_text() + "\n".join(other.read_text().splitlines()[1:]))
    with pytest.raises(UserError, match=r"\b20 ids\b"):
        compared([one, other])


def test_settings_that_differ_are_said(tmp_path):
    one = log(letters(YES), eval={"task_version": 1, "config": {"epochs": 1}})
    other = log(letters(NO), name="org/b", eval={"task_version": 2, "config": {"epochs": 3}})
    found = compared(against(tmp_path, one, other))
    assert says(found.said, "task_version", 1, "org/model", 2, "org/b")
    assert says(found.said, "epochs", 1, "org/model", 3, "org/b")


def test_scores_that_are_missing_are_counted_and_infinite_ones_refused(tmp_path):
    other = table(tmp_path / "b.csv", NO)
    found = compared([table(tmp_path / "a.csv", ["nan", "", *YES[2:]]), other])
    assert found.differences.frame["items"].tolist() == [18]
    assert says(found.said, 2, "score")
    for bad in ("inf", "-Infinity", "1e999"):
        with pytest.raises(UserError, match=r"c\.csv.*\b2\b.*score.*inf"):
            compared([table(tmp_path / "c.csv", [bad, *YES[1:]]), other])


@pytest.mark.parametrize(
    ("scores", "mark", "count"),
    [
        ([-1, *YES[1:]], -1, 1),
        ([-1, 99, 99, *YES[3:]], 99, 2),
        ([-1] * 2 + [0] * 18, -1, 2),
        ([0, 100, 100, -999] * 5, -999, 5),
        ([0.5, *YES[1:]], None, 0),
        ([0, 1, 2, 3] * 5, None, 0),
        ([-1, -2, -3, -4] * 5, None, 0),
        ([10, 0, 10, 10] * 5, None, 0),
        (YES, None, 0),
    ],
)
def test_a_third_value_beside_yes_and_no_is_said(scores, mark, count, tmp_path):
    found = compared([table(tmp_path / "a.csv", scores), table(tmp_path / "b.csv", NO)])
    assert says(found.said, "a", count, "score", mark) is (mark is not None)


@pytest.mark.parametrize("bad", ["good", "1_5", "１", "1 0", "1,5", "0x1", "2026-01-01"])
def test_what_is_no_score_is_told_with_an_example(bad, tmp_path):
    one = table(tmp_path / "a.csv", [f'"{bad}"', *YES[1:]])
    with pytest.raises(UserError, match=f"'{bad}'"):
        compared([one, table(tmp_path / "b.csv", NO)])


def test_models_of_one_name_are_told_apart_by_their_places(tmp_path):
    files = []
    for name in "ab":
        (tmp_path / name).mkdir()
        files.append(archive(tmp_path / name / "log.eval", changed()))
    frame = compared(files).differences.frame
    assert frame["model"].tolist() == ["org/model (a) minus org/model (b)"]
    with pytest.raises(UserError, match="given twice"):
        compared(files[:1] * 2)


@pytest.mark.parametrize(
    ("levels", "items"),
    [
        (["few", "many"] * 10, {"all": 20, "few": 10, "many": 10}),
        (["all", "few", ""] * 6 + ["few", "all"], {"all": 20, "level all": 7, "few": 7}),
    ],
)
def test_subsets_are_compared_beside_all_items(levels, items, tmp_path):
    files = [
        samples(tmp_path / f"{n}.jsonl", own, level=levels) for n, own in (("a", YES), ("b", NO))
    ]
    found = compared(files, by="level")
    frame = found.differences.frame.set_index("subset")
    assert frame["items"].to_dict() == items
    expected = multipletests(frame["p"].dropna(), method="holm")[1]
    np.testing.assert_allclose(frame["p_holm"].dropna(), expected)
    assert says(found.said, 6, "level") is ("" in levels)


def told(folder, scores, tasks=("legs",), **results):
    """A folder of lm-eval's results, which names the model after itself."""
    folder.mkdir()
    for task in tasks:
        samples(folder / f"samples_{task}_2026-01-01T00-00-00.jsonl", scores)
    record = {"model_name": folder.name, "results": {}, "configs": {}} | results
    (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(record))
    return folder


def test_the_tasks_of_a_results_folder_are_subsets(tmp_path):
    planned = {"n-samples": {"legs": {"effective": 30}}}
    folders = [
        told(tmp_path / name, own, ("legs", "heads"), versions={"heads": n, "legs": 1}, **planned)
        for n, (name, own) in enumerate((("a", YES), ("b", NO)))
    ]
    found = compared(folders, by="task", cluster="item")
    frame = found.differences.frame.set_index("subset")
    assert frame["items"].to_dict() == {"all": 40, "heads": 20, "legs": 20}
    assert set(frame["model"]) == {"a minus b"}
    assert sum(says([own], 20) and "stopped" in own for own in found.said) == 2
    versions = [own for own in found.said if "version" in own]
    assert [re.findall(r"heads|\d \(\w\)", own) for own in versions] == [
        ["heads", "0 (a)", "1 (b)"]
    ]
    samples(folders[1] / "samples_legs_2026-02-02T00-00-00.jsonl", YES)
    with pytest.raises(UserError, match=r"\b2\b.*\blegs\b"):
        compared(folders)


def test_a_metric_that_was_asked_for_and_is_not_in_every_log_is_said(tmp_path):
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("item,f1,em\n" + "".join(f"{n},0.5,1\n" for n in range(9)))
    other.write_text("item,f1\n" + "".join(f"{n},0.25\n" for n in range(9)))
    found = compared([one, other], metric=("f1", "em"))
    assert found.differences.frame["metric"].tolist() == ["f1"]
    assert any("not compared" in own and own.endswith("em") for own in found.said)


def test_what_only_one_run_of_lm_eval_was_given_is_said(tmp_path):
    plain = told(tmp_path / "a", YES, **{"n-shot": {"legs": 0}})
    other = {"chat_template_sha": "abc", "config": {"limit": 20}, "n-shot": {"legs": 2}}
    said = compared([plain, told(tmp_path / "b", NO, **other)]).said
    assert says(said, "chat_template_sha", "none", "a", "abc", "b")
    assert says(said, "limit", "none", "a", 20, "b")
    assert says(said, "n-shot", "legs", 0, "a", 2, "b")


@pytest.mark.parametrize("damage", [{"versions": 3}, {"n-samples": {"legs": 5}}, {"config": []}])
def test_damaged_results_beside_samples_say_nothing(damage, tmp_path):
    folder = told(tmp_path / "a", YES, model_name=["x"], **damage)
    found = compared([folder, told(tmp_path / "b", NO)])
    assert found.differences.frame["model"].tolist() == ["a minus b"]  # the folder's name


def test_results_without_a_models_name_are_called_like_the_folder_that_is_named(tmp_path):
    folders = [tmp_path / name for name in ("small", "large")]
    for folder, scores in zip(folders, (YES, NO), strict=True):
        folder.mkdir()
        told(folder / "__tmp__0x7f", scores, model_name="")
    assert compared(folders).differences.frame["model"].tolist() == ["small minus large"]
