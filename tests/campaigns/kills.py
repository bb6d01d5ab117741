"""Processes killed at random moments while they write: what is left is the old or the new, whole, or nothing.

The same command afterwards succeeds, goes on with what is finished, and removes what the killed process left.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import FileFormatError, SparcetsError
from sparcets.io.locks import LOCK

from .processes import Ended, Task, killed, run
from .registry import OK, Trial, campaign
from .site import ARCHIVE, Server, Site, site

TRIALS, DOSE, PARTS = 100, 2, 4
HERE = __name__
SHARD_BYTES = 10 * 4 * 8 * 3  # three queries of the site's data in a shard


def _kill(
    trials: int,
    rng: np.random.Generator,
    folder: Path,
    tasks: Callable[[Path], list[Task]],
    *,
    prepare: Callable[[Path], object] = lambda own: None,
    again: Callable[[Path, Task], Task] = lambda own, task: task,
    check: Callable[[Path, Task], str],
    check_again: Callable[[Path, Task, Path], str],
) -> Iterator[Trial]:
    """Kill tasks at random moments, and repeat them.

    Parameters
    ----------
    trials, rng, folder
        As of every campaign.
    tasks
        Returns the tasks that write into a folder; each trial chooses one.
    prepare
        Fills the folder before.
    again
        Returns the task to be repeated afterwards.
    check
        Returns what is wrong with the folder after the kill, or "".
    check_again
        Returns what is wrong with the folder after the repetition, compared to that of an undisturbed run.
    """
    known: dict[int, tuple[Path, Ended]] = {}  # undisturbed runs: their folder, duration and number of changes

    def undisturbed(choice: int) -> tuple[Path, Ended]:
        if choice not in known:
            (own := folder / f"undisturbed-{choice}").mkdir()
            prepare(own)
            ended = run(tasks(own)[choice], folder)
            assert ended.code == 0, ended.err
            known[choice] = own, ended
        return known[choice]

    for i in range(trials):
        (own := folder / str(i)).mkdir()
        choice = int(rng.integers(len(tasks(own))))
        reference, straight = undisturbed(choice)
        prepare(own)
        task = tasks(own)[choice]
        when, ended = killed(task, folder, rng, straight)
        failure = f"exit code {ended.code}, {ended.err}" if ended.code not in (0, -9) else _problem(check, own, task)
        if not failure:
            repeated = run(again(own, task), folder)
            failure = f"repeated: exit code {repeated.code}, {repeated.err[-1500:]}" if repeated.code else ""
        failure = failure or _problem(check_again, own, task, reference)
        what = " ".join(map(str, [task.function or "sparcets", *task.arguments]))
        yield Trial(f"trial {i}: {what}: {when}: {failure}") if failure else OK
        shutil.rmtree(own, ignore_errors=True)


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


# --- sparcets fit


@campaign("kill in fit", trials=TRIALS, dose=DOSE, parts=PARTS)
def fit(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    countergan = ["-m", "countergan", "--set", "train.epochs=2"]

    def tasks(own: Path) -> list[Task]:
        return [
            site().fit(own / "new"),
            site().fit(own / "old", "-m", "nearest", "--seed", "5", "--force"),
            site().fit(own / "new", *countergan, "--checkpoint", str(own / "new" / "state")),
            site().fit(own / "old", *countergan, "--checkpoint", str(own / "state"), "--force"),
        ]

    yield from _kill_fit(trials, rng, folder, tasks)


@campaign("kill in fit with prototypes", trials=TRIALS, dose=0, parts=PARTS)  # 10 s each
def fit_with_prototypes(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    def tasks(own: Path) -> list[Task]:
        return [
            site().fit(own / "new", "-m", "sparcets"),
            site().fit(own / "old", "-m", "sparcets", "--checkpoint", str(own / "state"), "--force"),
        ]

    yield from _kill_fit(trials, rng, folder, tasks)


def _kill_fit(
    trials: int, rng: np.random.Generator, folder: Path, tasks: Callable[[Path], list[Task]]
) -> Iterator[Trial]:
    here = site()

    def again(own: Path, task: Task) -> Task:
        return replace(task, arguments=[*dict.fromkeys([*task.arguments, "--force"])])

    def check_again(own: Path, task: Task, reference: Path) -> str:
        out = _out(task)
        if _fitted(out) != _fitted(reference / out.name):
            return "the repeated fit differs from an undisturbed one"
        return _compare_names(own, reference)

    yield from _kill(
        trials,
        rng,
        folder,
        tasks,
        prepare=lambda own: shutil.copytree(here.other, own / "old"),
        again=again,
        check=lambda own, task: _check_fit(here, own, task),
        check_again=check_again,
    )


def _out(task: Task) -> Path:
    return Path(task.arguments[task.arguments.index("--out") + 1])


def _check_fit(here: Site, own: Path, task: Task) -> str:
    out = _out(task)
    if out.name == "new" and not (out / "run.json").exists():
        parts = [p.name for p in out.iterdir()] if out.exists() else []
        return "" if parts in ([], ["state"]) else f"parts of a fit: {parts}"
    old, found = _fitted(here.other), _fitted(out)  # raises if it is damaged, or does not belong together
    return "" if found == old or found[0]["dataset"] == str(here.data) else f"neither old nor new: {found}"


def _fitted(folder: Path) -> tuple[dict[str, Any], str, dict[str, bytes]]:
    from sparcets.methods.fit_folder import load_fit

    run, explainer = load_fit(folder, device="cpu")
    state = {name: array.tobytes() for name, array in explainer._state().items()}
    return run, str(explainer.classifier.digest()), state


# --- save


def save(kind: str, source: str, out: str) -> None:
    """Save a model that was saved before under another path."""
    from sparcets.methods.folder import load
    from sparcets.models.network import load_classifier

    model = load_classifier(f"{source}/classifier", device="cpu")
    (model if kind == "classifier" else load(f"{source}/explainer", model)).save(out)


@campaign("kill in save", trials=TRIALS, dose=DOSE, parts=PARTS)
def saving(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    sources = [site().model]
    if trials > DOSE:  # with the prototypes and the models of other kinds of our own method
        ended = run(site().fit(folder / "sparcets", "-m", "sparcets"), folder)
        assert ended.code == 0, ended.err
        sources.append(folder / "sparcets")

    def tasks(own: Path) -> list[Task]:
        kinds = ("classifier", "explainer")
        return [
            Task([kind, str(source), str(own / place / kind)], f"{HERE}:save")
            for source in sources
            for kind in kinds
            for place in ("old", "new")
        ]

    def content(task: Task, folder: Path) -> dict[str, bytes]:
        """Return the arrays of a saved model, once it was loaded."""
        from sparcets.methods.folder import load
        from sparcets.models.network import load_classifier

        kind, source, _ = task.arguments
        model = load_classifier(folder if kind == "classifier" else f"{source}/classifier", device="cpu")
        if kind == "classifier":
            return {"digest": str(model.digest()).encode()}
        return {name: array.tobytes() for name, array in load(folder, model)._state().items()}

    def check(own: Path, task: Task) -> str:
        kind, source, out = task.arguments
        if not (Path(out) / f"{kind}.json").exists():
            return "" if "new" in out else "the old one is lost"
        try:
            found = content(task, Path(out))
        except FileFormatError as error:  # the old explainer belongs to the old classifier
            return "" if "was fitted to another classifier" in str(error) and "old" in out else str(error)
        known = [source, site().other] if kind == "classifier" and "old" in out else [source]
        return "" if found in [content(task, Path(place, kind)) for place in known] else "neither old nor new"

    def check_again(own: Path, task: Task, reference: Path) -> str:
        kind, source, out = task.arguments
        same = content(task, Path(out)) == content(task, Path(source, kind))
        return _compare_names(own, reference) if same else "the second save is not what was saved"

    yield from _kill(
        trials,
        rng,
        folder,
        tasks,
        prepare=lambda own: shutil.copytree(site().other, own / "old"),
        check=check,
        check_again=check_again,
    )


# --- explain(out=)


def explain_to(model: str, data: str, out: str) -> None:
    """Explain into a folder of several shards."""
    from sparcets.data.load import load_dataset
    from sparcets.io import explanations as shards
    from sparcets.methods.fit_folder import load_fit

    shards.MAX_SHARD_BYTES = SHARD_BYTES
    explainer = load_fit(Path(model), device="cpu")[1]
    explainer.explain(load_dataset(data).X_train, target="wild", out=out)


@campaign("kill in explain", trials=TRIALS, dose=DOSE, parts=PARTS)
def explaining(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    def tasks(own: Path) -> list[Task]:
        return [Task([str(site().model), str(site().data), str(own / "out")], f"{HERE}:explain_to")]

    def shards(own: Path) -> dict[str, dict[str, bytes]]:
        from sparcets.io.explanations import load_explanation

        names = ("query", "counterfactual", "target", "status", "proba_after", "query_index")
        found = {file.name: load_explanation(file) for file in sorted((own / "out").glob("shard-*.npz"))}
        return {name: {n: getattr(e, n).tobytes() for n in names} for name, e in found.items()}

    def check(own: Path, task: Task) -> str:
        from sparcets.io.explanations import HEADER, ExplanationFolder

        shards(own)  # raises if one is damaged
        try:
            if (own / "out" / HEADER).exists():
                ExplanationFolder(own / "out")
        except FileFormatError as error:
            return "" if "is not finished" in str(error) else str(error)
        return ""

    def check_again(own: Path, task: Task, reference: Path) -> str:
        if shards(own) != shards(reference):
            return "the answers differ from those of an undisturbed run"
        return _compare_names(own, reference)

    yield from _kill(trials, rng, folder, tasks, check=check, check_again=check_again)


# --- data fetch


@campaign("kill in data fetch", trials=TRIALS, dose=DOSE, parts=PARTS)
def fetch(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    with Server(seconds=0.3) as server:

        def tasks(own: Path) -> list[Task]:
            arguments = ["data", "fetch", "motionsense", "--folder", str(own), "--url", server.url]
            return [Task(arguments, setup="tests.campaigns.site:expect_small_archive")]

        def check(own: Path, task: Task) -> str:
            file = own / "motionsense" / ARCHIVE
            whole = not file.exists() or file.read_bytes() == server.content
            return "" if whole else "the file is not whole"

        def check_again(own: Path, task: Task, reference: Path) -> str:
            return check(own, task) or _compare_names(own, reference)

        yield from _kill(trials, rng, folder, tasks, check=check, check_again=check_again)
        server.shutdown()


# --- benchmark run


@campaign("kill in benchmark run", trials=TRIALS, dose=DOSE, parts=PARTS)
def benchmark(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets_paper.benchmark.store import RESULTS, ResultStore

    def tasks(own: Path) -> list[Task]:
        cells = ["-d", str(site().data), "-m", "nearest", "-m", "countergan", "-c", "fcn", "--seed-count", "2"]
        quick = ["--preset", "tiny", "--set", "countergan:train.epochs=1", "--set-classifier", "epochs=2"]
        more = ["--queries", "3", "--keep", "1", "--device", "cpu", "--out", str(own)]
        return [Task(["benchmark", "run", *cells, *quick, *more], setup="tests.campaigns.site:no_judges")]

    def results(own: Path) -> dict[str, Any]:
        rows = ResultStore(own / RESULTS).rows()
        assert not [row["error"] for row in rows if "error" in row], rows
        measures = ({k: v for k, v in row["measures"].items() if k != "seconds"} for row in rows)
        return {row["key"]: found for row, found in zip(rows, measures, strict=True)}

    def check(own: Path, task: Task) -> str:
        stored = ResultStore(own / RESULTS).rows()  # raises if a line is damaged
        (own.parent / f"{own.name}-before.json").write_text(json.dumps(stored))
        return ""

    def check_again(own: Path, task: Task, reference: Path) -> str:
        before = json.loads((own.parent / f"{own.name}-before.json").read_text())
        rows = ResultStore(own / RESULTS).all_rows()
        if len({row["key"] for row in rows}) != len(rows):
            return "a cell was run twice"
        if rows[: len(before)] != before:
            return "finished rows have changed"
        if results(own) != results(reference):
            return "the results differ from those of an undisturbed run"
        return _compare_names(own, reference)

    yield from _kill(trials, rng, folder, tasks, check=check, check_again=check_again)


# --- upload to the studio


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


@campaign("kill in upload", trials=TRIALS, dose=DOSE, parts=PARTS)
def uploading(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
    from sparcets.studio.items import load
    from sparcets.studio.workspace import Workspace

    def check(own: Path, task: Task) -> str:
        if not own.exists():
            return ""
        workspace = Workspace(own)
        for record in workspace.datasets():
            load(workspace, record)  # raises if it is not whole
        visible = [p.name for p in (own / "datasets").iterdir() if not p.name.startswith(".")]
        listed = [record.id for record in workspace.datasets()]
        return "" if sorted(visible) == sorted(listed) else f"of {visible}, the studio lists {listed}"

    def check_again(own: Path, task: Task, reference: Path) -> str:
        hidden = [name for name in _names(own) if "/." in name]
        return check(own, task) or (f"left behind: {hidden}" if hidden else "")

    yield from _kill(
        trials,
        rng,
        folder,
        lambda own: [Task([str(own), str(site().data)], f"{HERE}:upload")],
        check=check,
        check_again=check_again,
    )
