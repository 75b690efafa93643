import re
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


@pytest.mark.parametrize(
    ("done", "rate"), [(1, "0.05"), (1_500, "75"), (2_220, "110"), (24_800, "1,200")]
)
def test_rates_have_two_digits(capsys, monkeypatch, done, rate):
    now = 0.0
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    with Progress("attribute m", total=100_000) as progress:
        now = 20.0
        progress.advance(done)
    assert f", {rate}/s, " in capsys.readouterr().err.splitlines()[0]


def test_nothing_is_said_where_nothing_was_done(capsys):
    with Progress("attribute m", total=100, done=100):
        pass
    progress_module.begin_step(2, cost=2)  # of no running task
    progress_module.passed(0.5)
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
        progress_module.begin_step(6, cost=6)
        progress_module.passed(0.5)
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r"\b0/24 prompts.*\b50% .*\b6\b", line)
    assert "3:30 left" in line  # 3 prompts took 30 seconds


def lines_of(monkeypatch, capsys, events):
    """The line printed after each event of a step of 2 of 4 items, which happen at given times."""
    now, lines = 0.0, []
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(progress_module, "PLAIN_INTERVAL", 0.0)
    with Progress("patch m", total=4):
        progress_module.begin_step(2, cost=2)
        for now, event in events:  # noqa: B007 - the clock reads it
            event()
            lines += capsys.readouterr().err.splitlines()[-1:]
        monkeypatch.setattr(progress_module, "PLAIN_INTERVAL", 10.0)
    return lines


def test_only_the_end_of_a_step_is_all_of_it(monkeypatch, capsys):
    passed = progress_module.passed
    events = [(10.0, lambda: passed(0.5)), (20.0, lambda: passed(0.999)), (21.0, lambda: passed(1))]
    lines = lines_of(monkeypatch, capsys, events)
    assert ["50%" in lines[0], "99%" in lines[1], "99%" in lines[2]] == [True] * 3
    assert "100%" not in "".join(lines)


def test_a_pass_that_takes_longer_than_expected_never_has_no_time_left(monkeypatch, capsys):
    passed = progress_module.passed
    events = [(10.0, lambda: passed(0.5)), (20.0, lambda: passed(0.9))]
    events += [(now, passed) for now in (30.0, 44.0, 46.0, 80.0)]
    lines = lines_of(monkeypatch, capsys, events)
    left = [line.split()[-2] for line in lines[2:]]
    # At 1.8 items in 20 seconds, the other step takes 22 seconds. This one should end at 0:22; then
    # its last pass is expected to take as long again as it has taken.
    assert left == ["0:32", "0:46", "0:48", "1:22"]
    times = [(10.0, lambda: passed(1)), (20.0, lambda: passed(1))]
    assert not any(" 0:00 left" in line for line in lines_of(monkeypatch, capsys, times))


def test_the_parts_of_a_step_share_it(monkeypatch, capsys):
    def second():
        progress_module.begin_part(1, 2)
        progress_module.passed(0.5)

    def first():
        progress_module.begin_part(0, 2)
        progress_module.passed(0.5)

    lines = lines_of(monkeypatch, capsys, [(10.0, first), (20.0, second)])
    assert ["25%" in lines[0], "75%" in lines[1]] == [True, True]


def estimates(monkeypatch, capsys, steps, *, warm=0.0, silent=0.0, shares=4):
    """Seconds since the start, estimated and true seconds left, for each line of a simulated task.

    Each step is a number of items and their cost in seconds; its passes report its share, after
    part of the time in which they are silent.
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
            now += silent * seconds
            progress_module.passed(None)
            read()
            for share in range(1, shares + 1):
                now += (1 - silent) * seconds / shares
                progress_module.passed(share / shares)
                read()
            progress.advance(count)
            read()
    return found


@pytest.mark.parametrize(
    ("steps", "warm", "silent"),
    [
        ([(4, 160.0), (4, 80.0), (4, 40.0), (4, 20.0)], 0.0, 0.0),
        ([(4, 20.0), (4, 40.0), (4, 80.0), (4, 160.0)], 0.0, 0.0),
        ([(2, 6.0)] * 20, 15.0, 0.0),
        ([(8, 3.0)] * 30, 9.0, 0.0),
        ([(1, 60.0), (9, 30.0), (1, 60.0), (1, 60.0)], 12.0, 0.0),
        ([(2, 200.0)] * 8, 15.0, 0.9),
        ([(2, 60.0)] * 8, 0.0, 0.5),
    ],
)
def test_times_left_are_right_within_a_third(monkeypatch, capsys, steps, warm, silent):
    found = estimates(monkeypatch, capsys, steps, warm=warm, silent=silent)
    late = [(guess, true) for now, guess, true in found if now > warm + 10 and true > 5]
    assert len(late) > 3
    for guess, true in late:
        assert abs(guess - true) <= true / 3 + 1


def test_a_line_appears_although_nothing_is_finished(capsys, monkeypatch):
    monkeypatch.setattr(progress_module, "PLAIN_INTERVAL", 0.05)
    with Progress("effects m", total=24):
        progress_module.begin_step(6, cost=6)
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert lines
    assert all("0/24 prompts" in line and "left" not in line for line in lines)
