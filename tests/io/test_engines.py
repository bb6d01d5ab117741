"""Engines by name, and tasks in worker processes: results, exceptions and dead workers, each with its item."""

import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from sparcets.core.errors import CapabilityError, ConfigError, MissingExtraError, UnknownNameError
from sparcets.io.engines import ENGINES, WorkerProcess, make_engine, threads_per_worker

PID = "__import__('os').getpid()"
KILL = "__import__('os').kill(__import__('os').getpid(), 9)"


def map_unordered(function, items, **how):
    return make_engine("local").map_unordered(function, items, **how)


def gone(pid):
    """Whether a process has ended; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timeout"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_item_has_its_result_or_its_exception(workers):
    results = dict(map_unordered(math.sqrt, [4, -1, 9, 16], workers=workers))
    assert {k: v for k, v in results.items() if k > 0} == {4: 2.0, 9: 3.0, 16: 4.0}
    assert isinstance(results[-1], ValueError)


@pytest.mark.parametrize("workers", [1, 2])
def test_items_may_be_added_while_results_arrive(workers):
    queue, seen = deque([16.0]), []
    for item, root in map_unordered(math.sqrt, queue, workers=workers):
        seen.append(item)
        if isinstance(root, float) and root > 1.5:
            queue.append(root)
    assert seen == [16.0, 4.0, 2.0]


def test_workers_are_reused_processes_and_replaced_after_an_exception():
    pids = [pid for _, pid in map_unordered(eval, [PID] * 6, workers=2)]
    assert os.getpid() not in pids and 1 <= len(set(pids)) <= 2
    assert [pid for _, pid in map_unordered(eval, [PID], workers=1)] == [os.getpid()]
    raising = f"int('x' + str({PID}))"
    results = [result for _, result in map_unordered(eval, [raising, raising, PID, PID, PID], workers=2)]
    raised = {str(r).split("x")[1].strip("'") for r in results if isinstance(r, ValueError)}
    assert len(raised) == 2 and not raised & {str(r) for r in results if isinstance(r, int)}


def test_what_a_worker_cannot_return_is_its_items_error():
    items = ["1", KILL, "2", "__import__('os')._exit(3)", "3"]
    results = dict(map_unordered(eval, items, workers=2))
    assert [results[i] for i in ("1", "2", "3")] == [1, 2, 3]
    assert isinstance(results[KILL], ChildProcessError) and "SIGKILL" in str(results[KILL])
    assert "exit code 3" in str(results[items[3]])
    result = next(map_unordered(eval, ["lambda: 0"], workers=2))[1]
    assert isinstance(result, RuntimeError) and "cannot be sent to the parent process" in str(result)
    odd = "type('Odd', (Exception,), {'__init__': lambda self, a, b: None})(1, 2)"
    assert isinstance(next(map_unordered(eval, [f"(_ for _ in ()).throw({odd})"], workers=2))[1], Exception)


def test_threads_are_divided_among_workers(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    _, threads = next(map_unordered(os.getenv, ["OMP_NUM_THREADS"], workers=2))
    assert threads == "8" and os.environ["OMP_NUM_THREADS"] == "64"
    assert [threads_per_worker(n) for n in (1, 4, 100)] == [16, 4, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_per_worker(4) == 2


def test_closing_the_iterator_ends_the_workers():
    results = map_unordered(eval, [PID, "__import__('time').sleep(3600)"], workers=2)
    pid = next(results)[1]
    assert isinstance(pid, int) and not gone(pid)
    results.close()
    wait_until(lambda: gone(pid))


def test_what_is_given_to_a_process_that_has_ended_fails():
    worker = WorkerProcess(abs, -2, threads="1")
    assert worker.first.result(60) == 2
    worker.process.kill()
    for _ in range(2):  # while the end is not known yet, and afterwards
        with pytest.raises(BrokenProcessPool):
            worker.submit(abs, -1).result(20)


def test_workers_exit_when_their_parent_is_killed():
    code = (
        "from sparcets.io.engines import make_engine\n"
        'say = \'(o := __import__("os")).write(1, f"{o.getpid()}\\\\n".encode())\'\n'  # both write to one pipe: at once
        "long = f'({say}, __import__(\"time\").sleep(600))'\n"
        "list(make_engine().map_unordered(eval, [long, long + ' '], workers=2))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pids = [int(parent.stdout.readline()) for _ in range(2)]
    assert not any(gone(pid) for pid in pids)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_a_worker_that_is_starting_is_ended_by_an_interrupt(monkeypatch):
    start, started = SpawnProcess.start, []

    def interrupted(self):
        signal.raise_signal(signal.SIGINT)
        start(self)
        started.append(self)

    monkeypatch.setattr(SpawnProcess, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(map_unordered(eval, [PID, "__import__('time').sleep(100)"], workers=2))
    assert len(started) == 1  # the interrupt had to wait for the worker, so that nothing is half started
    wait_until(lambda: not started[0].is_alive())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_script_without_main_guard(tmp_path):
    script = tmp_path / "script.py"
    call = "from sparcets.io.engines import make_engine\nlist(make_engine().map_unordered(math.sqrt, [4], workers=2))\n"
    script.write_text("import math\n" + call)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert CapabilityError.__name__ in result.stderr and "if __name__ == '__main__':" in result.stderr.splitlines()[-1]


def test_engines_have_names_and_the_local_one_no_address():
    assert list(ENGINES) == ["local", "ray"]
    with pytest.raises(UnknownNameError, match=r"no engine 'raay'\. Did you mean 'ray'\?"):
        make_engine("raay")
    with pytest.raises(ConfigError, match=r"the engine local has no address, got 'a:1'"):
        make_engine("local", address="a:1")
    with make_engine("local") as engine:
        assert engine.n_workers(None) == 1 and engine.n_workers(3) == 3
        with pytest.raises(ConfigError, match="workers must be >= 1, got 0"):
            engine.n_workers(0)


def test_ray_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it raises
    with pytest.raises(MissingExtraError, match=r"the engine ray needs ray\. .*pip install 'sparcets\[ray\]'"):
        make_engine("ray").__enter__()


def test_nothing_at_the_address_is_told_at_once():
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CapabilityError, match=rf"no Ray cluster answers at {address}: .*ray start --head"):
        make_engine("ray", address=address).__enter__()
    with pytest.raises(ConfigError, match=r"has the form host:port, as 10\.0\.0\.1:6379, got 'there'"):
        make_engine("ray", address="there").__enter__()
