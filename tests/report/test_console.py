import pandas as pd
import pytest

from interp.analysis.cautions.caution import CONSTANT, Caution
from interp.report.console import print_cautions, print_sentences, print_table


@pytest.mark.parametrize("width", [40, 80])
def test_a_wide_table_is_folded_and_each_part_begins_with_the_names(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    columns = {f"ratio_{i}": ["0.812 (0.705)", "0.462 (0.283)"] for i in range(9)}
    names = {"model": ["organism/llama-shallow", "b"], "position": ["last_token", "premise2"]}
    print_table(pd.DataFrame({**names, **columns, "n": 256_000}), title="Ratios")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("0.812 (0.705)") == 9
    assert "".join(lines).count("256,000") == 2 and "…" not in "".join(lines)
    assert sum("organism/llama-shallow  last_token" in line for line in lines) == 5


def test_intervals_are_figures_and_are_not_numbered(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    columns = {f"share_{i}": ["1.89 (0.61 to 3.36)", "-0.01 (-0.05 to 0.00)"] for i in range(4)}
    names = {
        "model": ["organism/thought-reader", "b"],
        "kind": "counterpart",
        "segment": "premise1",
    }
    print_table(pd.DataFrame({**names, **columns}), title="Shares")
    shown = capsys.readouterr().out
    assert "#" not in shown
    assert shown.count("1.89 (0.61 to 3.36)") == 4


def test_names_that_leave_no_room_for_figures_are_numbered(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    models = ["meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"]
    directions = ["rulebreaker to non-rulebreaker", "non-rulebreaker to rulebreaker"]
    rows = [
        {"model": model, "direction": direction, "method": "exact", "site": "resid_pre"}
        for model in models
        for direction in directions
    ]
    frame = pd.DataFrame(rows).assign(role="premise2", effect=[0.1, 0.2, 0.3, 0.4], pairs=24)
    print_table(frame, title="Effects")
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line.split() for line in lines if "exact" in line] == [
        ["#1", "#1", "exact", "resid_pre", "premise2", "0.100", "24"],
        ["#1", "#2", "exact", "resid_pre", "premise2", "0.200", "24"],
        ["#2", "#1", "exact", "resid_pre", "premise2", "0.300", "24"],
        ["#2", "#2", "exact", "resid_pre", "premise2", "0.400", "24"],
    ]
    assert lines[-4:] == [
        *(f"model #{number}: {name}" for number, name in enumerate(models, start=1)),
        *(f"direction #{number}: {name}" for number, name in enumerate(directions, start=1)),
    ]


def test_long_texts_are_wrapped_and_figures_are_not(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    frame = pd.DataFrame({"category": ["cities"], "why": ["said so " * 30], "n": [256_000]})
    print_table(frame, title="Why")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.count("said") == 30
    assert "cities" in shown and "256,000" in shown
    print_table(frame[:0], title="None")
    assert "category" in capsys.readouterr().out


def test_a_terminal_obeys_no_name(capsys):
    names = ["a\x1b[31mb\u202ec", "[bold]x[/bold]"]
    print_table(pd.DataFrame({"model": names}), title="\x1b]0;t\x07 [red]t[/red]")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    for text in (r"a\x1b[31mb\u202ec", "[bold]x[/bold]", "[red]t[/red]"):
        assert text in shown


def test_a_small_p_value_is_not_printed_as_zero(capsys):
    frame = pd.DataFrame({"measure": ["a", "b"], "p": [1e-5, 0.0312], "share": [1e-5, 0.5]})
    print_table(frame, title="Tests")
    out = capsys.readouterr().out
    small, large = out.splitlines()[-3:-1]
    assert small.split() == ["a", "<", "0.0001", "0.000"]
    assert large.split() == ["b", "0.031", "0.500"]
    assert small.index("0.0001") + 6 == large.index("0.031") + 5


def test_a_dict_of_lists_is_printed_like_a_frame(capsys):
    columns = {"model": ["a", "b"], "accuracy": [0.5, float("nan")], "prompts": [24, 1200]}
    print_table(columns, title="Accuracy")
    one = capsys.readouterr().out
    print_table(pd.DataFrame(columns), title="Accuracy")
    assert capsys.readouterr().out == one
    assert "1,200" in one
    assert "nan" not in one


def test_cautions_and_sentences_are_wrapped_between_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_cautions(Caution(CONSTANT, model, "word --flag " * 20) for model in ("a", "b\x1b[31m"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("- ") for line in lines) == 2
    assert "".join(lines).count("--flag") == 40 and "\x1b" not in "".join(lines)
    print_cautions([])
    assert capsys.readouterr().out == ""
    print_sentences(["word " * 40 + "end.", "Next."])
    *others, last, after = capsys.readouterr().out.splitlines()
    assert max(map(len, [*others, last])) <= 80 and last.endswith("word end.") and after == "Next."


def test_counts_are_whole_and_zero_has_no_sign(capsys):
    frame = pd.DataFrame(
        {
            "edges": [95.0, None, 1200.0],
            "f": [-0.0002, -0.0, -0.25],
            "accuracy": [1.0, 0.0, None],
            "mean_edges": [95.0, 95.4, 3.0],
        }
    )
    print_table(frame, title="Circuits")
    printed = capsys.readouterr().out.splitlines()
    rows = [line.split() for line in printed if "0" in line]
    assert rows[0] == ["95", "0.000", "1.000", "95.000"]
    assert rows[1] == ["0.000", "0.000", "95.400"]
    assert rows[2] == ["1,200", "-0.250", "3.000"]
