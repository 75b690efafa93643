"""What a log says about its items: metrics, filters, epochs, errors, names."""

import json

import numpy as np
import pytest

from interp.comparing.differences import compared
from interp.errors import UserError
from tests.support.logs import archive, log, samples, says, table

YES, NO = [1, 0, 1, 1] * 5, [0, 0, 1, 0] * 5


def letters(scores):
    return {n: ["CI"[not own]] for n, own in enumerate(scores)}


def test_letters_of_inspect_and_words_are_scores(tmp_path):
    values = ["C", "P", "I", "N", "yes", "no", True, 0.25]
    one = archive(tmp_path / "a.eval", log({n: [own] for n, own in enumerate(values)}))
    other = archive(tmp_path / "b.eval", log({n: ["I"] for n in range(8)}, name="org/b"))
    found = compared([one, other])
    trials = found.differences.trials.set_index("pair_id")
    expected = [1.0, 0.5, 0.0, 0.0, 1.0, 0.0, 1.0, 0.25]
    assert trials["score_a"].tolist() == expected
    assert says(found.said, 1, "refusals")


def test_epochs_are_averaged_and_the_unit_stays_the_item(tmp_path):
    several = {n: ["C", "I", "C"][: 1 + n % 3] for n in range(12)}
    one = archive(tmp_path / "a.eval", log(several))
    other = archive(tmp_path / "b.eval", log({n: ["I"] for n in range(12)}, name="org/b"))
    found = compared([one, other])
    row = found.differences.frame.iloc[0]
    assert row["score_a"] == pytest.approx(np.mean([1, 1 / 2, 2 / 3]))
    assert (row["items"], row["clusters"]) == (12, 12)
    assert np.isnan(row["p_mcnemar"])
    assert says(found.said, 1, 4, 2, 4, 3, 4)


def test_filters_are_told_apart_and_no_draws(tmp_path):
    files = []
    for name, scores in (("a", YES), ("b", NO)):
        file = samples(tmp_path / f"{name}.jsonl", scores, filter_="strict")
        files.append(samples(file, [1] * 20, filter_="loose", append=True))
    found = compared(files).differences.frame.set_index("metric")
    assert found["score_a"].to_dict() == {"acc,strict": 0.75, "acc,loose": 1.0}
    assert (found["items"] == 20).all()
    (row,) = compared(files, filter=("strict",)).differences.frame.to_dict("records")
    assert (row["metric"], row["score_b"]) == ("acc", 0.25)
    with pytest.raises(UserError, match=r"'lose'.*loose"):
        compared(files, filter=("lose",))


def test_one_filter_of_several_is_compared_with_a_log_without_any_and_said(tmp_path):
    one = samples(tmp_path / "a.jsonl", YES, filter_="strict")
    samples(one, [1] * 20, filter_="loose", append=True)
    other = samples(tmp_path / "b.jsonl", NO)
    with pytest.raises(UserError, match=r"acc,strict.*--filter"):
        compared([one, other])
    found = compared([one, other], filter=("strict",))
    assert found.differences.frame["difference"].tolist() == [0.5]
    assert says(found.said, "strict", "a", "none", "b")


def test_metrics_of_other_names_are_compared_if_named_or_alone(tmp_path):
    one, other = samples(tmp_path / "a.jsonl", YES), archive(tmp_path / "b.eval", log(letters(NO)))
    found = compared([one, other])
    assert found.differences.frame["metric"].tolist() == ["acc and match"]
    assert says(found.said, "acc", "a", "match", "org/model")
    document = log(letters(NO))
    for sample in document["samples"]:
        sample["scores"]["includes"] = {"value": "C"}
    several = archive(tmp_path / "c.eval", document)
    with pytest.raises(UserError, match=r"includes.*--metric"):
        compared([one, several])
    found = compared([one, several], metric=("acc", "match")).differences.frame
    assert found["difference"].tolist() == [0.5]
    with pytest.raises(UserError, match="'mach'"):
        compared([one, several], metric=("mach",))


def test_a_metric_that_one_log_lacks_is_said(tmp_path):
    document = log(letters(NO), name="org/b")
    for sample in document["samples"]:
        sample["scores"]["includes"] = {"value": {"first": 1, "second": 0}}
    one = archive(tmp_path / "a.eval", log(letters(YES)))
    found = compared([one, archive(tmp_path / "b.eval", document)])
    assert found.differences.frame["metric"].tolist() == ["match"]
    assert any("includes/first, includes/second" in own for own in found.said)


def test_ids_given_twice_are_left_out_and_said(tmp_path):
    one = table(tmp_path / "a.csv", YES)
    one.write_text(one.read_text() + "7,1,other\n")
    found = compared([one, table(tmp_path / "b.csv", NO)])
    assert found.differences.frame["items"].tolist() == [19]
    assert says(found.said, 1, "ids", "7")
    every = table(tmp_path / "c.csv", YES)
    every.write_text(every.read_text() + "\n".join(every.read_text().splitlines()[1:]))
    with pytest.raises(UserError, match=r"\b20 ids\b"):
        compared([one, every])


def test_errors_and_a_log_that_stopped_early_are_said(tmp_path):
    document = log(letters(YES), status="error")
    document["results"]["total_samples"] = 40
    document["samples"][3] |= {"error": {"message": "gone"}, "scores": {}}
    found = compared(
        [
            archive(tmp_path / "a.eval", document),
            archive(tmp_path / "b.eval", log(letters(NO), name="b")),
        ]
    )
    assert says(found.said, "error", 20, 40)
    assert says(found.said, 1, "errors")
    assert found.differences.frame["items"].tolist() == [19]


def test_settings_that_differ_are_said(tmp_path):
    one = log(letters(YES), eval={"task_version": 1, "config": {"epochs": 1}})
    other = log(letters(NO), name="org/b", eval={"task_version": 2, "config": {"epochs": 3}})
    found = compared([archive(tmp_path / "a.eval", one), archive(tmp_path / "b.eval", other)])
    assert says(found.said, "version", 1, "org/model", 2, "org/b")
    assert says(found.said, "epochs", 1, "org/model", 3, "org/b")


def test_scores_that_are_missing_are_counted_and_infinite_ones_refused(tmp_path):
    one = table(tmp_path / "a.csv", ["nan", "", *YES[2:]])
    found = compared([one, table(tmp_path / "b.csv", NO)])
    assert found.differences.frame["items"].tolist() == [18]
    assert says(found.said, 2, "score")
    for bad in ("inf", "-Infinity", "1e999"):
        with pytest.raises(UserError, match=r"c\.csv.*\b2\b.*score.*inf"):
            compared([one, table(tmp_path / "c.csv", [bad, *YES[1:]])])


def test_what_is_no_score_is_told_with_an_example(tmp_path):
    with pytest.raises(UserError, match="'good'"):
        compared([table(tmp_path / "a.csv", ["good", *YES]), table(tmp_path / "b.csv", NO)])


def test_models_of_one_name_are_told_apart_by_their_places(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        archive(tmp_path / name / "log.eval", log(letters(YES)))
    found = compared([tmp_path / "a" / "log.eval", tmp_path / "b" / "log.eval"])
    assert found.differences.frame["model"].tolist() == ["org/model (a) minus org/model (b)"]
    with pytest.raises(UserError, match="given twice"):
        compared([tmp_path / "a" / "log.eval"] * 2)


def test_subsets_are_compared_beside_all_items(tmp_path):
    herds = ["few", "many"] * 10
    files = [
        samples(tmp_path / f"{n}.jsonl", own, herd=herds) for n, own in (("a", YES), ("b", NO))
    ]
    frame = compared(files, by="herd").differences.frame.set_index("subset")
    assert frame["items"].to_dict() == {"all": 20, "few": 10, "many": 10}
    assert frame["difference"].to_dict() == {"all": 0.5, "few": 0.5, "many": 0.5}
    assert (frame["p_holm"] >= frame["p"]).all() and frame["p_holm"].max() > frame["p"].max()


def test_the_tasks_of_a_results_folder_are_subsets(tmp_path):
    folders = []
    for name, scores in (("a", YES), ("b", NO)):
        folder = tmp_path / name / "org__model"
        folder.mkdir(parents=True)
        folders.append(tmp_path / name)
        for task in ("legs", "heads"):
            samples(folder / f"samples_{task}_2026-01-01T00-00-00.jsonl", scores)
        told = {"model_name": f"org/{name}", "versions": {"legs": 1}, "n-shot": {"legs": 0}}
        told |= {"results": {}, "configs": {}, "n-samples": {"legs": {"effective": 30}}}
        (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(told))
    found = compared(folders, by="task", cluster="item")
    frame = found.differences.frame.set_index("subset")
    assert frame["items"].to_dict() == {"all": 40, "heads": 20, "legs": 20}
    assert set(frame["model"]) == {"org/a minus org/b"}
    assert sum(says([own], 20) and "stopped" in own for own in found.said) == 2
    samples(folder / "samples_legs_2026-02-02T00-00-00.jsonl", YES)
    with pytest.raises(UserError, match=r"\b2\b.*\blegs\b"):
        compared(folders)


def test_samples_without_a_score_or_an_error_are_counted(tmp_path):
    document = log(letters(YES))
    document["samples"][3]["scores"] = None
    document["samples"][4]["scores"] = {}
    del document["samples"][5]["scores"]
    one = archive(tmp_path / "a.eval", document)
    found = compared([one, archive(tmp_path / "b.eval", log(letters(NO), name="b"))])
    assert found.differences.frame["items"].tolist() == [17]
    assert says(found.said, 3, "match")


def test_a_metric_that_was_asked_for_and_is_not_in_every_log_is_said(tmp_path):
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("item,f1,em\n" + "".join(f"{n},0.5,1\n" for n in range(9)))
    other.write_text("item,f1\n" + "".join(f"{n},0.25\n" for n in range(9)))
    found = compared([one, other], metric=("f1", "em"))
    assert found.differences.frame["metric"].tolist() == ["f1"]
    assert any("not compared" in own and own.endswith("em") for own in found.said)


def told(folder, scores, name, **results):
    folder.mkdir()
    samples(folder / "samples_legs_2026-01-01T00-00-00.jsonl", scores)
    record = {"model_name": name, "results": {}, "configs": {}, "versions": {"legs": 1}} | results
    (folder / "results_2026-01-01T00-00-00.json").write_text(json.dumps(record))
    return folder


def test_what_only_one_run_of_lm_eval_was_given_is_said(tmp_path):
    plain = told(tmp_path / "a", YES, "a", **{"n-shot": {"legs": 0}})
    other = {"chat_template_sha": "abc", "config": {"limit": 20}, "n-shot": {"legs": 2}}
    said = compared([plain, told(tmp_path / "b", NO, "b", **other)]).said
    assert "chat template differs: none (a), abc (b)" in said
    assert "limit differs: none (a), 20 (b)" in said
    assert "shots of legs differs: 0 (a), 2 (b)" in said
    assert not any("version" in own for own in said)


def test_versions_of_each_task_are_compared(tmp_path):
    folders = []
    for n, name in enumerate("ab"):
        folder = told(tmp_path / name, YES, name, versions={"heads": n, "legs": 1})
        samples(folder / "samples_heads_2026-01-01T00-00-00.jsonl", NO)
        folders.append(folder)
    said = compared(folders, cluster="item").said
    assert [own for own in said if "version" in own] == ["version of heads differs: 0 (a), 1 (b)"]


@pytest.mark.parametrize("damage", [{"versions": 3}, {"n-samples": {"legs": 5}}, {"config": []}])
def test_damaged_results_beside_samples_say_nothing(damage, tmp_path):
    folder = told(tmp_path / "a", YES, ["x"], **damage)
    found = compared([folder, told(tmp_path / "b", NO, "b")])
    assert found.differences.frame["model"].tolist() == ["a minus b"]  # the folder's name


def test_a_subset_may_be_named_all_and_items_without_one_are_counted(tmp_path):
    levels = ["all", "few", ""] * 6 + ["few", "all"]
    files = [
        samples(tmp_path / f"{n}.jsonl", own, level=levels) for n, own in (("a", YES), ("b", NO))
    ]
    found = compared(files, by="level")
    items = found.differences.frame.set_index("subset")["items"]
    assert items.to_dict() == {"all": 20, "level all": 7, "few": 7}
    assert says(found.said, 6, "level")
