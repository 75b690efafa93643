"""Messages around prompts, asked for on the command line, in YAML and in Python."""

import json

import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.errors import UserError
from interp.export.inspect_log import _before
from interp.prompts.mixing import with_donors
from interp.prompts.own.pairs import EXAMPLE
from interp.prompts.source import PromptSource
from interp.runs.folder import RunFolder
from interp_experiments.logical_forms.study import LogicalFormsStudy
from interp_experiments.rulebench.study import RuleBenchStudy
from interp_experiments.rulebreakers.study import RulebreakersStudy
from interp_probes.specs import Familiarity

MODEL = ["--model", "organism/mistral", "--device", "cpu"]
ASKED = {"shots": 2, "shots_seed": 1, "instruction": "Read.", "answer_prefix": "Answer:"}
FLAGS = ["--shots", "2", "--shots-seed", "1", "--instruction", "Read."]
FLAGS += ["--answer-prefix", "Answer:"]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("own") / "pairs.csv"
    EXAMPLE.to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def run(file):
    out = file.parent / "run"
    assert main(["evaluate", *MODEL, "--data", str(file), *FLAGS, "--out", str(out)]) == 0
    return out


def test_a_run_records_what_its_prompts_were_shown(run, file):
    about = json.loads((run / "run.json").read_text())["run"]["data"]
    assert {name: about[name] for name in ASKED} == {n: str(what) for n, what in ASKED.items()}
    own = pd.read_parquet(run / "prompts.parquet").set_index("prompt_id")
    expected = interp.with_messages(interp.read_pairs(file), **ASKED)
    for prompt in expected:
        assert json.loads(own.loc[prompt.id, "messages"]) == prompt.messages.record()
    model = interp.load_model("organism/mistral", device="cpu")
    answers = RunFolder.read(run).table("answers").set_index("prompt_id")
    for row in interp.evaluate(model, expected).answers.to_dict("records"):
        recorded = answers.loc[row["prompt_id"]]
        assert recorded["predicted_probability"] == pytest.approx(row["predicted_probability"])
        assert recorded["predicted_token"] == row["predicted_token"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (["--shots", "3"], ("with --shots 2", "with --shots 3")),
        (["--shots", "3", "--limit", "3"], ("with --shots 2", "with --shots 3")),
        (["--shots-seed", "2"], ("with --shots-seed 1", "with --shots-seed 2")),
        (["--instruction", "X"], ("with --instruction Read.", "with --instruction X")),
        (["--answer-prefix", "So"], ("with --answer-prefix Answer:", "with --answer-prefix So")),
        (["--system-prompt", "Be brief."], ("with system prompt None", "with 'Be brief.'")),
    ],
)
def test_other_messages_are_another_run(run, file, change, told, capsys):
    command = ["evaluate", *MODEL, "--data", str(file), *FLAGS, *change, "--out", str(run)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert all(part in error for part in (str(run), *told))


def test_yaml_asks_for_the_same(run, file, capsys):
    config = file.parent / "run.yaml"
    config.write_text(json.dumps(ASKED | {"data": str(file), "device": "cpu"}))
    command = ["evaluate", "--config", str(config), "--model", "organism/mistral"]
    assert main([*command, "--out", str(run)]) == 0  # resumes the run, which is finished


def test_logs_show_the_messages(run, tmp_path, capsys):
    assert main(["export", "inspect-log", "--answers", str(run), "--out", str(tmp_path)]) == 0
    (log,) = tmp_path.glob("*.json")
    sample = json.loads(log.read_text())["samples"][0]
    roles = [message["role"] for message in sample["messages"]]
    assert roles == ["user", "assistant"] * 3
    assert [message["role"] for message in sample["input"]] == roles[:-1]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "record", ["{", "[]", '{"demonstrations": [{"question": "a"}]}', '{"system_prompt": 3}']
)
def test_a_damaged_record_of_messages_is_told(record):
    with pytest.raises(UserError, match=r"'p'.*\(.+\)"):
        assert not _before("p", record)


def test_facts_are_asked_as_they_are(file, capsys):
    for flags in (["--shots", "1"], ["--instruction", "Read."]):
        with pytest.raises(SystemExit, match="2"):
            main(["probe", "familiarity", *MODEL, *flags])
    with pytest.raises(UserError, match="shots, shots_seed"):
        interp.run(Familiarity(), models="organism/mistral", shots=1)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--shots", "2", "--instruction", "Read."], ["demonstrations"]),
        (["--shots", "4"], ["cannot have 4 shots"]),
        (["--shots-seed", "1"], ["no shots"]),
        (["--instruction", " "], ["instruction"]),
    ],
)
def test_validate_knows_what_is_written_around_prompts(file, flags, told, capsys):
    assert main(["validate", str(file), *flags]) == (0 if told == ["demonstrations"] else 2)
    error = capsys.readouterr().err
    assert all(part in error for part in told)


def test_validate_finds_the_rows_that_would_be_refused(tmp_path, capsys):
    own = tmp_path / "pairs.csv"
    rows = EXAMPLE.assign(answer_prefix="Answer:", shot1="Is it wet?", shot1_answer="Yes")
    rows.to_csv(own, index=False)
    assert main(["validate", str(own)]) == 0
    assert "messages around it: demonstrations, answer_prefix" in capsys.readouterr().err
    for flags, told in (
        (["--shots", "1"], "demonstrations of its own"),
        (["--answer-prefix", "So"], "has its own answer prefix"),
    ):
        assert main(["validate", str(own), *flags]) == 2
        assert told in capsys.readouterr().err
    facts = tmp_path / "facts.csv"
    pd.DataFrame([("a", "Rome is in", "Italy")], columns=["fact", "text", "answer"]).to_csv(
        facts, index=False
    )
    assert main(["validate", str(facts), "--instruction", "Read."]) == 2
    assert "omit --instruction" in capsys.readouterr().err
    assert main(["validate", str(tmp_path), "--shots", "1"]) == 2
    assert "omit --shots" in capsys.readouterr().err


def test_effects_leave_the_messages_as_they_are():
    model = interp.load_model("organism/mistral", device="cpu")
    asked = interp.read_pairs(EXAMPLE)
    shown = interp.with_messages(asked, shots=1, instruction="Read.")
    found = interp.effects(model, shown, donors=1).table("segment_effects")
    assert (found["error"] == "").all()
    assert set(found["segment"]) == with_donors(asked, count=1)[0].donors[0].segments.keys()


@pytest.mark.slow
def test_studies_ask_with_them_or_refuse_them():
    source = PromptSource(limit=2, instruction="Read.")
    for stage in LogicalFormsStudy().stages(source):
        assert "instruction" in stage.prompts[0].segments
    with pytest.raises(UserError, match=r"'string-game/\d+/no'.*instruction"):
        RuleBenchStudy().stages(source)
    with pytest.raises(UserError, match="after demonstrations of its own"):
        RuleBenchStudy().stages(PromptSource(limit=2, shots=1))


@pytest.mark.slow
def test_a_studys_facts_are_asked_alone():
    stages = RulebreakersStudy().stages(PromptSource(limit=2, shots=1))
    shots = {stage.name: len(stage.prompts[0].messages.demonstrations) for stage in stages}
    assert shots.pop("familiarity") == shots.pop("knowledge") == 0
    assert set(shots.values()) == {1}
