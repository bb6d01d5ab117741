"""Processes killed at random moments while they write: what is left is the old or the new, whole, or nothing.

The same command afterwards succeeds, goes on with what is finished, and removes what the killed process left.
"""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import FileFormatError, SparcetsError
from sparcets.io.locks import LOCK
from tests.archive import ARCHIVE, Server

from .processes import Ended, Task, killed, run
from .registry import campaign
from .site import site

TRIALS, DOSE, PARTS = 100, 2, 4
HERE = __name__
SHARD_BYTES = 10 * 4 * 8 * 3  # three queries of the site's data in a shard


class Killed:
    """What writes into a folder and is killed at random moments, then repeated.

    ``check`` and ``check_again`` return what is wrong with the folder after the kill, and after the repetition,
    compared to that of an undisturbed run, or "".
    """

    def begin(self) -> None:
        """Make what all trials need."""

    def tasks(self, own: Path) -> list[Task]:
        """Return the tasks that write into a folder; each trial chooses one."""
        raise NotImplementedError

    def prepare(self, own: Path) -> None:
        """Fill the folder before."""

    def again(self, task: Task) -> Task:
        """Return the task to be repeated afterwards."""
        return task

    def check(self, own: Path, task: Task) -> str:
        raise NotImplementedError

    def check_again(self, own: Path, task: Task, reference: Path) -> str:
        return self.check(own, task) or _compare_names(own, reference)


def killed_in(name: str) -> Callable[[type[Killed]], type[Killed]]:
    """Register a campaign."""

    def register(kind: type[Killed]) -> type[Killed]:
        @campaign(f"kill in {name}", trials=TRIALS, dose=DOSE, parts=PARTS)
        def trials(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[str]:
            what = kind()
            what.begin()
            known: dict[int, tuple[Path, Ended]] = {}  # undisturbed runs: their folder, duration and changes
            for i in range(trials):
                (own := folder / str(i)).mkdir()
                choice = int(rng.integers(len(what.tasks(own))))
                if choice not in known:
                    (reference := folder / f"undisturbed-{choice}").mkdir()
                    what.prepare(reference)
                    known[choice] = reference, run(what.tasks(reference)[choice], folder)
                    assert known[choice][1].code == 0, known[choice][1].err
                reference, straight = known[choice]
                what.prepare(own)
                task = what.tasks(own)[choice]
                when, ended = killed(task, folder, rng, straight)
                failure = f"exit code {ended.code}, {ended.err}" if ended.code not in (0, -9) else ""
                failure = failure or _problem(what.check, own, task)
                if not failure:
                    repeated = run(what.again(task), folder)
                    failure = f"repeated: exit code {repeated.code}, {repeated.err[-1500:]}" if repeated.code else ""
                failure = failure or _problem(what.check_again, own, task, reference)
                words = " ".join(map(str, [task.function or "sparcets", *task.arguments]))
                yield f"trial {i}: {words}: {when}: {failure}" if failure else ""
                shutil.rmtree(own, ignore_errors=True)

        return kind

    return register


def _problem(check: Callable[..., str], *arguments: Any) -> str:
    try:
        return check(*arguments)
    except SparcetsError as error:
        return f"{type(error).__name__}: {error}"


def _names(folder: Path) -> list[str]:
    """Return what a folder holds, except empty lock files, which the next process uses again."""
    found = (p for p in folder.rglob("*") if not (p.name.endswith(LOCK) and not p.stat().st_size))
    return sorted(str(p.relative_to(folder)) for p in found)


def _compare_names(own: Path, reference: Path) -> str:
    found, expected = _names(own), _names(reference)
    left, missing = sorted(set(found) - set(expected)), sorted(set(expected) - set(found))
    return f"left behind: {left}, missing: {missing}" if left or missing else ""


@killed_in("fit")
class Fit(Killed):
    def tasks(self, own: Path) -> list[Task]:
        plain, trained = ["-m", "nearest"], ["-m", "countergan", "--set", "train.epochs=2"]
        return [
            site().fit(own / "new"),
            site().fit(own / "old", *plain, "--seed", "5", "--force"),
            site().fit(own / "new", *trained, "--checkpoint", str(own / "new" / "state")),
            site().fit(own / "old", *trained, "--checkpoint", str(own / "state"), "--force"),
        ]

    def prepare(self, own: Path) -> None:
        shutil.copytree(site().other, own / "old")

    def again(self, task: Task) -> Task:
        return replace(task, arguments=[*dict.fromkeys([*task.arguments, "--force"])])

    def check(self, own: Path, task: Task) -> str:
        out = _out(task)
        if out.name == "new" and not (out / "run.json").exists():
            parts = [p.name for p in out.iterdir()] if out.exists() else []
            return "" if parts in ([], ["state"]) else f"parts of a fit: {parts}"
        old, found = _fitted(site().other), _fitted(out)  # raises if it is damaged, or does not belong together
        return "" if found == old or found[0]["dataset"] == str(site().data) else f"neither old nor new: {found}"

    def check_again(self, own: Path, task: Task, reference: Path) -> str:
        if _fitted(_out(task)) != _fitted(reference / _out(task).name):
            return "the repeated fit differs from an undisturbed one"
        return _compare_names(own, reference)


def _out(task: Task) -> Path:
    return Path(task.arguments[task.arguments.index("--out") + 1])


def _fitted(folder: Path) -> tuple[dict[str, Any], str, dict[str, bytes]]:
    from sparcets.methods.folder import load_fit

    run, explainer = load_fit(folder, device="cpu")
    state = {name: array.tobytes() for name, array in explainer._state().items()}
    return run, str(explainer.classifier.digest()), state


def explain_to(model: str, data: str, out: str) -> None:
    """Explain into a folder of several shards."""
    from sparcets.data.load import load_dataset
    from sparcets.io import explanations as shards
    from sparcets.methods.folder import load_fit

    shards.MAX_SHARD_BYTES = SHARD_BYTES
    explainer = load_fit(Path(model), device="cpu")[1]
    explainer.explain(load_dataset(data).X_train, target="wild", out=out)


def _shards(own: Path) -> dict[str, dict[str, bytes]]:
    from sparcets.io.explanations import load_explanation

    names = ("query", "counterfactual", "target", "status", "proba_after", "query_index")
    found = {file.name: load_explanation(file) for file in sorted((own / "out").glob("shard-*.npz"))}
    return {name: {n: getattr(e, n).tobytes() for n in names} for name, e in found.items()}


@killed_in("explain")
class Explain(Killed):
    def tasks(self, own: Path) -> list[Task]:
        return [Task([str(site().model), str(site().data), str(own / "out")], f"{HERE}:explain_to")]

    def check(self, own: Path, task: Task) -> str:
        from sparcets.io.explanations import HEADER, ExplanationFolder

        _shards(own)  # raises if one is damaged
        try:
            if (own / "out" / HEADER).exists():
                ExplanationFolder(own / "out")
        except FileFormatError as error:
            return "" if "is not finished" in str(error) else str(error)
        return ""

    def check_again(self, own: Path, task: Task, reference: Path) -> str:
        if _shards(own) != _shards(reference):
            return "the answers differ from those of an undisturbed run"
        return _compare_names(own, reference)


@killed_in("data fetch")
class Fetch(Killed):
    def begin(self) -> None:
        self.server = Server(seconds=0.3)

    def tasks(self, own: Path) -> list[Task]:
        arguments = ["data", "fetch", "motionsense", "--folder", str(own), "--url", self.server.url]
        return [Task(arguments, setup="tests.campaigns.site:expect_small_archive")]

    def check(self, own: Path, task: Task) -> str:
        file = own / "motionsense" / ARCHIVE
        whole = not file.exists() or file.read_bytes() == self.server.content
        return "" if whole else "the file is not whole"


def upload(workspace: str, file: str) -> None:
    """Receive an uploaded file in pieces, as the studio does."""
    import asyncio

    from sparcets.studio.models import Limits
    from sparcets.studio.uploads import Uploads
    from sparcets.studio.workspace import Workspace

    class Request:
        async def stream(self) -> AsyncIterator[bytes]:
            content = Path(file).read_bytes()
            for first in range(0, len(content), 1000):
                yield content[first : first + 1000]

        async def is_disconnected(self) -> bool:
            return False

    asyncio.run(Uploads(Workspace(Path(workspace)), Limits()).dataset("own.npz", Request()))  # type: ignore[arg-type]


@killed_in("upload")
class Upload(Killed):
    def tasks(self, own: Path) -> list[Task]:
        return [Task([str(own), str(site().data)], f"{HERE}:upload")]

    def check(self, own: Path, task: Task) -> str:
        from sparcets.studio.models import DatasetRecord
        from sparcets.studio.workspace import Workspace, load

        workspace = Workspace(own)
        for record in workspace.records(DatasetRecord):
            load(workspace, record)  # raises if it is not whole
        visible = [p.name for p in (own / "datasets").iterdir() if not p.name.startswith(".")]
        listed = [record.id for record in workspace.records(DatasetRecord)]
        return "" if sorted(visible) == sorted(listed) else f"of {visible}, the studio lists {listed}"

    def check_again(self, own: Path, task: Task, reference: Path) -> str:
        hidden = [name for name in _names(own) if "/." in name]
        return self.check(own, task) or (f"left behind: {hidden}" if hidden else "")
