"""One thread per process, since small networks only lose by sharing; Ctrl-C works; and a cache folder of our own."""

import os
import shutil
import signal
from contextlib import contextmanager

import pytest
from hypothesis import settings

settings.register_profile("sparcets", deadline=None)  # a busy machine is no failure
settings.load_profile("sparcets")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
# A script that starts the tests in the background has them ignore Ctrl-C, and so would every command they interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep out of the user's cache folder; judges that one test trained are found by the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def interrupted(monkeypatch):
    """Return a context in which the training of a generator is interrupted before the given step."""
    from sparcets.training.steps import GanStep

    @contextmanager
    def before_step(at):
        plain, taken = GanStep.update, []

        def update(self, batch):
            taken.append(1)
            if len(taken) == at:
                raise KeyboardInterrupt
            return plain(self, batch)

        with monkeypatch.context() as patch:
            patch.setattr(GanStep, "update", update)
            with pytest.raises(KeyboardInterrupt):
                yield

    return before_step


@pytest.fixture
def left_alone():
    """Return a context that compares global state, and that of modules, before and after, bit for bit."""
    from tests.global_state import compared

    return compared


@pytest.fixture(scope="module")
def browser():
    """Return Chromium: the one named by CHROMIUM, the system's, or Playwright's own; else the test is skipped.

    For one module at a time: while it is open, no other event loop can run.
    """
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'sparcets[browser]'")
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        except api.Error as error:
            pytest.skip(f"no Chromium on this machine: {str(error).splitlines()[0]}")
        yield started
        started.close()
