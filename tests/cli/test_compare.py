import re
import shutil

import pandas as pd
import pytest

import interp
from interp.analysis.cautions.caution import CONSTANT, Caution
from interp.cli import main
from interp.prompts.own.pairs import EXAMPLE, read_pairs
from interp.runs.folder import RunFolder

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


@pytest.mark.parametrize(
    "names", [[], ["--model", "llama-deep", "gemma2"], ["--model", MODELS[0], "gemma2"]]
)
def test_the_two_models_of_a_folder_need_no_names_or_short_ones(names, folders, capsys):
    code, out, _ = compared(capsys, folders / "both", *names)
    assert code == 0
    assert f"{MODELS[0]} minus {MODELS[1]}" in out


def test_a_short_name_that_no_model_has_is_refused(folders, capsys):
    code, _, err = compared(capsys, folders / "both", "--model", "deep", "gemma2")
    assert code == 2
    assert "deep is not among them" in err and MODELS[0] in err


@pytest.mark.slow
def test_a_run_and_itself_do_not_differ(folders, capsys):
    code, out, _ = compared(capsys, folders / "both", folders / "one", "--model", MODELS[0])
    assert code == 0
    assert "0.000" in out


def test_constant_answers_are_said_before_the_accuracies(folders, capsys, monkeypatch):
    void = Caution(CONSTANT, MODELS[0], "always No", voids=True)
    monkeypatch.setattr("interp.results.given.cautions_about", lambda _: (void,))
    _, out, _ = compared(capsys, folders / "both", "--model", *MODELS)
    assert out.index(f"{MODELS[0]}: always No") < out.index("score")
    assert f"{MODELS[1]}: always" not in out


@pytest.mark.slow
def test_questions_of_one_interpretation_are_one_cluster(tmp_path, capsys):
    folder = tmp_path / "forms"
    models = ("organism/llama-logic", "organism/gemma2")
    asked = ["--system", "logical-forms", "--out", str(folder)]
    assert main([*EVALUATE, "48", *asked, "--model", *models]) == 0
    code, out, _ = compared(capsys, folder, "--model", *models)
    assert code == 0
    assert re.search(r"unit.*interpretation", out)


@pytest.mark.slow
def test_pairs_of_ones_own_are_their_own_clusters(tmp_path, capsys):
    EXAMPLE.to_csv(tmp_path / "own.csv", index=False)
    folder = tmp_path / "run"
    asked = ["--data", str(tmp_path / "own.csv"), "--device", "cpu", "--out", str(folder)]
    phrasings = ["--template", "{premise1} {premise2} {question}", "{premise2} {question}"]
    assert main(["evaluate", *asked, *phrasings, "--model", *MODELS]) == 0
    code, out, _ = compared(capsys, folder, "--model", *MODELS)
    assert code == 0
    assert re.search(r"unit.*pair", out)
    pairs = read_pairs(tmp_path / "own.csv", templates=phrasings[1:])
    result = interp.run(interp.Evaluate(), models=MODELS, prompts=pairs)
    table = result.compare(*MODELS).set_index("subset")
    assert [*table["items"]] == [16, 8, 8, 8] and (table["clusters"] == 4).all()
    right = result.answers[result.answers["model"] == MODELS[0]]["correct"].mean()
    assert table.loc[["follows", "does_not"], "score_a"].mean() == pytest.approx(right)


def test_other_prompts_are_compared_where_both_have_them(folders):
    one, other = (
        {*RunFolder.read(folders / name).table("prompts")["prompt_id"]} for name in ("one", "other")
    )
    assert one - other and one & other
    table = interp.compare(folders / "one", folders / "other").to_frame()
    assert table["items"].iloc[0] == len(one & other)


def test_accuracies_are_weighted_as_everywhere(folders):
    accuracies = pd.read_csv(folders / "both" / "accuracy_table.csv").set_index("model")
    prompts = RunFolder.read(folders / "both").table("prompts")
    assert prompts["weight"].nunique() > 1
    table = interp.compare(folders / "both", model=MODELS).to_frame()
    sides = table[table["subset"] != "all"].set_index("subset")
    assert {*sides.index} == {*prompts["side"]}
    paired = table[table["metric"] == "paired"].set_index("metric")
    for column, model in zip(("score_a", "score_b"), MODELS, strict=True):
        for measure, share in pd.concat([sides, paired])[column].items():
            assert share == pytest.approx(accuracies.loc[model, f"{measure}_accuracy"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one"], f"holds the models {MODELS[0]}"),
        (["both", "--model", MODELS[0], MODELS[0]], "given twice"),
        (["both", "--model", MODELS[0]], "given twice"),
        (["both", "--model", *MODELS, "x/y"], "got 3 names of models for 2 folders"),
        (["both", "one", "other"], f"holds the models {MODELS[0]}, {MODELS[1]}"),
        (["both", "--model", "x/y", MODELS[0]], "x/y is not among them"),
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
    assert "prompts.parquet has changed" in err
