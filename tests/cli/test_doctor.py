import re

from interp.cli import main
from interp.prompts.own.pairs import EXAMPLE


def test_every_part_is_shown(tmp_path, capsys):
    file = tmp_path / "pairs.csv"
    EXAMPLE.to_csv(file, index=False)
    command = ["doctor", "--model", "organism/mistral", "--device", "cpu", "--data", str(file)]
    assert main(command) == 0
    told = capsys.readouterr().out
    titles = ["This machine", "organism/mistral", "Prompts of pairs", "Numbers", "Cost"]
    assert [line for line in told.splitlines() if line and line[0] != " "] == titles
    assert re.search(r"answer Yes: Yes \(\d+\)", told)
    assert re.search(r"evaluate, 8 prompts: about 0:0\d and \d+ KiB", told)
    assert max(map(len, told.splitlines())) <= 100


def test_a_model_that_is_not_there_is_refused(capsys):
    assert main(["doctor", "--model", "organism/gemma2", "--data", "none.csv"]) == 2
    assert "no data at 'none.csv'" in capsys.readouterr().err
