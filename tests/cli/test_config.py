"""One description of a run: flags, a YAML file and Python give the same."""

import argparse
import json
import os
import re
from pathlib import Path

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
@pytest.mark.parametrize(
    ("words", "named", "what", "stage"),
    [
        (["attribute"], {}, interp.Attribute, "."),
        (["run", "rulebreakers"], {"study": "rulebreakers"}, RulebreakersStudy, "answers"),
    ],
)
def test_flags_a_file_and_python_give_the_same(
    tmp_path, config, capsys, *, words, named, what, stage
):
    by_flags, by_file, by_call = folders = [tmp_path / name for name in ("flags", "file", "call")]
    chosen = {"limit": 2, "target": "contrast", "device": "cpu"}
    flags = [*words, "--model", MODEL, "--limit", "2", "--device", "cpu", "--out", str(by_flags)]
    file = config(models=[MODEL], out=str(tmp_path / "elsewhere"), **chosen, **named)
    with undrawn():
        assert main([*flags, "--target", "contrast"]) == 0
        # A flag overrides the file.
        assert main([words[0], "--config", file, "--out", str(by_file)]) == 0
        study = what(target=chosen.pop("target"))
        interp.run(study, models=MODEL, out=by_call, **chosen)
    first, *others = [(identity(folder / stage), written(folder)) for folder in folders]
    assert others == [first] * 2
    assert first[0]["parameters"]["target"] == "contrast"
    capsys.readouterr()
    # Another target is another run or study.
    assert main([*flags, "--target", "gold"]) == 2
    assert re.search(r"(run|study): .*contrast.*gold.*--out\b", capsys.readouterr().err)


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
        ("attribute", {"models": [[MODEL]]}, "list; expected text"),
        ("attribute", {"out": [MODEL]}, "expected text"),
        ("evaluate", {"model": []}, "model is an empty list; fill it, or omit model"),
        ("evaluate", {"answers-from": []}, "answers-from is an empty list"),
        ("attribute", {"models": ["organism/lama-deep"]}, "did you mean organism/llama-deep"),
        ("evaluate", {"study": "faithfulness"}, "unknown option 'study'"),
        ("run rulebreakers", {"system": "robustlr"}, "got the system 'robustlr'"),
        ("run", {"study": 3}, "got no study; expected one of faithfulness"),
    ],
)
def test_a_mistake_in_the_file_is_told(config, capsys, command, values, message):
    assert main([*command.split(), "--config", config(**values)]) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(tmp_path, capsys):
    for path, message in ((tmp_path / "none.yaml", "cannot be read"), (tmp_path, "cannot be read")):
        assert main(["attribute", "--config", str(path)]) == 2
        assert message in capsys.readouterr().err


def test_a_linked_file_or_a_pipe_is_read(tmp_path):
    (tmp_path / "there.yaml").write_text("limit: 2")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "there.yaml")
    reading, writing = os.pipe()
    os.write(writing, b"limit: 2")
    os.close(writing)
    for file in (tmp_path / "link.yaml", Path(f"/dev/fd/{reading}")):
        assert config_file(file) == {"limit": 2}
    os.close(reading)


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
    # The command line may name another one, also behind flags.
    for words in (["faithfulness", "--config", file], ["--config", file, "faithfulness"]):
        _, parsed = parse(["run", *words, "--no-reinitialized"])
        assert (parsed.study, parsed.reinitialized) == ("faithfulness", False)


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


@pytest.mark.parametrize(("written", "end"), [("on", "</t>"), ("off", None), ('"on"', "</t>")])
def test_on_and_off_need_no_quotes(tmp_path, written, end):
    # YAML 1.1 reads them as true and false.
    file = tmp_path / "config.yaml"
    file.write_text(f"thinking: {written}\n")
    loading = Loading(**config_file(file), end_of_thought=end)
    assert loading.thinking == written.strip('"')


def test_numbers_of_a_file_are_decimal(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("a: [0, -1, +2, 10, 0.5, .5, 1.0e-3, -.inf, '010', 1e3, 2024-07-26, true]")
    read = [*config_file(file)["a"]]
    assert read[:8] == [0, -1, 2, 10, 0.5, 0.5, 0.001, -float("inf")]
    assert read[8:] == ["010", "1e3", "2024-07-26", True]
