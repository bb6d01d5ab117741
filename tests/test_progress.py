"""Bars are drawn on stderr where a person looks, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from sparcets.progress import listening, progress_bar


def test_nothing_is_drawn_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("work", 3) as bar:
        bar.advance(2, "half way")
    assert capfd.readouterr() == ("", "")


def test_the_bar_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar("explaining by nearest", 4, show=True) as bar:
        bar.advance()
        bar.advance(3, "loss 0.5")
    out, err = capfd.readouterr()
    assert out == "" and "explaining by nearest" in err and "100 %" in err and "loss 0.5" in err


def test_a_terminal_gets_a_bar_unless_it_is_unwanted(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)
    with progress_bar("work", 1) as bar:
        bar.advance()
    assert "work" in capfd.readouterr().err
    with progress_bar("work", 1, show=False) as bar:
        bar.advance()
    assert capfd.readouterr().err == ""


def test_a_program_without_a_console_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress_bar("work", None) as bar:
        bar.advance()


def test_an_error_inside_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), progress_bar("work", 2, show=True):
        raise ZeroDivisionError


def test_a_listener_is_told_in_place_of_the_bar(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[object, ...]] = []
    with listening(lambda *event: told.append(event)):
        with progress_bar("work", 4, show=True) as bar:
            bar.advance(1, "loss 2")
            bar.advance(2)
        with progress_bar("more", None):
            pass
    assert told == [("work", 0, 4, ""), ("work", 1, 4, "loss 2"), ("work", 3, 4, ""), ("more", 0, None, "")]
    with progress_bar("afterwards", 1, show=False) as bar:
        bar.advance()
    assert len(told) == 4 and capfd.readouterr() == ("", "")
