import time

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


def estimates(monkeypatch, capsys, steps, *, warm=0.0, shares=4):
    """Seconds since the start, estimated and true seconds left, for each line of a simulated task.

    Each step is a number of items and their cost in seconds; its passes report its share.
    """
    now = 0.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    total = sum(count for count, _ in steps)
    mean = sum(seconds for _, seconds in steps) / total
    whole, found = warm + mean * total, []

    def read():
        for line in capsys.readouterr().err.splitlines():
            if line.endswith(" left") and "about" not in line:
                minutes, seconds = line.split()[-2].split(":")
                found.append((now, 60 * int(minutes) + int(seconds), whole - now))

    with Progress("effects m", total=total) as progress:
        for index, (count, seconds) in enumerate(steps):
            progress_module.begin_step(count, cost=seconds / mean)
            now += 0.0 if index else warm
            for share in range(1, shares + 1):
                now += seconds / shares
                progress_module.passed(share / shares)
                read()
            progress.advance(count)
            read()
    return found


@pytest.mark.parametrize(
    ("steps", "warm"),
    [
        ([(4, 40.0), (4, 20.0), (4, 10.0), (4, 5.0)], 0.0),
        ([(4, 5.0), (4, 10.0), (4, 20.0), (4, 40.0)], 0.0),
        ([(2, 6.0)] * 20, 15.0),
        ([(8, 3.0)] * 30, 9.0),
        ([(1, 60.0), (9, 30.0), (1, 60.0)], 12.0),
    ],
)
def test_times_left_are_right_within_a_third(monkeypatch, capsys, steps, warm):
    found = estimates(monkeypatch, capsys, steps, warm=warm)
    late = [(guess, true) for now, guess, true in found if now > warm + 10 and true > 5]
    assert len(late) > 3
    for guess, true in late:
        assert abs(guess - true) <= true / 3 + 1


def test_a_line_appears_although_nothing_is_finished(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PLAIN_INTERVAL", 0.05)
    with Progress("effects m", total=24):
        progress_module.begin_step(6)
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("0/24 prompts" in line and "left" not in line for line in lines)
