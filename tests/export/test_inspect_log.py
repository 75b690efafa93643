"""Answers as logs of Inspect, which its own reader takes for its own."""

import json

import pytest

import interp
from interp.analysis.accuracy import accuracies
from interp.cli import main
from interp.errors import UserError
from interp.export.inspect_log import answered_runs
from interp.models.organisms import DEFAULT
from interp.runs.folder import RunFolder

PAIRS = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "answers"
    models = [DEFAULT, "organism/dose-0"]
    interp.run(interp.measurement("evaluate"), models=models, limit=PAIRS, out=folder)
    return folder


@pytest.fixture(scope="module")
def logs(run, tmp_path_factory):
    """The log of each model, with its file."""
    folder = tmp_path_factory.mktemp("logs")
    assert main(["export", "inspect-log", "--answers", str(run), "--out", str(folder)]) == 0
    read = [(file, json.loads(file.read_text())) for file in sorted(folder.iterdir())]
    return {log["eval"]["model"]: (file, log) for file, log in read}


@pytest.fixture(scope="module")
def expected(organism):
    prompts = interp.load_prompts(limit=PAIRS)
    return prompts, interp.evaluate(organism, prompts)


def test_a_log_has_every_prompt_with_text_answer_and_probabilities(logs, expected):
    prompts, scores = expected
    _, log = logs[DEFAULT]
    answers = scores.answers.set_index("prompt_id")
    options = scores.option_probabilities.set_index(["prompt_id", "option"])["probability"]
    assert [sample["id"] for sample in log["samples"]] == [prompt.id for prompt in prompts]
    for sample, prompt in zip(log["samples"], prompts, strict=True):
        score, answer = sample["scores"]["interp"], answers.loc[prompt.id]
        assert (sample["input"], sample["target"]) == (prompt.text, prompt.answer.gold)
        assert sample["output"]["completion"] == answer["predicted_token"]
        assert score["answer"] == answer["answer"]
        assert score["value"] == ("C" if answer["correct"] else "I")
        for option in prompt.answer.options:
            found = score["metadata"][f"probability of {option.name}"]
            assert found == pytest.approx(options[prompt.id, option.name], abs=1e-6)
        about = sample["metadata"]
        assert (about["pair_id"], about["side"]) == (prompt.pair_id, prompt.side)
        assert prompt.factors.items() <= about.items()


def test_its_metrics_are_interps_accuracies(logs, expected):
    prompts, scores = expected
    (score,) = logs[DEFAULT][1]["results"]["scores"]
    shares = accuracies(scores.answers, prompts.to_frame()).drop("prompts")
    assert {name: metric["value"] for name, metric in score["metrics"].items()} == dict(shares)


def test_what_a_reader_would_object_to_stands_beside_the_metrics(logs, run):
    records = json.loads((run / "run.json").read_text())["summary"]
    for model, (_, log) in logs.items():
        kept = [caution["text"] for caution in records[model]["cautions"]]
        assert kept and log["eval"]["metadata"]["cautions"] == kept


@pytest.mark.filterwarnings("default")
def test_inspect_reads_and_lists_the_logs(logs, expected):
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import list_eval_logs, read_eval_log

    file, log = logs[DEFAULT]
    assert len(list_eval_logs(str(file.parent))) == 2
    header = read_eval_log(str(file), header_only=True)
    assert header.status == "success" and header.eval.model == DEFAULT
    read = read_eval_log(str(file))
    assert [sample.id for sample in read.samples] == [sample["id"] for sample in log["samples"]]
    assert read.samples[0].scores["interp"].answer in ("Yes", "No", "True", "False", "")
    accuracy = read.results.scores[0].metrics["paired_accuracy"].value
    assert accuracy == log["results"]["scores"][0]["metrics"]["paired_accuracy"]["value"]


def test_generated_texts_are_written_whole(tmp_path):
    run, folder = tmp_path / "run", tmp_path / "logs"
    interp.run(interp.measurement("generate"), models=[DEFAULT], limit=2, out=run)
    assert main(["export", "inspect-log", "--answers", str(run), "--out", str(folder)]) == 0
    (file,) = folder.iterdir()
    samples = json.loads(file.read_text())["samples"]
    texts = RunFolder.read(run).table("completions").set_index("prompt_id")["completion"]
    assert {one["id"]: one["messages"][1]["content"] for one in samples} == dict(texts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inspect-log"], "inspect-log requires --answers DIR"),
        (["lm-eval", "--answers", "runs"], "do not accept it"),
        (["inspect-log", "--answers", "RUN", "--limit", "3"], "its own prompts; omit --limit"),
        (["inspect-log", "--answers", "nowhere"], "no folder nowhere"),
    ],
)
def test_what_cannot_be_exported_is_refused(arguments, message, run, tmp_path, capsys):
    words = [str(run) if word == "RUN" else word for word in arguments]
    assert main(["export", *words, "--out", str(tmp_path / "logs")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "logs").exists()


def test_a_run_without_answers_is_refused():
    with pytest.raises(UserError, match=r"evaluate, attribute.*generate"):
        answered_runs({})
