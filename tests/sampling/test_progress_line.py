from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from simkit.sampling import simulate as module
from simkit.sampling.simulate import progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """A clock that stands still until it is told otherwise."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_nothing_is_written_before_the_delay(clock, capsys):
    show = progress_line("drawing")
    for clock.now in (1000.0, 1001.0, 1001.99):
        show(5, 10)
    show(10, 10)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "")


def test_a_line_has_rate_and_time_left_and_goes_to_stderr(clock, capsys):
    show = progress_line("drawing", "decodes")
    clock.now += 4
    show(2_000_000, 10_000_000)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.rstrip() == "drawing: 20%, 5e+05 decodes/s, 16 s left"
    assert err.endswith("\n")


def test_the_delay_is_the_caller_s(clock, capsys):
    show = progress_line("x", after=0.25)
    clock.now += 0.3
    show(1, 2)
    assert "50%" in capsys.readouterr().err


def test_a_file_gets_few_lines_and_the_last(clock, capsys):
    show = progress_line("drawing")
    for tick in range(600):
        clock.now += 0.1
        show(tick + 1, 600)
    lines = capsys.readouterr().err.splitlines()
    assert 5 <= len(lines) <= 8  # one in ten seconds
    assert lines[-1].rstrip() == "drawing: 100%, 10 trials/s, done"


def test_a_terminal_gets_one_line_that_is_overwritten(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    show = progress_line("drawing")
    for tick in range(100):
        clock.now += 0.1
        show(tick + 1, 100)
    text = terminal.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("done   \n")
    assert 10 <= text.count("\r") <= 20  # twice a second, after two seconds


def test_nothing_done_has_no_rate(clock, capsys):
    show = progress_line("drawing")
    clock.now += 5
    show(0, 10)
    assert capsys.readouterr().err == ""
