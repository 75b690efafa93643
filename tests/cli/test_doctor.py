import re

import pytest

from interp.cli import main
from interp.prompts.own.pairs import EXAMPLE


def test_every_part_is_shown(tmp_path, capsys):
    file = tmp_path / "pairs.csv"
    EXAMPLE.to_csv(file, index=False)
    command = ["doctor", "--model", "organism/mistral", "--device", "cpu", "--data", str(file)]
    command += ["--shots", "2", "--instruction", "Read.", "--answer-prefix", "Answer:"]
    assert main(command) == 0
    told = capsys.readouterr().out
    first = "Read first (answers to 8 prompts)"
    titles = [first, "This machine", "organism/mistral", "Prompts of pairs", "Numbers", "Cost"]
    assert [line for line in told.splitlines() if line and line[0] != " "] == titles
    assert re.search(r"answer Yes: ' Yes' \(\d+\)", told)
    assert re.search(r"evaluate, 8 prompts: .*\b0:0\d\b.*\b\d+ KiB", told)
    read = " ".join(told.split())
    shown = r"as the model reads it: .*\[INST\] Read\.\\n.*\[/INST\] ?Answer: (Yes|No)</s>"
    assert re.search(shown, read)
    assert re.search(r"segments, tokens: shot1 \d+, shot2 \d+, instruction \d+, .*_prefix", read)
    assert max(map(len, told.splitlines())) <= 100


@pytest.mark.slow
def test_validate_says_what_each_model_will_refuse(tmp_path, capsys):
    file = tmp_path / "pairs.csv"
    EXAMPLE.to_csv(file, index=False)
    models = ["--model", "organism/mistral", "b=organism/gemma2", "--device", "cpu"]
    assert main(["validate", str(file), *models]) == 0
    assert re.search(r"\bb .*\b8\b", capsys.readouterr().err)
    gold = {"gold": {"Yes": "New York", "No": "New Jersey"}}
    EXAMPLE.assign(options="New York|New Jersey").replace(gold).to_csv(file, index=False)
    assert main(["validate", str(file), *models]) == 0
    EXAMPLE.assign(premise1="word " * 5000).to_csv(file, index=False)
    assert main(["validate", str(file), *models]) == 2
    told = capsys.readouterr().err
    assert re.findall(r"(\S+) [a-z ]+ 8 of 8", told) == ["organism/mistral", "b"]
    assert main(["validate", str(file), "--device", "cpu"]) == 2
    assert main(["validate", str(tmp_path), *models]) == 2
