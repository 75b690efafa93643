import json

import pandas as pd
import pytest

from interp.cli import main, parse
from interp.errors import UserError
from interp.models.organisms import DEFAULT
from interp.prompts.own.pairs import EXAMPLE
from interp.report.formatting import p_text


def probe(*arguments):
    command, parsed = parse(["probe", *arguments])
    command.run(parsed)


@pytest.fixture
def options(tmp_path):
    return ["--device", "cpu", "--out", str(tmp_path / "out")]


def test_familiarity(tmp_path, options, capsys):
    probe("familiarity", *options)
    captured = capsys.readouterr()
    assert "geographical" in captured.out
    assert "1,096 prompts of rulebreakers" in captured.err
    table = pd.read_csv(tmp_path / "out" / "familiarity.csv")
    wordings = ["as asked", "plain", "question", "examples"]
    assert table["wording"].value_counts(sort=False).to_dict() == dict.fromkeys(wordings, 274)
    assert {"familiarity", "whole_name", "shared_with", "entity_a", "entity_b"} <= {*table}
    assert json.loads((tmp_path / "out" / "run.json").read_text())["finished"]


@pytest.mark.slow
def test_knowledge_of_two_models(tmp_path, options, capsys):
    probe("knowledge", "--model", DEFAULT, "organism/gemma2", *options)
    assert "old songs" in capsys.readouterr().out
    failed = pd.read_csv(tmp_path / "out" / "excluded.csv")
    assert set(failed["failed_by"]) == {DEFAULT, "organism/gemma2"}
    assert failed["excluded"].all()
    assert len(pd.read_csv(tmp_path / "out" / "knowledge.csv")) == 2 * 4 * 274


def test_linear(tmp_path, options, capsys):
    probe("linear", "--limit", "24", "--positions", "last_token", *options)
    assert "last_token" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "linear_probes.csv")
    assert table["prompts"].tolist()[:3] == ["all", "recognized", "failed"]
    assert table["layer"].max() == 3
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["summary"][DEFAULT] == {"no_answer_share": 0.0, "errors": {}}


@pytest.mark.slow
def test_linear_probes_of_pairs_of_ones_own(options, tmp_path, capsys):
    file = tmp_path / "pairs.csv"
    # Copies of a pair would count as one cluster.
    pairs, premises = EXAMPLE["pair"], EXAMPLE["premise1"]
    turns = [
        EXAMPLE.assign(pair=pairs + 4 * turn, premise1=premises + f" It is day {turn}.")
        for turn in range(6)
    ]
    pd.concat(turns).to_csv(file, index=False)
    probe("linear", "--data", str(file), "--positions", "last_token", "premise2", *options)
    assert "undefined" not in capsys.readouterr().err
    table = pd.read_csv(tmp_path / "out" / "linear_probes.csv")
    everything = table[table["prompts"] == "all"]
    counts = everything[["n_prompts", "n_clusters", "n_dropped"]]
    assert counts.drop_duplicates().to_numpy().tolist() == [[48, 24, 0]]
    assert everything[["accuracy", "p_family"]].notna().all(axis=None)
    # The sides differ in a word of premise 2, and the last token of every prompt is the same.
    assert everything.set_index(["position", "layer"]).loc[("last_token", 0), "accuracy"] == 0.5
    assert main(["report", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "best accuracy at premise2 (chance: 0.50)" in page
    # The best layer is chosen, so its p is corrected for all layers and positions.
    best = everything[everything["position"] == "premise2"].nlargest(1, "accuracy").iloc[0]
    told = f"layer {best['layer']}, p = {p_text(best['p_family'])}: {best['accuracy']:.2f}"
    assert told in page


@pytest.mark.slow
def test_linear_probes_are_split_by_interpretation(options, tmp_path):
    probe("linear", "--system", "logical-forms", "--limit", "24", *options)
    table = pd.read_csv(tmp_path / "out" / "linear_probes.csv")
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["run"]["system"] == "logical-forms"
    assert table["accuracy"].notna().any()
    units = pd.read_parquet(tmp_path / "out" / "prompts.parquet")["interpretation"].nunique()
    assert table["n_clusters"].max() == units


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["--system", "robustlr"], r"linear probes .*two sides"),
        (["--positions", "premise3"], r"'premise3'.*premise2\b.*last_token, premise1\b"),
    ],
)
def test_linear_probes_need_two_sides_and_positions_that_are_there(
    options, tmp_path, chosen, message
):
    with pytest.raises(UserError, match=message):
        probe("linear", *chosen, "--limit", "2", *options)
    assert not (tmp_path / "out").exists()


def test_a_model_that_knows_every_fact(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("interp.prompts.answers.mentions", lambda *_, **__: "it")
    probe("knowledge", *options)
    assert "does not complete" not in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "out" / "excluded.csv").empty
