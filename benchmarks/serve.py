"""Load on ``sparcets serve``: latency at fixed rates; a soak and kills behind a client that retries.

    python benchmarks/serve.py [load] [soak] [kills] [--folder serve-benchmark] [--seconds 60] [--soak-seconds 600]

Series of 50 steps and 50 features (moving boxes); the explainers are fitted once into the folder, some minutes on two
cores. Arrivals are planned at a fixed rate, whatever the server does (open loop), by a client in a process of its own;
the latency of a request counts from its planned arrival. Every answer is compared with that of ``explain`` for the same
series, of which there are 64. Requests ask for the values that change, without sentences.

Rows go to ``results/serve.jsonl``, with the commit and the load of the machine at the beginning.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from stored import COMMIT, store

N_SERIES = 64  # different ones
TOKEN = "benchmark-token"
TOLERANCE = 1e-6
RETRY = 0.2  # seconds
GIVE_UP = 120.0  # seconds after which a request that was sent again and again counts as lost
FITS = {
    "sparce": ("-m", "sparce"),
    "nearest": ("-m", "nearest"),
}
QUESTION = {"counterfactual": False, "text": False}


def prepare(folder: Path) -> dict[str, Path]:
    """Fit the explainers, to one classifier."""
    data = ("-d", "moving_box", "-o", "n_per_combination=90", "--device", "cpu")
    found = {name: folder / name for name in FITS}
    classifier = "fcn"
    for name, out in sorted(found.items()):  # nearest first, which is quick
        if not (out / "run.json").exists():
            command = [sys.executable, "-m", "sparcets", "fit", *data, "-c", classifier, *FITS[name], "--out", str(out)]
            subprocess.run(command, check=True)
        classifier = str(out / "classifier")
    return found


class Server:
    """A running ``sparcets serve``."""

    def __init__(self, fit: Path, workers: int, port: int = 0) -> None:
        command = [sys.executable, "-m", "sparcets", "serve", str(fit), "--workers", str(workers), "--port", str(port)]
        environment = {**os.environ, "SPARCETS_SERVE_TOKEN": TOKEN}
        self.process = subprocess.Popen([*command, "--device", "cpu"], stderr=subprocess.PIPE, env=environment)
        said = [self.process.stderr.readline().decode() for _ in range(4)]
        self.port = int(said[1].rsplit(":", 1)[1])

    def workers(self) -> list[int]:
        """Return the processes that explain."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for file in children for pid in file.read_text().split()]
        return [pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def memory(self) -> list[float]:
        """Return the memory of the process that accepts requests and of its workers, in MiB."""
        status = [Path(f"/proc/{pid}/status").read_text() for pid in (self.process.pid, *self.workers())]
        return [round(int(text.split("VmRSS:")[1].split()[0]) / 1024, 1) for text in status]

    def cpu(self) -> tuple[float, float]:
        """Return the seconds of computing by the process that accepts requests, and by the workers."""
        first, *rest = (
            sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
            / os.sysconf("SC_CLK_TCK")
            for pid in (self.process.pid, *self.workers())
        )
        return first, sum(rest)

    def stop(self) -> float:
        """Stop it as an orchestrator does; return how long it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.process.stderr.read()
        return round(time.monotonic() - began, 2)


class Client:
    """Sends requests at planned times, over connections that are kept."""

    def __init__(self, port: int, bodies: list[bytes], *, retry: bool) -> None:
        self.port, self.bodies, self.retry = port, bodies, retry
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.latency: list[float] = []
        self.statuses: Counter[int] = Counter()  # 0: no answer
        self.answers: Counter[tuple[int, bytes]] = Counter()  # different answers to each series
        self.problems: Counter[str] = Counter()  # why there was no answer
        self.retries = 0

    async def run(self, rate: float, seconds: float) -> None:
        """Send requests at a rate, and wait for all responses."""
        tasks, began = [], time.perf_counter()
        for i in range(round(rate * seconds)):
            planned = began + i / rate
            if (wait := planned - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            tasks.append(asyncio.create_task(self.ask(i % len(self.bodies), planned)))
        await asyncio.gather(*tasks)

    async def ask(self, which: int, planned: float) -> None:
        """Send a request, again and again if it is to be retried, and count what comes back."""
        while True:
            status, body = await self.send(which)
            if not self.retry or status == 200 or time.perf_counter() - planned > GIVE_UP:
                break
            self.retries += 1
            await asyncio.sleep(RETRY)
        self.statuses[status] += 1
        if status == 200:
            self.latency.append(time.perf_counter() - planned)
            self.answers[which, body] += 1

    async def connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection that was kept and is still open, or a new one."""
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():  # the server closes what was not used for a minute
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)

    async def send(self, which: int) -> tuple[int, bytes]:
        """Return status and body of a response; status 0 if there was none."""
        body = self.bodies[which]
        head = f"POST /explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            reader, writer = await self.connection()
            writer.write(head.encode() + body)
            said = (await reader.readuntil(b"\r\n\r\n")).lower()
            content = await reader.readexactly(int(said.split(b"content-length:")[1].split(b"\r\n")[0]))
        except (OSError, asyncio.IncompleteReadError) as error:
            self.problems[repr(error)] += 1
            return 0, b""
        if b"connection: close" in said:
            writer.close()
        else:
            self.idle.append((reader, writer))
        return int(said.split()[1]), content


def client(port: int, folder: Path, rate: float, seconds: float, *, retry: bool) -> None:
    """Run the client, and write what it saw to a file: the main program of its process."""
    series = np.load(folder / "series.npy")
    bodies = [json.dumps({"series": [one.tolist()], **QUESTION}).encode() for one in series]
    own = Client(port, bodies, retry=retry)
    asyncio.run(own.run(rate, seconds))
    seen = {
        "latency": own.latency,
        "statuses": dict(own.statuses),
        "retries": own.retries,
        "problems": dict(own.problems),
        "answers": [(which, body.decode(), n) for (which, body), n in own.answers.items()],
    }
    (folder / "seen.json").write_text(json.dumps(seen))


class Expected:
    """What ``explain`` gives for each series."""

    def __init__(self, fit: Path, folder: Path) -> None:
        from sparcets.data.load import load_dataset
        from sparcets.methods.folder import load_fit

        run, explainer = load_fit(fit, device="cpu")
        self.X = load_dataset(run["dataset"], **run["dataset_options"]).X_test[:N_SERIES].astype(np.float64)
        np.save(folder / "series.npy", self.X)
        self.answers = [explainer.explain(one[None], progress=False) for one in self.X]

    def is_right(self, which: int, body: str) -> bool:
        """Return whether a response is that of ``explain``."""
        (answer,), e = json.loads(body)["answers"], self.answers[which]
        counterfactual = self.X[which].copy()
        for part in answer["changed"]:
            feature = e.feature_names.index(part["feature"])
            counterfactual[part["start"] : part["end"], feature] = part["values"]
        exact = {"status": e.status, "reason": e.reason, "valid": e.valid, "verdict": e.verdict}
        return (
            np.abs(counterfactual - e.counterfactual[0]).max() <= TOLERANCE
            and abs(answer["probability"] - e.probability[0]) <= TOLERANCE
            and abs(answer["share_changed"] - e.share_changed[0]) <= TOLERANCE
            and answer["target"] == e.target_names[0]
            and all(answer[name] == values[0] for name, values in exact.items())
        )


class Bench:
    """Measures one fit."""

    def __init__(self, name: str, fit: Path, folder: Path, workers: int) -> None:
        self.name, self.fit, self.folder, self.workers = name, fit, folder, workers
        self.expected = Expected(fit, folder)

    def start_client(self, port: int, rate: float, seconds: float, *, retry: bool = False) -> subprocess.Popen:
        """Start the process that sends requests."""
        arguments = [str(port), str(self.folder), str(rate), str(seconds), *(["retry"] if retry else [])]
        return subprocess.Popen([sys.executable, __file__, "client", *arguments])

    def row(self, part: str, rate: float, seconds: float, **more: Any) -> dict[str, Any]:
        """Return what the last client saw."""
        seen = json.loads((self.folder / "seen.json").read_text())
        statuses = {int(status): n for status, n in seen["statuses"].items()}
        right = sum(n for which, body, n in seen["answers"] if self.expected.is_right(which, body))
        p50, p99 = (round(float(np.percentile(seen["latency"] or [np.nan], share)) * 1e3, 1) for share in (50, 99))
        return {
            "part": part,
            "method": self.name,
            "rate": rate,
            "seconds": seconds,
            "workers": self.workers,
            "sent": sum(statuses.values()),  # before the next lines take out their part
            "answered": statuses.pop(200, 0),
            "refused": statuses.pop(429, 0),
            "lost": sum(statuses.values()),  # no answer, or another than 200 and 429
            "statuses": statuses,
            "problems": seen["problems"],
            "wrong": sum(n for *_, n in seen["answers"]) - right,
            "p50_ms": p50,
            "p99_ms": p99,
            "retries": seen["retries"],
            **more,
        }

    def load(self, rate: float, seconds: float) -> dict[str, Any]:
        """Measure the latency at a rate."""
        server = Server(self.fit, self.workers)
        self.run(server, rate, 2.0)  # warm
        before = server.cpu()
        self.run(server, rate, seconds)
        front, workers = (now - then for now, then in zip(server.cpu(), before, strict=True))
        row = self.row("load", rate, seconds, stop_s=server.stop())
        own = {
            "request_ms": round(1e3 * front / row["sent"], 2),
            "answer_ms": round(1e3 * workers / row["answered"], 2),
        }
        return {**row, **own}

    def soak(self, rate: float, seconds: float) -> dict[str, Any]:
        """Measure the memory before and after a long time."""
        server = Server(self.fit, self.workers)
        self.run(server, rate, seconds / 20)
        memory = [server.memory()]
        sending = self.start_client(server.port, rate, seconds, retry=True)
        while sending.poll() is None:
            time.sleep(seconds / 10)
            memory.append(server.memory())
        first, last = (round(sum(memory[part]), 1) for part in (0, -1))
        return self.row("soak", rate, seconds, begin_mib=first, end_mib=last, memory_mib=memory, stop_s=server.stop())

    def kills(self, rate: float, seconds: float) -> dict[str, Any]:
        """Kill a worker, then the whole server, and start it again, behind a client that retries."""
        server = Server(self.fit, self.workers)
        sending = self.start_client(server.port, rate, seconds, retry=True)
        time.sleep(seconds / 3)
        os.kill(server.workers()[0], signal.SIGKILL)
        time.sleep(seconds / 3)
        server.process.kill()
        server.process.wait()
        server = Server(self.fit, self.workers, server.port)
        sending.wait()
        return self.row("kills", rate, seconds, stop_s=server.stop())

    def run(self, server: Server, rate: float, seconds: float) -> None:
        """Send requests to a server, and wait for all responses."""
        assert self.start_client(server.port, rate, seconds).wait() == 0


def main() -> None:
    if sys.argv[1:2] == ["client"]:
        port, folder, rate, seconds = sys.argv[2:6]
        client(int(port), Path(folder), float(rate), float(seconds), retry="retry" in sys.argv)
        return
    parser = argparse.ArgumentParser(description="load on sparcets serve")
    parser.add_argument("parts", nargs="*", default=["load", "soak", "kills"], metavar="load|soak|kills")
    parser.add_argument("--folder", type=Path, default=Path("serve-benchmark"))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load")
    parser.add_argument("--soak-seconds", type=float, default=600.0)
    parser.add_argument("--rates", type=float, nargs="*", default=[50.0, 500.0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--methods", nargs="*", default=list(FITS))
    options = parser.parse_args()
    fits = prepare(options.folder)
    for name in options.methods:
        bench = Bench(name, fits[name], options.folder, options.workers)
        for part in options.parts:
            rates = options.rates if part == "load" else options.rates[:1]
            for rate in rates:
                seconds = options.soak_seconds if part == "soak" else options.seconds
                about = {"commit": COMMIT, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
                row = {**about, **getattr(bench, part)(rate, seconds)}
                store("serve.jsonl", row, ("part", "method", "rate"))


if __name__ == "__main__":
    main()
