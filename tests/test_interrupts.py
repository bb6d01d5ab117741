"""Ctrl-C where an exception in the main thread is not enough."""

import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals are POSIX")

START = """
import signal, sys, threading, time
from sparcets import interrupts
interrupts.GRACE = 0.3
stop = interrupts.Interruption("stopped")
stop.install()
def interrupt(): signal.raise_signal(signal.SIGINT)
"""
CASES = {
    "exception": """
try:
    interrupt()
except KeyboardInterrupt:
    stop.end()
""",
    "exception that somebody caught": """
try:
    interrupt()
except KeyboardInterrupt:
    time.sleep(600)
""",
    "wait for a thread": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    pool.submit(time.sleep, 600)
    interrupt()
""",
    "thread that fails": """
import logging
def fail():
    while not stop.requested: time.sleep(0.01)
    time.sleep(0.1)
    logging.error("failed")
    raise RuntimeError
threading.Thread(target=fail).start()
try:
    interrupt()
except KeyboardInterrupt:
    time.sleep(600)
""",
    "finaliser": """
class Finalised:
    def __del__(self): interrupt()
interrupts.GRACE = 600
one = Finalised()
del one
time.sleep(600)
""",
    "object that was never made whole": """
import asyncio
class Half:
    def __del__(self): raise AttributeError
async def never_awaited(): pass
try:
    half, waiting = Half(), never_awaited()
    interrupt()
except KeyboardInterrupt:
    del half, waiting
    stop.end()
""",
    "import": """
sys.path.insert(0, sys.argv[1])
import interrupted
""",
    "second Ctrl-C": """
interrupts.GRACE = 600
try:
    interrupt()
finally:
    interrupt()
""",
    "other signal before": """
signal.signal(signal.SIGALRM, lambda *_: None)
signal.raise_signal(signal.SIGALRM)
try:
    interrupt()
except KeyboardInterrupt:
    time.sleep(600)
""",
}
INTERRUPTED_IMPORT = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    raise ImportError("as an extension module does it") from None
"""


def run(script, *arguments):
    command = [sys.executable, "-c", START + script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("case", CASES)
def test_the_process_ends_with_one_line(case, tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_IMPORT)
    ended = run(CASES[case], str(tmp_path))
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "stopped\n")


def test_children_are_ended_and_it_is_ignored_after_the_work_or_where_it_was():
    # The child holds the other end of stdout: without its end, this would not return.
    started = "import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    assert run(f"{started}stop.end()").returncode == 130
    ended = run("stop.close()\ninterrupt()\nprint('done')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nstop = interrupts.Interruption('stopped')\nstop.install()\n"
    ended = run(f"{before}interrupt()\nprint('done')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_little_is_imported_before_it_is_handled():
    code = "import sys; before = set(sys.modules); import sparcets.__main__; print(*sorted(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = set(ended.stdout.split())
    assert {name for name in found if "sparcets" in name} == {"sparcets", "sparcets.__main__", "sparcets.interrupts"}
    assert not found & {"typing", "logging", "contextlib", "pathlib", "typer"}
