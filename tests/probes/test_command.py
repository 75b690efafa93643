import json

import pandas as pd
import pytest

from interp.cli import parse
from interp.errors import UserError
from interp.models.organisms import DEFAULT


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
    assert "274 prompts of rulebreakers" in captured.err
    table = pd.read_csv(tmp_path / "out" / "familiarity.csv")
    assert len(table) == 274
    assert {"familiarity", "whole_name", "shared_with", "entity_a", "entity_b"} <= set(
        table.columns
    )
    assert json.loads((tmp_path / "out" / "run.json").read_text())["finished"]


def test_knowledge_of_two_models(tmp_path, options, capsys):
    probe("knowledge", "--model", DEFAULT, "organism/gemma2", *options)
    assert "old songs" in capsys.readouterr().out
    failed = pd.read_csv(tmp_path / "out" / "excluded.csv")
    assert set(failed["failed_by"]) == {DEFAULT, "organism/gemma2"}
    assert failed["excluded"].all()
    assert len(pd.read_csv(tmp_path / "out" / "knowledge.csv")) == 2 * 274


def test_linear(tmp_path, options, capsys):
    probe("linear", "--limit", "24", "--positions", "last_token", *options)
    assert "last_token" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "linear_probes.csv")
    assert table["prompts"].tolist()[:3] == ["all", "recognized", "failed"]
    assert table["layer"].max() == 3
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["summary"][DEFAULT] == {"no_answer_share": 0.0, "errors": {}}


def test_unknown_systems_are_named(options):
    with pytest.raises(UserError, match="unknown system 'nothing'"):
        probe("familiarity", "--system", "nothing", *options)


def test_linear_probes_need_entities(options, tmp_path):
    with pytest.raises(UserError, match="the prompts name no entities"):
        probe("linear", "--system", "logical-forms", "--limit", "2", *options)
    assert not (tmp_path / "out").exists()


def test_linear_probes_need_positions_that_are_there(options, tmp_path):
    with pytest.raises(UserError, match="did you mean premise2"):
        probe("linear", "--positions", "premise3", "--limit", "2", *options)
    assert not (tmp_path / "out").exists()


def test_a_model_that_knows_every_fact(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("interp.prompts.answers.mentions", lambda *_, **__: "it")
    probe("knowledge", *options)
    assert "fails" not in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "out" / "excluded.csv").empty
