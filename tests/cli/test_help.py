"""The page of questions, the first options of a command, and all of them."""

import re
from pathlib import Path

import pytest

from interp.cli import USER_ERROR, build, find_commands, main
from interp.cli.help import GROUPS, QUESTIONS, found
from interp.cli.parser import Parser
from interp.plugins import STUDIES, plugins

AGENTS = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")


def helped(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_the_help_is_a_page_of_at_most_ten_commands_in_four_groups(capsys):
    shown = helped(["--help"], capsys)
    first = [name for commands in GROUPS.values() for name in commands]
    assert len(GROUPS) == 4 and len(first) <= 10
    for title, commands in GROUPS.items():
        assert f"\n{title}:\n" in shown
        for name, asks in commands.items():
            assert re.search(rf"^  {name} +{re.escape(asks)}$", shown, re.MULTILINE)
            assert asks.endswith("?")
    (others,) = re.findall(r"^also: (.*)$", shown, re.MULTILINE)
    assert sorted([*first, *others.split(", ")]) == sorted(find_commands())
    assert len(shown.splitlines()) < 30


def test_all_commands_are_listed_with_what_they_do(capsys):
    assert main(["help", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(find_commands())
    assert all(
        line.endswith(command.HELP)
        for line, command in zip(lines, find_commands().values(), strict=True)
    )


def test_the_help_of_a_command_is_also_that_of_its_name(capsys):
    assert helped(["help", "patch"], capsys) == helped(["patch", "--help"], capsys)
    assert main(["help"]) == 0
    assert capsys.readouterr().out == helped(["--help"], capsys)


@pytest.mark.parametrize(
    ("question", "command"),
    [
        ("which layer carries the city?", "patch"),
        ("Does my model use premise 2?", "effects"),
        ("is A better than B on my pairs?", "compare"),
        ("does it know the fact?", "probe"),
        ("at what depth is the name stored?", "patch"),
        ("Is my model's answer driven by the second sentence?", "effects"),
        ("which wins, the small or the large checkpoint?", "compare"),
        ("which method should I report?", "faithfulness"),
        ("can attention be trusted?", "faithfulness"),
        ("HOW MANY PAIRS DO I NEED", "plan"),
        ("is my csv ok?", "validate"),
        ("what does layer 5 predict?", "lens"),
        ("does it use its chain of thought?", "thoughts"),
        ("will it fit in memory?", "doctor"),
        ("which token does the answer depend on?", "effects"),
        ("where's the page?", "report"),
    ],
)
def test_a_question_finds_its_command(question, command, capsys):
    assert main(["help", *question.split()]) == 0
    asks, call, *_ = capsys.readouterr().out.splitlines()
    assert call.startswith(f"  interp {command}")
    assert asks == found(question)[0].asks


@pytest.mark.parametrize("row", QUESTIONS, ids=lambda row: row.asks)
def test_every_question_of_the_table_finds_itself(row):
    assert found(row.asks)[0] == row
    for command in re.findall(r"interp (\w+)", row.call):
        assert command in find_commands()


@pytest.mark.parametrize("question", [["zyx"], ["?"], ["is", "the"], ["\u00e9"]])
def test_a_question_without_known_words_is_an_error(question, capsys):
    assert main(["help", *question]) == USER_ERROR
    assert "help all" in capsys.readouterr().err


def test_the_table_of_questions_is_that_of_the_page_for_agents():
    table = AGENTS.partition("| question | call |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    assert [asks for asks, *_ in rows] == [row.asks for row in QUESTIONS]
    for (_, call, read), row in zip(rows, QUESTIONS, strict=True):
        assert call.startswith(row.call) and read


def shown_flags(text):
    return re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE)


WITH_MANY = ["attribute", "evaluate", "patch", "lens", "steer", "effects", "edges", "thoughts"]


@pytest.mark.parametrize("command", WITH_MANY)
def test_the_help_of_a_command_shows_its_first_options_and_all_on_request(command, capsys):
    first = helped([command, "--help"], capsys)
    whole = helped([command, "--help-all"], capsys)
    _, known = build([command])
    parser = Parser(prog="interp")
    known[command].configure(parser)
    every = {own for action in parser._actions for own in action.option_strings} - {"--help-all"}
    assert {*shown_flags(whole), "-h"} == every
    flags = shown_flags(first)
    assert 10 <= len(flags) <= 16 and {*flags} < every
    assert {"--model", "--data", "--system", "--limit", "--out"} <= {*flags}
    assert f"--help-all shows all {len(every) - 1} options" in first
    assert len(first.splitlines()) <= 60 < len(whole.splitlines())
    assert "examples:\n" in first and "examples:\n" in whole


@pytest.mark.parametrize("words", [["validate"], ["status"], ["probe"], ["view"], ["scan"]])
def test_every_command_has_both(words, capsys):
    assert "usage:" in helped([*words, "--help"], capsys)
    assert "usage:" in helped([*words, "--help-all"], capsys)


def test_the_options_of_a_study_are_reached(capsys):
    for name in plugins(STUDIES):
        assert len(shown_flags(helped(["run", name, "--help-all"], capsys))) > 30
