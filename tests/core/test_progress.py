"""Progress on a terminal, in a notebook and for a listener."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from sparcets.core.progress import in_notebook, progress_bar, report_progress_to


class Handle:
    """What ``display`` returns: it remembers every text that was shown in its place."""

    def __init__(self, first):
        self.texts = [first]

    def update(self, data, *, raw):
        assert raw
        self.texts.append(data["text/plain"])


@pytest.fixture
def lines(monkeypatch):
    """Pretend to be in the kernel of a notebook; return the lines that are displayed."""
    shown = []

    def display(data, *, raw, display_id):
        assert raw and display_id
        shown.append(Handle(data["text/plain"]))
        return shown[-1]

    ipython, displays = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    displays.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    monkeypatch.delenv("SPARCETS_PROGRESS", raising=False)
    return shown


def test_progress_is_one_line_that_is_replaced(lines, capfd, monkeypatch):
    monkeypatch.setattr("sparcets.core.progress.REDRAWN", 0.0)
    assert in_notebook()
    with progress_bar("training fcn", 4) as bar:
        bar.advance(1, "loss 2")
        bar.advance(3, "loss 1")
    (line,) = lines
    assert line.texts[0].startswith("training fcn  ░") and " 25 %" in line.texts[1] and "loss 2" in line.texts[1]
    assert "████████████████████  100 %" in line.texts[-1] and line.texts[-1].endswith("loss 1")
    with progress_bar("fetching", None) as bar:
        bar.advance(7)
    assert lines[1].texts[-1].startswith("fetching  7  0 s")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("value", ["0", "off", "False"])
def test_the_environment_switches_all_progress_off(lines, monkeypatch, value):
    monkeypatch.setenv("SPARCETS_PROGRESS", value)
    with progress_bar("work", 1) as bar:
        bar.advance()
    assert not lines
    with pytest.raises(AttributeError), progress_bar("work", 2, show=True) as bar:  # asked for by name
        bar.advance(1) or bar.no_such_thing
    assert len(lines) == 1 and " 50 %" in lines[0].texts[-1], "a failure leaves it as it was"


def test_a_console_of_ipython_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook() and "IPython" not in sys.modules
    console = ModuleType("IPython")
    console.get_ipython = SimpleNamespace
    monkeypatch.setitem(sys.modules, "IPython", console)
    assert not in_notebook()


def test_the_bar_goes_to_stderr_and_only_if_there_is_a_terminal(capfd, monkeypatch):
    def drawn(show=None):
        with progress_bar("explaining by nearest", 4, show=show) as bar:
            bar.advance()
            bar.advance(3, "loss 0.5")
        out, err = capfd.readouterr()
        assert out == ""
        return err

    monkeypatch.delenv("SPARCETS_PROGRESS", raising=False)
    shown = drawn(show=True)
    assert drawn() == "" and all(part in shown for part in ("explaining by nearest", "100 %", "loss 0.5"))
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)
    assert "explaining" in drawn() and drawn(show=False) == ""
    monkeypatch.setenv("SPARCETS_PROGRESS", "0")
    assert drawn() == ""
    monkeypatch.setattr(sys, "stderr", None)  # a program without a console
    assert drawn() == ""


def test_listener_replaces_the_bar(capfd):
    events = []
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
