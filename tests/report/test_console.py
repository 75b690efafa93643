import pandas as pd

from interp.report.console import mean_with_sd, print_table


def test_no_figure_and_no_name_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    frame = pd.DataFrame(
        {
            "model": ["organisation/a-model-with-a-long-name"],
            **{f"accuracy_of_side_{i}": [0.12345] for i in range(12)},
            "prompts": [256_000],
        }
    )
    print_table(frame, title="Accuracy")
    shown = capsys.readouterr().out
    assert "organisation/a-model-with-a-long-name" in shown
    assert shown.count("0.123") == 12
    assert "256,000" in shown
    assert "…" not in shown


def test_names_that_look_like_markup_are_printed_as_they_are(capsys):
    print_table(pd.DataFrame({"model": ["[bold]x[/bold]"]}), title="[red]t[/red]")
    shown = capsys.readouterr().out
    assert "[bold]x[/bold]" in shown
    assert "[red]t[/red]" in shown


def test_means_are_written_with_their_deviation():
    text = mean_with_sd(pd.Series([0.6894, float("nan")]), pd.Series([0.1931, float("nan")]))
    assert text.tolist() == ["0.689 (0.193)", ""]
