import pytest

from interp import console as progress_module
from interp.console import Progress


def test_plain_lines_tell_rate_and_time_left(capsys, monkeypatch):
    clock = iter(range(0, 1000, 20))
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: float(next(clock)))
    with Progress("attribute m", total=100, done=20) as progress:
        progress.advance(40)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("attribute m: 60/100 prompts, ")
    assert lines[0].endswith(" left")


def test_nothing_is_said_where_nothing_was_done(capsys):
    with Progress("attribute m", total=100, done=100):
        pass
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("attribute m", total=4) as progress:
        progress.advance(4, note="done soon")
    assert "attribute m" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5.0, "0:05"), (65.0, "1:05"), (3_723.0, "1:02:03"), (float("inf"), "unknown time")],
)
def test_times_are_written_as_clocks(seconds, text):
    assert progress_module.clock(seconds) == text


def test_a_long_step_tells_its_finished_share_and_what_is_left(capsys, monkeypatch):
    clock = iter([0.0, *[30.0] * 9])
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: next(clock))
    with Progress("effects m", total=24):
        progress_module.begin_step(6)
        progress_module.passed(0.5)
    (line,) = capsys.readouterr().err.splitlines()
    assert "0/24 prompts and 50% of the next 6" in line
    assert "3:30 left" in line  # 3 prompts took 30 seconds


def test_without_a_running_task_passes_are_not_shown(capsys):
    progress_module.begin_step(2)
    progress_module.passed(0.5)
    assert capsys.readouterr().err == ""
