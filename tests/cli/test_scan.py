import pytest

from interp.cli import main
from tests.cli.test_bad_input import refused

PROMPT = "{It rains.} Is it wet? Answer Yes or No."


@pytest.mark.slow
def test_a_page_is_written(tmp_path, capsys):
    page = tmp_path / "one.html"
    # In a folder that exists, the page has a name of its own.
    for out in (page, tmp_path):
        assert main(["scan", PROMPT, "--device", "cpu", "--out", str(out)]) == 0
    assert "part1" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.html", "scan.html"]


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["Is it wet?"], "Is it wet"),
        ([PROMPT, "--options", "Yes"], "options"),
        ([PROMPT, "--options", "Yes", "Yes"], "Yes"),
        ([PROMPT, "--options", "Mary|"], "Mary"),
        ([PROMPT, "--out", "table.csv"], "table.csv"),
        ([PROMPT, "--model", "organism/none"], "organism/none"),
    ],
)
def test_a_mistake_is_said_before_a_model_is_loaded(arguments, fact, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_text("pair,side\n")
    said = refused(["scan", *arguments], capsys)
    assert fact in said
    assert "loading" not in said
    assert [(page.name, page.read_text()) for page in tmp_path.iterdir()] == [
        ("table.csv", "pair,side\n")
    ]
