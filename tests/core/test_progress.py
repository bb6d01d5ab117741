"""Progress bars: drawn on stderr of a terminal, silent elsewhere, or reported to a listener."""

from __future__ import annotations

import sys

import pytest

from sparcets.core.progress import progress_bar, report_progress_to


def test_nothing_is_drawn_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work", 3) as bar:
        bar.advance(2, "half way")
    assert capfd.readouterr() == ("", "")


def test_the_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("explaining by nearest", 4, show=True) as bar:
        bar.advance()
        bar.advance(3, "loss 0.5")
    out, err = capfd.readouterr()
    assert out == "" and "explaining by nearest" in err and "100 %" in err and "loss 0.5" in err


def test_bar_on_a_terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)
    with progress_bar("work", 1) as bar:
        bar.advance()
    assert "work" in capfd.readouterr().err
    with progress_bar("work", 1, show=False) as bar:
        bar.advance()
    assert capfd.readouterr().err == ""


def test_program_without_a_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("work", None) as bar:
        bar.advance()


def test_exceptions_propagate(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), progress_bar("work", 2, show=True):
        raise ZeroDivisionError


def test_listener_replaces_the_bar(capfd: pytest.CaptureFixture[str]) -> None:
    events: list[tuple[object, ...]] = []
    with report_progress_to(lambda *event: events.append(event)):
        with progress_bar("work", 4, show=True) as bar:
            bar.advance(1, "loss 2")
            bar.advance(2)
        with progress_bar("more", None):
            pass
    assert events == [("work", 0, 4, ""), ("work", 1, 4, "loss 2"), ("work", 3, 4, ""), ("more", 0, None, "")]
    with progress_bar("afterwards", 1, show=False) as bar:
        bar.advance()
    assert len(events) == 4 and capfd.readouterr() == ("", "")
