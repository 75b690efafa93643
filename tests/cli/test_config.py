"""One description of a run: flags, a YAML file and Python give the same."""

import argparse
import json
import re
from datetime import date

import pytest

import interp
from interp.cli import main, parse
from interp.cli.config_file import config_file
from interp.cli.fields import add_options, given
from interp.cli.measure import job_of
from interp.measurements.specs import Evaluate, Patch
from interp.models.loading import Loading
from interp.prompts.source import PromptSource
from interp_experiments.rulebreakers.study import RulebreakersStudy
from tests.support.pages import undrawn

MODEL = "organism/phi3-shallow"


def written(folder):
    """The tables and records of a folder that do not hold times."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.suffix in (".parquet", ".csv")
    }


def identity(folder):
    return json.loads((folder / "run.json").read_text())["run"]


@pytest.fixture
def config(tmp_path):
    def write(**values):
        file = tmp_path / "config.yaml"
        file.write_text(json.dumps(values))  # JSON is YAML
        return str(file)

    return write


@pytest.mark.slow
def test_flags_a_file_and_python_give_the_same_run(tmp_path, config, capsys):
    by_flags, by_file, by_call = (tmp_path / name for name in ("flags", "file", "call"))
    flags = ["--model", MODEL, "--limit", "3", "--target", "gold", "--device", "cpu"]
    assert main(["attribute", *flags, "--out", str(by_flags)]) == 0
    file = config(
        models=[MODEL], limit=3, target="gold", device="cpu", out=str(tmp_path / "elsewhere")
    )
    # A flag overrides the file.
    assert main(["attribute", "--config", file, "--out", str(by_file)]) == 0
    result = interp.run(
        interp.Attribute(target="gold"), models=MODEL, limit=3, device="cpu", out=by_call
    )
    assert identity(by_flags) == identity(by_file) == identity(by_call)
    assert written(by_flags) == written(by_file) == written(by_call)
    assert len(result.answers) == 6
    in_memory = interp.run(interp.Attribute(target="gold"), models=MODEL, limit=3, device="cpu")
    assert in_memory.segment_scores.equals(result.segment_scores)


@pytest.mark.slow
def test_a_study_by_flags_by_a_file_and_by_a_call(tmp_path, config, capsys):
    by_flags, by_file, by_call = (tmp_path / name for name in ("flags", "file", "call"))
    flags = ["--model", MODEL, "--limit", "2", "--target", "contrast", "--device", "cpu"]
    with undrawn():
        assert main(["run", "rulebreakers", *flags, "--out", str(by_flags)]) == 0
    file = config(
        study="rulebreakers",
        models=MODEL,
        limit=2,
        target="contrast",
        device="cpu",
        out=str(by_file),
    )
    study = RulebreakersStudy(target="contrast")
    with undrawn():
        assert main(["run", "--config", file]) == 0
        folder = interp.run(study, models=[MODEL], limit=2, device="cpu", out=by_call)
    assert folder.problems() == []
    assert written(by_flags) == written(by_file) == written(by_call)
    assert identity(by_call / "answers")["parameters"]["target"] == "contrast"
    options = json.loads((by_file / "study.json").read_text())["options"]
    assert options["target"] == "contrast"
    capsys.readouterr()
    # Another target is another study.
    other = [word if word != "contrast" else "gold" for word in flags]
    assert main(["run", "rulebreakers", *other, "--out", str(by_flags)]) == 2
    assert re.search(r"study: .*--out\b", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("command", "values", "message"),
    [
        ("attribute", {"limits": 3}, "config.yaml: unknown option 'limits'; did you mean limit"),
        ("attribute", {"limit": -1}, "limit is -1"),
        ("attribute", {"target": "golden"}, "unknown target 'golden'; did you mean gold"),
        ("attribute", {"model": MODEL, "models": MODEL}, "both model and models, which are the"),
        ("attribute", {"no_chat_template": True, "chat_template": False}, "both no_chat_template"),
        ("attribute", {"no_chat_template": "no"}, "is 'no'; expected true or false"),
        ("attribute", {"models": 3}, "model is 3: expected a list"),
        ("attribute", {"models": ["organism/lama-deep"]}, "did you mean organism/llama-deep"),
        ("evaluate", {"study": "faithfulness"}, "unknown option 'study'"),
        ("run rulebreakers", {"system": "robustlr"}, "got the system 'robustlr'"),
    ],
)
def test_a_mistake_in_the_file_is_told(config, capsys, command, values, message):
    assert main([*command.split(), "--config", config(**values)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys):
    for path, message in ((tmp_path / "none.yaml", "cannot be read"), (tmp_path, "plain file")):
        assert main(["attribute", "--config", str(path)]) == 2
        assert message in capsys.readouterr().err


def test_a_file_takes_the_names_of_flags(config):
    file = config(model=MODEL, **{"no-chat-template": True})
    _, parsed = parse(["evaluate", "--config", file])
    job, _ = job_of(parsed, Evaluate)
    assert [model.place for model in job.models] == [MODEL]
    assert job.loading == Loading(chat_template=False)


def test_what_a_flag_switches_off_may_stay_on(config):
    _, parsed = parse(["evaluate", "--config", config(no_chat_template=False)])
    assert job_of(parsed, Evaluate)[0].loading.chat_template


def test_a_study_that_the_file_names_takes_its_own_flags(config):
    file = config(study="rulebreakers", models=MODEL)
    _, parsed = parse(["run", "--config", file, "--limit", "60", "--target", "contrast"])
    assert (parsed.limit, parsed.target) == ("60", "contrast")


def test_every_option_has_a_flag_that_gives_it():
    parser = argparse.ArgumentParser()
    for kind in (Patch, Loading, PromptSource):
        add_options(parser, kind)
    words = "--sites z q --layers 0-2 5 --verify 3 --estimate gradient --no-chat-template"
    parsed = parser.parse_args([*words.split(), "--limit", "all", "--dtype", "fp16"])
    assert Patch(**given(parsed, Patch, {})) == Patch(
        sites=("z", "q"), layers=(0, 1, 2, 5), verify=3, estimate="gradient"
    )
    assert Loading(**given(parsed, Loading, {})) == Loading(chat_template=False, dtype="float16")
    assert PromptSource(**given(parsed, PromptSource, {})) == PromptSource(limit="all")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit: 2\nseed: 1\nlimit: 4", r"config\.yaml, line 3: 'limit' occurs twice"),
        ('"limit": 2\n? limit\n: 4', r"line 2: 'limit' occurs twice"),
        ("fail-on-error: 0.5\nfail_on_error: 0.9", "both fail-on-error and fail_on_error"),
        ("seed: 1\nlimit: 010", r"config\.yaml, line 2: '010' is not a decimal number"),
        ("limit: 1:30", r"line 1: '1:30' is not a decimal number"),
        ("limit: 0x10", r"line 1: '0x10' is not a decimal number"),
        ("limit: 0b11", r"line 1: '0b11' is not a decimal number"),
        ("limit: 1_0", r"line 1: '1_0' is not a decimal number"),
        ("fail-on-error: 1:30.5", r"line 1: '1:30\.5' is not a decimal number"),
        ("fail-on-error: 0_0.5", r"line 1: '0_0\.5' is not a decimal number"),
        ("models: [x, {a: 1, a: 2}]", r"line 1: 'a' occurs twice"),
        ('system-prompt: "\\ud800"', r"line 1: .*\\ud800.* contains half of a character"),
        ('"\\ud800": 1', r"line 1: .*\\ud800.* contains half of a character"),
        ("limit: " + "9" * 5000, "is not YAML: Exceeds the limit"),
        ("a: [", "is not YAML"),
        ("!!python/object/apply:os.system [echo]", "is not YAML"),
        ("- 1", "contains no options, such as"),
        ("", "contains no options, such as"),
    ],
)
def test_what_a_file_says_in_two_ways_is_refused(tmp_path, capsys, text, message):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert main(["evaluate", "--model", MODEL, "--config", str(file)]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_numbers_of_a_file_are_decimal(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("a: [0, -1, +2, 10, 0.5, .5, 1.0e-3, -.inf, '010', 1e3, 2024-07-26, true]")
    read = [*config_file(file)["a"]]
    assert read[:8] == [0, -1, 2, 10, 0.5, 0.5, 0.001, -float("inf")]
    assert read[8:] == ["010", "1e3", date(2024, 7, 26), True]
