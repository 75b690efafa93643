"""The study: published numbers, its tables on made-up answers, and the whole of it on a model."""

import pandas as pd
import pytest

import interp
from interp.attribution.registry import CHEAP_METHODS
from interp.errors import UserError
from interp.measurements.attribution.segments import LENGTH, POSITION
from interp.prompts.source import PromptSource
from interp.runs.records import StudyRecord
from interp.studies.folder import StudyFolder
from interp_experiments.robustlr import results, tables
from interp_experiments.robustlr.evaluation_sets import EVALUATION_SETS
from interp_experiments.robustlr.findings import headline_numbers
from interp_experiments.robustlr.language import LABELS
from interp_experiments.robustlr.study import RobustLRStudy
from interp_experiments.robustlr.system import SHORT as OTHERS
from interp_experiments.robustlr.system import system
from tests.support.pages import browsed, panels_of
from tests.support.studies import check_readings, checked_page, studied

EACH = 4


@pytest.fixture(scope="module")
def prompts():
    return system.prompts(seed=0, data=None).spread(6 * EACH).to_frame()


@pytest.fixture(scope="module")
def rows(prompts):
    """A model that is always right, and one that answers every variant as the base."""
    right = prompts.assign(model="right", answer=prompts["gold"], error="")
    same = prompts.assign(model="same", answer=prompts["base_label"], error="")
    return results.answered(prompts, pd.concat([right, same]))


def test_published_numbers_are_all_there_and_their_averages_agree():
    counts = tables.published(*range(1, 23)).groupby("table").size()
    assert counts.to_dict() == {
        2: 48, 3: 13, 4: 48, 5: 56, 6: 16, 14: 32, 15: 32, 16: 32,
        17: 36, 18: 28, 19: 36, 20: 28, 21: 36, 22: 28,
    }  # fmt: skip
    both = [(f"{kind} average", kind) for kind in tables.SETS]
    averages = {(2,): [("average", "contrast")], (4,): [("average", "equivalence")], (5, 6): both}
    for printed, named in averages.items():
        rows = tables.published(*printed)
        wide = rows.pivot(index=["table", "model", "training"], columns="set", values="f1")
        for average, kind in named:
            means = wide[list(tables.SETS[kind])].mean(axis=1)
            assert (means - wide[average]).abs().max() < 0.0101
    of_parts = tables.published(14, 21).set_index(["training", "set", "part"])["f1"]
    assert of_parts["All", "D-CS", "disj"] == 0.81
    assert of_parts["OR+NOT", "C-CS", "Unknown"] == 0.30


def groups(rows):
    return tables.parts(rows, "contrast", "group", tables.GROUPS, 14, 15, 16)


def test_every_table_has_measured_baseline_and_published_rows_apart(rows):
    for table in (
        tables.sets(rows, "contrast", 2, 5),
        tables.sets(rows, "equivalence", 4, 5),
        groups(rows),
        tables.parts(rows, "contrast", "gold", LABELS, 17, 19, 21),
        tables.parts(rows, "equivalence", "gold", LABELS, 18, 20, 22),
        tables.sets(rows[rows["gold"] != "Unknown"], "contrast", 6),
        tables.sets(rows[rows["gold"] != "Unknown"], "equivalence", 6),
    ):
        by_source = table.groupby("source", sort=False)["model"].agg(list)
        assert list(by_source.index) == ["measured", "baseline", "published"]
        assert by_source["measured"] == ["right", "same"]
        assert by_source["baseline"] == list(results.BASELINES)
        spans = table.loc[table["source"] != "published", "theories"]
        # A kind of edit is in some theories of a set alone.
        assert spans.str.split("-").str[-1].astype(int).between(1, EACH).all()
        names = table.columns[~table.columns.str.contains("_low|_high")]
        numbers = table.set_index("model")[names.drop(["model", *tables.KEY[1:], "theories"])]
        right = numbers.loc["right"].dropna().tolist()
        assert len(right) > 2 and right == pytest.approx([1.0] * len(right))


def test_averages_are_of_all_sets_of_a_kind_or_as_printed(rows):
    table = tables.sets(rows[rows["set"] != "N-CS"], "contrast", 2, 5).set_index("model")
    assert table.loc["right", "D-CS"] == 1.0
    assert pd.isna(table.loc["right", "average"])
    assert table.loc["human", "average"] == 0.88
    uneven = rows[rows["pair_id"] != rows.loc[rows["set"] == "C-CS", "pair_id"].iloc[0]]
    same = tables.sets(uneven, "contrast").set_index("model").loc["same"]
    assert same["average"] == pytest.approx(same[["C-CS", "D-CS", "N-CS"]].mean())
    assert tables.sets(rows, "equivalence", 4, 5).set_index("model").loc["human", "average"] == 0.91
    roberta = table.loc["roberta-large"].set_index("training").loc["NOT"]
    assert roberta[["average", "C-CS", "D-CS", "N-CS"]].tolist() == [0.39, 0.39, 0.45, 0.34]


def test_a_model_that_reads_no_edit_scores_as_the_guess_of_the_base(rows):
    table = tables.sets(rows, "contrast", 2, 5).set_index("model")
    # The numbers of the guesses are those of the authors' code.
    of_base, negated = (0.1270, 0.2571, 0.1), (0.0357, 0.1270, 0.1)
    guesses = {"same": of_base, "always the base's label": of_base}
    guesses |= {"always the base's negated": negated, "always Unknown": (0.4156, 0.1270, 0.3333)}
    for guess, f1 in guesses.items():
        numbers = table.loc[guess, ["C-CS", "D-CS", "N-CS", "average"]].tolist()
        assert numbers == pytest.approx([*f1, sum(f1) / 3], abs=5e-5)
    halves = table.loc[["always True", "always False"], ["C-CS", "D-CS", "N-CS"]].mean()
    means = [(one + other) / 2 for one, other in zip(of_base, negated, strict=True)]
    assert halves.tolist() == pytest.approx(means, abs=5e-5)
    equivalence = tables.sets(rows, "equivalence", 4, 5).set_index("model")
    assert equivalence.loc["same", "average"] == 1.0
    of_groups = groups(rows).set_index("model").loc["same"]
    assert of_groups["C-CS base"] == 1.0
    assert of_groups["C-CS conj+neg"] == 0.0
    scores = tables.scores(rows).set_index(["model", "set"])
    assert list(scores.loc["right"].index) == list(EVALUATION_SETS)
    assert scores.loc[("same", "N-CS"), "consistency"] == 0.0
    assert scores.loc[("right", "N-CS"), "theories"] == EACH


def test_headline_numbers_are_the_means_of_the_tables(rows):
    bare = rows.assign(pair_id=rows["prompt_id"])
    measured = results.Results({results.SETS: rows, results.BARE: bare}, ())
    numbers = headline_numbers(measured).set_index(["model", "number"])
    for kind in tables.SETS:
        means = tables.sets(rows, kind).set_index("model")
        for model in ("right", "same"):
            own = numbers.loc[(model, f"weighted F1 of {kind} sets")]
            expected = means.loc[model, ["average", "average_low", "average_high"]].tolist()
            assert own[["value", "low", "high"]].tolist() == pytest.approx(expected)
            assert own["n"] == EACH * 3
    assert numbers.loc[("right", "consistency of contrast sets"), "value"] == 1.0
    assert numbers.loc[("same", "consistency of contrast sets"), "value"] == 0.0
    guess = numbers.loc["best constant guess"]["value"]
    labels = tables.scores(rows).query("model.str.startswith('always ') and source == 'baseline'")
    constant = labels[~labels["model"].isin(results.OF_BASE)]
    best = constant.groupby("set")["f1"].max()
    for kind, names in tables.SETS.items():
        assert guess[f"weighted F1 of {kind} sets"] == pytest.approx(best[list(names)].mean())
    fewer = results.Results({results.SETS: rows[rows["set"] != "N-CS"]}, ())
    lacking = headline_numbers(fewer).query("number == 'weighted F1 of contrast sets'")
    assert lacking["value"].isna().all() and lacking["note"].str.endswith("theories").all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out, name = tmp_path_factory.mktemp("study") / "out", "organism/llama-shallow"
    models = {name: interp.load_model(name, device="cpu")}
    return studied(out, RobustLRStudy(), PromptSource(limit=6), models)


@pytest.mark.slow
def test_the_report_is_written(folder):
    rows = results.read_results(folder).rows[results.SETS]
    assert rows["pair_id"].nunique() == 6
    report, folder = RobustLRStudy().report(folder), folder.folder
    page = checked_page(report, folder)
    shown = browsed(folder)["shown"]
    stages = {pair.partition("/")[0] for pair in shown}
    assert stages == {results.SETS, "distractors", "bare", results.SHORT, "in-domain"}
    for name, pair in shown.items():
        assert ("Shares of segments" in panels_of(pair)) == name.startswith(f"{results.SHORT}/")
        answered_any = any(not error for *_, error in pair["answers"])
        assert ("Probabilities of the options" in panels_of(pair)) == answered_any
    assert "group of edits (Figure 4)" in page
    names = {path.stem for path in (folder / "tables").iterdir()}
    assert {"contrast", "equivalence", "groups", "contrast_labels"} <= names
    assert {"contrast_without_unknown", "distractors", "in_domain"} <= names
    assert {"scores", "comparisons"} <= names
    in_domain = pd.read_csv(folder / "tables" / "in_domain.csv")
    columns = ["nothing else", f"up to {OTHERS} sentences", tables.WHOLE]
    assert list(in_domain.columns) == [*tables.KEY, "statements", *columns]
    measured = in_domain[in_domain["source"] == "measured"]
    assert list(measured["model"]) == ["organism/llama-shallow"]
    assert measured[columns].notna().all(axis=None)
    assert not in_domain["model"].isin(results.OF_BASE).any()  # they would be right by definition
    published = in_domain[in_domain["source"] == "published"]
    assert published[columns[:-1]].isna().all(axis=None)
    assert published[tables.WHOLE].notna().all()
    figures = {path.stem for path in (folder / "figures").glob("*.png")}
    assert figures >= {"at_a_glance", "figure4_groups", "figure6_distractors", "proof"}
    check_readings(folder, chance=1 / 3)
    by_label = pd.read_csv(folder / "tables" / "proof_by_label.csv")
    assert set(by_label["gold"].astype(str)) <= {"True", "False"}  # what is Unknown has no proof
    assert set(by_label["method"]) == {*CHEAP_METHODS, LENGTH, POSITION}


@pytest.mark.slow
def test_demonstrations_are_shown_on_request():
    stages = RobustLRStudy(distractors=False).stages(PromptSource(limit=6))
    assert [stage.name for stage in stages] == [results.SETS, results.BARE, results.SHORT]
    assert not any(stage.prompts[0].messages.demonstrations for stage in stages)
    shown = RobustLRStudy(distractors=False, demonstrations=True).stages(PromptSource(limit=6))
    assert all(len(stage.prompts[0].messages.demonstrations) == 3 for stage in shown)


def test_a_theory_of_which_a_member_is_not_measured_is_left_out(prompts):
    answers = prompts.assign(model="m", answer=prompts["gold"], error="").iloc[1:]
    left = results.answered(prompts, answers)
    assert left["pair_id"].nunique() == prompts["pair_id"].nunique() - 1
    # A caution is not repeated in a caption.
    answers = pd.DataFrame({"model": ["a", "b"], "answer": ["", ""], "error": ["", "too long"]})
    answers = pd.concat([answers, answers.assign(answer="", error="")])
    first, second, third = results._notes(answers, said=())
    assert (first[0], second[0], third[0]) == ("a", "b", "b")
    assert results._notes(answers, said=["a", "b"]) == [third]


def test_a_study_without_answers_is_refused(tmp_path):
    record = StudyRecord(study="robustlr", options={}, stages=[], models=[], history=[])
    with pytest.raises(UserError, match="'sets'"):
        results.read_results(StudyFolder(tmp_path, record, {}))
