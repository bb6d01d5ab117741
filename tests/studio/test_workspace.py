"""The workspace: whole or not at all, nothing outside, one damaged folder does not hide the others."""

import shutil
from pathlib import Path

import pytest

from sparcets.errors import StorageError
from sparcets.studio.errors import ApiError
from sparcets.studio.workspace import RECORD, Workspace, new_id

from .conftest import Made


def test_what_is_being_made_is_not_there_until_it_is_complete(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    with workspace.making("datasets", "new") as folder:
        (folder / RECORD).write_text("{}")
        with pytest.raises(ApiError, match="no data set 'new'"):
            workspace.path("datasets", "new")
    assert workspace.path("datasets", "new") == tmp_path / "datasets" / "new"


def test_what_fails_leaves_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)

    def fail() -> None:
        with workspace.making("datasets", "new") as folder:
            (folder / "half").write_text("half")
            raise RuntimeError("full")

    with pytest.raises(RuntimeError, match="full"):
        fail()
    assert not any((tmp_path / "datasets").iterdir())


@pytest.mark.parametrize("name", ["..", "../own", ".own", "", "own/..", "Own", "own\n", "a" * 65])
def test_only_ids_are_looked_up(made: Made, name: str) -> None:
    own = made.folder / "datasets" / "own"
    shutil.copy(own / RECORD, made.folder / "datasets" / RECORD)  # what ".." and "" would find
    for other in (".own", "Own"):
        shutil.copytree(own, own.with_name(other))
    shutil.copy(own / RECORD, made.folder / RECORD)
    with pytest.raises(ApiError) as told:
        Workspace(made.folder).path("datasets", name)
    assert told.value.status_code == 404


def test_a_damaged_folder_does_not_hide_the_others(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    for name, text in (("broken", "{"), ("other", '{"id": "other"}')):
        (made.folder / "explainers" / name).mkdir()
        (made.folder / "explainers" / name / RECORD).write_text(text)
    assert [e.id for e in Workspace(made.folder).explainers()] == ["nearest", "ics"]
    assert "broken" in caplog.text


def test_ids_say_what_they_are_and_differ() -> None:
    ids = {new_id("Gait study", "ä/..") for _ in range(50)}
    assert len(ids) == 50 and all(name.startswith("gait-study-") for name in ids)
    assert new_id("…").startswith("x-")


def test_a_workspace_that_cannot_be_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--workspace"):
        Workspace(tmp_path / "file")
