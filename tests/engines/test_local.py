"""Work in several processes: results, errors and deaths, each told with its item."""

import math
import os
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest

from sparcets.engines.local import map_unordered, share_of_cores
from sparcets.errors import CapabilityError, ConfigError

PID = "__import__('os').getpid()"
KILL = "__import__('os').kill(__import__('os').getpid(), 9)"


def gone(pid: int) -> bool:
    """Whether a process has ended; one whose parent has not looked yet counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2])
def test_each_item_comes_with_its_result_or_its_error(workers: int) -> None:
    answers = dict(map_unordered(math.sqrt, [4, -1, 9, 16], workers=workers))
    assert {k: v for k, v in answers.items() if k > 0} == {4: 2.0, 9: 3.0, 16: 4.0}
    assert isinstance(answers[-1], ValueError)


@pytest.mark.parametrize("workers", [1, 2])
def test_work_may_be_added_while_results_come(workers: int) -> None:
    queue, seen = deque([16.0]), []
    for item, root in map_unordered(math.sqrt, queue, workers=workers):
        seen.append(item)
        if isinstance(root, float) and root > 1.5:
            queue.append(root)
    assert seen == [16.0, 4.0, 2.0]


def test_workers_are_other_processes_which_stay() -> None:
    pids = [pid for _, pid in map_unordered(eval, [PID] * 6, workers=2)]
    assert os.getpid() not in pids and 1 <= len(set(pids)) <= 2
    assert [pid for _, pid in map_unordered(eval, [PID], workers=1)] == [os.getpid()]
    assert next(map_unordered(eval, [PID], workers=2))[1] != os.getpid()


def test_a_worker_that_is_killed_costs_its_item_alone() -> None:
    items = ["1", KILL, "2", "__import__('os')._exit(3)", "3"]
    answers = dict(map_unordered(eval, items, workers=2))
    assert [answers[i] for i in ("1", "2", "3")] == [1, 2, 3]
    assert isinstance(answers[KILL], ChildProcessError) and "SIGKILL" in str(answers[KILL])
    assert "exit code 3" in str(answers[items[3]])


def test_a_worker_whose_function_raised_is_replaced() -> None:
    raising = f"int('x' + str({PID}))"
    answers = [answer for _, answer in map_unordered(eval, [raising, raising, PID, PID, PID], workers=2)]
    raised = {str(a).split("x")[1].strip("'") for a in answers if isinstance(a, ValueError)}
    assert len(raised) == 2
    assert not raised & {str(a) for a in answers if isinstance(a, int)}


def test_what_cannot_travel_is_told_in_words() -> None:
    answer = next(map_unordered(eval, ["lambda: 0"], workers=2))[1]
    assert isinstance(answer, RuntimeError) and "cannot leave its process" in str(answer)
    odd = "type('Odd', (Exception,), {'__init__': lambda self, a, b: None})(1, 2)"
    assert isinstance(next(map_unordered(eval, [f"(_ for _ in ()).throw({odd})"], workers=2))[1], Exception)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_beginning_of_each_piece_of_work_is_told(workers: int) -> None:
    begun: list[float] = []
    answers = map_unordered(math.sqrt, [4, 9, 16, 25], workers=workers, on_start=begun.append)
    for finished, (item, _) in enumerate(answers):
        assert item in begun and len(begun) <= finished + workers  # not all of them at once
    assert begun == [4, 9, 16, 25]


def test_threads_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    answer = next(map_unordered(os.getenv, ["OMP_NUM_THREADS"], workers=2))
    assert answer[1] == "8" and os.environ["OMP_NUM_THREADS"] == "64"
    assert [share_of_cores(n) for n in (1, 4, 100)] == [16, 4, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert share_of_cores(4) == 2


def test_leaving_early_ends_the_workers() -> None:
    results = map_unordered(eval, [PID, "__import__('time').sleep(100)"], workers=2)
    pid = next(results)[1]
    assert isinstance(pid, int) and not gone(pid)
    started = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started < 10
    wait_until(lambda: gone(pid))


def test_workers_leave_when_their_parent_is_killed() -> None:
    code = (
        "from sparcets.engines.local import map_unordered\n"
        'long = \'(print(__import__("os").getpid(), flush=True), __import__("time").sleep(100))\'\n'
        "list(map_unordered(eval, [long, long + ' '], workers=2))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pids = [int(parent.stdout.readline()) for _ in range(2)]
    assert not any(gone(pid) for pid in pids)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_a_script_without_a_main_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    call = "from sparcets.engines.local import map_unordered\nlist(map_unordered(math.sqrt, [4], workers=2))\n"
    script.write_text("import math\n" + call)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert CapabilityError.__name__ in result.stderr and "if __name__ == '__main__':" in result.stderr.splitlines()[-1]


def test_workers_are_counted_from_one() -> None:
    with pytest.raises(ConfigError, match="workers must be >= 1, got 0"):
        next(map_unordered(math.sqrt, [4], workers=0))
