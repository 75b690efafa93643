import re
import shutil

import pandas as pd
import pytest

import interp
from interp.analysis.cautions.caution import CONSTANT, Caution
from interp.cli import main
from interp.measurements.answers.comparison import comparison_table, judged_pairs, measures_of
from interp.prompts.own.pairs import EXAMPLE, read_pairs
from interp.runs.folder import RunFolder
from interp.statistics.contrasts import mcnemar

MODELS = ("organism/llama-deep", "organism/gemma2")
EVALUATE = ["evaluate", "--device", "cpu", "--limit"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run of two models, and two runs of one model each, one of them on other prompts."""
    home = tmp_path_factory.mktemp("runs")
    assert main([*EVALUATE, "24", "--model", *MODELS, "--out", str(home / "both")]) == 0
    assert main([*EVALUATE, "24", "--model", MODELS[0], "--out", str(home / "one")]) == 0
    assert main([*EVALUATE, "20", "--model", MODELS[0], "--out", str(home / "other")]) == 0
    return home


def compared(capsys, *arguments):
    code = main(["compare", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, " ".join(out.split()), err


@pytest.mark.slow
def test_two_models_of_one_run(folders, capsys):
    code, out, err = compared(capsys, folders / "both", "--model", *MODELS)
    assert code == 0
    assert "a: organism/llama-deep" in err
    assert "paired" in out
    answers = pd.read_parquet(folders / "both" / "answers.parquet")
    right = answers.groupby("model")["correct"].sum()
    assert right[MODELS[0]] > right[MODELS[1]]


@pytest.mark.parametrize(
    "names", [[], ["--model", "llama-deep", "gemma2"], ["--model", MODELS[0], "gemma2"]]
)
def test_the_two_models_of_a_folder_need_no_names_or_short_ones(names, folders, capsys):
    code, _, err = compared(capsys, folders / "both", *names)
    assert code == 0
    assert re.search(rf"a: {MODELS[0]} in .*\nb: {MODELS[1]} in ", err)


def test_a_short_name_that_no_model_has_is_refused(folders, capsys):
    code, _, err = compared(capsys, folders / "both", "--model", "deep", "gemma2")
    assert code == 2
    assert "deep is not among" in err and MODELS[0] in err


@pytest.mark.slow
def test_a_run_and_itself_do_not_differ(folders, capsys):
    code, out, _ = compared(capsys, folders / "both", folders / "one", "--model", MODELS[0])
    assert code == 0
    assert "0.000" in out


def test_constant_answers_are_said_before_the_accuracies(folders, capsys, monkeypatch):
    void = Caution(CONSTANT, MODELS[0], "always No", voids=True)
    monkeypatch.setattr("interp.results.given.cautions_about", lambda _: (void,))
    _, out, _ = compared(capsys, folders / "both", "--model", *MODELS)
    assert out.index(f"a, {MODELS[0]}: always No") < out.index("Accuracy of a and b")
    assert f"b, {MODELS[1]}" not in out


@pytest.mark.slow
def test_questions_of_one_interpretation_are_one_cluster(tmp_path, capsys):
    folder = tmp_path / "forms"
    models = ("organism/llama-logic", "organism/gemma2")
    asked = ["--system", "logical-forms", "--out", str(folder)]
    assert main([*EVALUATE, "48", *asked, "--model", *models]) == 0
    code, _, err = compared(capsys, folder, "--model", *models)
    assert code == 0
    assert re.search(r"unit.*interpretation", err)


@pytest.mark.slow
def test_pairs_of_ones_own_are_their_own_clusters(tmp_path, capsys):
    EXAMPLE.to_csv(tmp_path / "own.csv", index=False)
    folder = tmp_path / "run"
    asked = ["--data", str(tmp_path / "own.csv"), "--device", "cpu", "--out", str(folder)]
    phrasings = ["--template", "{premise1} {premise2} {question}", "{premise2} {question}"]
    assert main(["evaluate", *asked, *phrasings, "--model", *MODELS]) == 0
    code, _, err = compared(capsys, folder, "--model", *MODELS)
    assert code == 0
    assert re.search(r"unit.*pair", err)
    pairs = read_pairs(tmp_path / "own.csv", templates=phrasings[1:])
    result = interp.run(interp.Evaluate(), models=MODELS, prompts=pairs)
    table = result.compare(*MODELS).set_index("measure")
    assert (table["pairs"] == 8).all() and (table["clusters"] == 4).all()
    right = result.answers[result.answers["model"] == MODELS[0]]["correct"].mean()
    assert table.loc[["follows", "does_not"], "accuracy_a"].mean() == pytest.approx(right)


def test_accuracies_are_weighted_as_everywhere(folders):
    accuracies = pd.read_csv(folders / "both" / "accuracy_table.csv").set_index("model")
    run = RunFolder.read(folders / "both")
    prompts = run.table("prompts")
    assert prompts["weight"].nunique() > 1
    pairs = [
        judged_pairs(run.table("answers"), prompts, model=model, cluster="entity_b")
        for model in MODELS
    ]
    measures = measures_of(pairs[0], cluster="entity_b")
    assert measures_of(pairs[0][:0], cluster="entity_b") == measures
    table = comparison_table(*pairs, measures=measures, cluster="entity_b").set_index("measure")
    assert list(table.index) == [*prompts["side"].unique(), "paired"]
    for column, model in zip(("accuracy_a", "accuracy_b"), MODELS, strict=True):
        for measure, share in table[column].items():
            assert share == pytest.approx(accuracies.loc[model, f"{measure}_accuracy"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one", "other"], "the prompts differ"),
        (["one"], f"{MODELS[0]} in"),
        (["both", "--model", MODELS[0], MODELS[0]], "compared with itself"),
        (["both", "--model", MODELS[0]], "compared with itself"),
        (["both", "--model", *MODELS, "x/y"], "got more than two folders or models"),
        (["both", "one", "other"], "got more than two folders or models"),
        (["both", "--model", "x/y", MODELS[0]], "x/y is not among the models of"),
        (["nowhere", "one"], "nowhere"),
    ],
)
def test_bad_input_is_named(folders, capsys, arguments, message):
    names = {"one", "other", "both", "nowhere"}
    code, _, err = compared(
        capsys, *(folders / name if name in names else name for name in arguments)
    )
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two runs with different seeds, and one of another system."""
    home = tmp_path_factory.mktemp("seeds")
    for name, options in {
        "0": ["10", "--seed", "0"],
        "1": ["10", "--seed", "1"],
        "other": ["1", "--seed", "2", "--system", "logical-forms"],
    }.items():
        run = [*EVALUATE, *options, "--model", MODELS[1], "--out", str(home / name)]
        assert main(run) == 0
    return home


@pytest.mark.quick(1)
@pytest.mark.parametrize("named", [(), ("--model", MODELS[1])])
def test_runs_with_different_seeds(seeds, capsys, named):
    code, out, err = compared(capsys, seeds / "0", seeds / "1", *named)
    assert code == 0
    assert "Accuracy across seeds" in out
    assert MODELS[1] in out
    assert re.search(r"\b10\b", err)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["0", "1", "1"],
            "the runs have the seeds 0, 1, 1; expected one seed, or only different seeds",
        ),
        (["0", "other"], "the runs have the systems rulebreakers, logical-forms; expected one"),
        (["0", "1", "--model", "x/y"], "x/y is not among the models of all these runs"),
        (["0", "nowhere"], "nowhere"),
    ],
)
def test_bad_seeds_are_named(seeds, capsys, names, message):
    here = {"0", "1", "other", "nowhere"}
    code, _, err = compared(capsys, *(seeds / name if name in here else name for name in names))
    assert code == 2
    assert message in err


def test_changed_texts_are_refused(folders, capsys, tmp_path):
    for name in ("one", "both"):
        shutil.copytree(folders / name, tmp_path / name)
    prompts = pd.read_parquet(tmp_path / "one" / "prompts.parquet")
    prompts.loc[0, "text"] = "another"
    prompts.to_parquet(tmp_path / "one" / "prompts.parquet")
    code, _, err = compared(capsys, tmp_path / "one", tmp_path / "both", "--model", MODELS[0])
    assert code == 2
    assert err


def test_the_table_by_hand():
    a = pd.DataFrame({"pair_id": range(40), "city": [k % 20 for k in range(40)], "weight": 1.0})
    b = a.assign(paired=[k % 4 == 0 for k in range(40)])
    a = a.assign(paired=[k % 2 == 0 for k in range(40)])
    (row,) = comparison_table(a, b, measures=["paired"], cluster="city").itertuples()
    assert (row.accuracy_a, row.accuracy_b, row.difference) == (0.5, 0.25, 0.25)
    assert (row.only_a, row.only_b, row.pairs, row.clusters) == (10, 0, 40, 20)
    assert row.p_mcnemar == mcnemar(a["paired"].tolist(), b["paired"].tolist()) == 2 / 2**10
    assert row.low < 0.25 < row.high
