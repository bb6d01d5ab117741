"""The workspace: complete items only, no access to other folders, damaged folders are skipped."""

import shutil

import pytest

from sparcets.core.errors import FileFormatError, StorageError
from sparcets.io.files import TEMPORARY
from sparcets.io.folders import MARKER as TEMPORARY_MARKER
from sparcets.studio.models import ExplainerRecord
from sparcets.studio.workspace import RECORD, Workspace
from sparcets.web.errors import ApiError
from tests.campaigns.folders import snapshot


@pytest.mark.parametrize("name", ["..", "../own", ".own", "", "own/..", "Own", "own\n", "a" * 65])
def test_only_valid_ids_are_looked_up(sample, name):
    own = sample.folder / "datasets" / "own"
    shutil.copy(own / RECORD, sample.folder / "datasets" / RECORD)  # found by ".." and "" without the check
    for other in (".own", "Own"):
        shutil.copytree(own, own.with_name(other))
    shutil.copy(own / RECORD, sample.folder / RECORD)
    with pytest.raises(ApiError) as raised:
        Workspace(sample.folder).path("datasets", name)
    assert raised.value.status_code == 404


def test_a_damaged_folder_does_not_hide_the_others(sample, caplog):
    for name, text in (("broken", "{"), ("other", '{"id": "other"}')):
        (sample.folder / "explainers" / name).mkdir()
        (sample.folder / "explainers" / name / RECORD).write_text(text)
    assert [e.id for e in Workspace(sample.folder).records(ExplainerRecord)] == ["nearest", "ics"]
    assert "broken" in caplog.text


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path):
    workspace = Workspace(tmp_path)
    names = ("left", "empty", "theirs")
    left, empty, theirs = (tmp_path / "datasets" / f".{name}{TEMPORARY}12345678" for name in names)
    for folder in (left, theirs):
        (folder / "left-a1").mkdir(parents=True)
    (left / TEMPORARY_MARKER).touch()
    empty.mkdir()
    with workspace.create("datasets", "one") as one:
        (one / "file").touch()
        with workspace.create("datasets", "two"):  # which leaves alone what a living process writes
            assert not left.exists() and not empty.exists() and (one / "file").exists()
    assert sorted(p.name for p in (tmp_path / "datasets").iterdir()) == [theirs.name, "one", "two"]


@pytest.mark.parametrize("name", ["notes.txt", ".git/HEAD", "datasets/gait/data.csv", "token"])
def test_a_folder_with_other_things_does_not_become_a_workspace(tmp_path, name):
    (file := tmp_path / "proj" / name).parent.mkdir(parents=True)
    file.write_text("theirs")
    file.chmod(0o755)
    before = snapshot(tmp_path)
    first = name if name.startswith(("notes", "token/")) else name.split("/")[0]
    refused = rf"proj is no workspace: it holds {first.split('/')[0]}, .*Name another folder, such as --workspace"
    with pytest.raises(StorageError, match=refused):
        Workspace(tmp_path / "proj")
    assert snapshot(tmp_path) == before


def test_an_item_that_is_a_link_to_elsewhere_is_not_removed(sample, tmp_path):
    datasets = sample.folder / "datasets"
    (datasets / "own").rename(tmp_path / "elsewhere")
    (datasets / "mine").symlink_to(tmp_path / "elsewhere")
    before = snapshot(tmp_path / "elsewhere")
    with pytest.raises((ApiError, FileFormatError), match=r"no data set 'mine'|leads out of its folder"):
        Workspace(sample.folder).remove("datasets", "mine")
    assert snapshot(tmp_path / "elsewhere") == before and [path.name for path in datasets.iterdir()] == ["mine"]
