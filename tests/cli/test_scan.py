import pytest

from interp.cli import USER_ERROR, main

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
        ([PROMPT, "--model", "organism/none"], "organism/none"),
    ],
)
def test_a_mistake(arguments, fact, tmp_path, capsys):
    page = tmp_path / "one.html"
    assert main(["scan", *arguments, "--out", str(page)]) == USER_ERROR
    assert fact in capsys.readouterr().err
    assert not page.exists()


@pytest.mark.parametrize(
    "arguments",
    [[PROMPT, "--options", "Yes"], [PROMPT, "--options", "Mary|"], ["Is it wet?"], ["OWN"]],
)
def test_a_mistake_is_said_before_anything_is_loaded(arguments, tmp_path, capsys):
    page = tmp_path / "table.csv"
    page.write_text("pair,side\n")
    own = ["--out", str(page)] if arguments == ["OWN"] else []
    asked = [PROMPT] if own else arguments
    assert main(["scan", *asked, *own]) == USER_ERROR
    said = capsys.readouterr().err
    assert "loading" not in said
    assert page.read_text() == "pair,side\n"
