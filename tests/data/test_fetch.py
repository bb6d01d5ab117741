"""fetch: download, resume, verification, and failures of the network and the disk."""

import socket
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparcets.core.errors import DownloadError, StorageError, UnknownNameError
from sparcets.data import fetch as module
from sparcets.data.fetch import fetch
from sparcets.data.motionsense import ARCHIVE, content_digest
from tests.archive import NAMES, Server, small_archive

CONTENT = small_archive()


@pytest.fixture
def site(tmp_path, monkeypatch):
    (tmp_path / "sample.zip").write_bytes(CONTENT)
    server = Server()
    changes = {"URL": server.url, "DIGEST": content_digest(tmp_path / "sample.zip"), "WAIT": 0.0, "CHUNK": 1000}
    for name, value in changes.items():
        monkeypatch.setattr(module, name, value)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def part(tmp_path):
    """Return the path of an unfinished download."""
    (tmp_path / "motionsense").mkdir()
    return tmp_path / "motionsense" / f".{ARCHIVE}{module.PART}"


def test_download_into_the_data_folder_with_progress(site, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "data"))
    calls = []
    file = fetch("motionsense", progress=lambda done, total: calls.append((done, total)))
    assert file == tmp_path / "data" / "motionsense" / ARCHIVE and file.read_bytes() == CONTENT
    assert [entry.name for entry in file.parent.iterdir()] == [ARCHIVE]
    done = [call[0] for call in calls]
    assert len(done) > 50 and done == sorted(set(done)) and done[-1] == len(CONTENT)
    assert {call[1] for call in calls} == {len(CONTENT)}
    assert fetch("motionsense") == file and site.ranges == [None], "nothing is fetched again"


def test_what_others_put_there_is_not_replaced(site, part, tmp_path):
    (theirs := part.with_name(f"{ARCHIVE}.part")).write_bytes(b"of a browser")
    part.symlink_to(theirs)
    with pytest.raises(StorageError, match=r"sparcets-part is in the way: it is no file"):
        fetch("motionsense", folder=tmp_path)
    part.unlink()
    final = part.with_name(ARCHIVE)
    final.write_bytes(CONTENT[:500])
    with pytest.raises(StorageError, match=r"is there already, but is not motionsense as published.*fetch again"):
        fetch("motionsense", folder=tmp_path)
    assert final.read_bytes() == CONTENT[:500] and site.ranges == []
    final.unlink()
    assert fetch("motionsense", folder=tmp_path).read_bytes() == CONTENT
    assert theirs.read_bytes() == b"of a browser"
    with pytest.raises(StorageError, match=r"cannot write .*choose another folder"):
        fetch("motionsense", folder=theirs)


def test_broken_connections_are_resumed_and_giving_up_keeps_the_part(site, tmp_path, part):
    site.cut_after = [10_000, 10_000, 10_000, 10_000]
    lost = rf"the connection was lost after 40000 of {len(CONTENT)} bytes. Check the network"
    with pytest.raises(DownloadError, match=lost):
        fetch("motionsense", folder=tmp_path)
    assert part.stat().st_size == 40_000 and not part.with_name(ARCHIVE).exists()
    site.cut_after = [10_000]
    calls = []
    file = fetch("motionsense", folder=tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert file.read_bytes() == CONTENT and not part.exists()
    assert site.ranges == [None, *(f"bytes={n}0000-" for n in range(1, 6))]
    assert site.sent == len(CONTENT)  # no byte was sent twice
    assert {total for _, total in calls} == {len(CONTENT)}
    assert [done for done, _ in calls] == sorted({done for done, _ in calls}) and calls[0][0] > 40_000


@pytest.mark.parametrize(
    ("there", "ranges", "sent"),
    [
        (b"x" * 700, ["bytes=700-"], len(CONTENT)),  # by a server that knows no ranges
        (CONTENT, [f"bytes={len(CONTENT)}-"], 0),
        (CONTENT + b"more", [f"bytes={len(CONTENT) + 4}-", None], len(CONTENT)),
    ],
    ids=["no ranges", "complete", "too long"],
)
def test_a_part_that_cannot_be_continued(site, tmp_path, part, there, ranges, sent):
    site.supports_ranges = len(there) > 700
    part.write_bytes(there)
    done = []
    file = fetch("motionsense", folder=tmp_path, progress=lambda received, _: done.append(received))
    assert file.read_bytes() == CONTENT and site.ranges == ranges and site.sent == sent
    assert max(done, default=len(CONTENT)) == len(CONTENT)


@pytest.mark.parametrize(("status", "tries"), [(500, 4), (503, 4), (429, 4), (404, 1), (403, 1)])
def test_temporary_errors_are_retried(site, tmp_path, status, tries):
    if tries > 1:
        site.statuses = [status, status]
        assert fetch("motionsense", folder=tmp_path / "later").read_bytes() == CONTENT
    site.statuses = [status] * 9
    told = rf"cannot fetch {site.url}: HTTP {status} .* or download it manually to"
    with pytest.raises(DownloadError, match=told) as info:
        fetch("motionsense", folder=tmp_path)
    assert len(site.statuses) == 9 - tries and "\n" not in str(info.value)


def test_a_silent_server_no_network_and_no_address(site, tmp_path, monkeypatch):
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/x.zip"
        with pytest.raises(DownloadError, match="refused") as info:
            fetch("motionsense", url=url, folder=tmp_path)
    assert "\n" not in str(info.value)
    with pytest.raises(DownloadError, match="cannot fetch no address"):
        fetch("motionsense", url="no address", folder=tmp_path)
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    monkeypatch.setattr(module, "ATTEMPTS", 2)
    site.stalls = True
    with pytest.raises(DownloadError, match="timed out"):
        fetch("motionsense", folder=tmp_path)
    assert len(site.ranges) == 2


def test_other_content_is_removed_and_a_repacked_archive_is_accepted(site, tmp_path, part):
    site.content = small_archive(NAMES[:1])
    (tmp_path / "other.zip").write_bytes(site.content)
    found = content_digest(tmp_path / "other.zip")
    with pytest.raises(DownloadError, match=f"digest {found}, expected {module.DIGEST}. It was removed"):
        fetch("motionsense", folder=tmp_path)
    site.content = b"<html>please sign in</html>"
    with pytest.raises(DownloadError, match=r"not motionsense as published.*not a complete archive"):
        fetch("motionsense", folder=tmp_path)
    assert list(part.parent.iterdir()) == []
    site.content = small_archive(NAMES[::-1], zipfile.ZIP_DEFLATED)
    assert fetch("motionsense", folder=tmp_path).read_bytes() == site.content != CONTENT


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_not_a_network_error(site, tmp_path, part, monkeypatch):
    opened = Path.open
    full = Path("/dev/full")
    monkeypatch.setattr(Path, "open", lambda path, *how: opened(full if path == part else path, *how))
    with pytest.raises(StorageError, match="No space left on device"):
        fetch("motionsense", folder=tmp_path)
    assert site.ranges == [None]


def test_data_sets_that_cannot_be_fetched():
    with pytest.raises(DownloadError, match=r"ui_prmd cannot be fetched.*from the authors.*SPARCETS_DATA"):
        fetch("ui_prmd")
    with pytest.raises(DownloadError, match="nothing to fetch for moving_box: load_dataset"):
        fetch("moving_box")
    with pytest.raises(UnknownNameError, match=r"no data set 'motionsens'. Did you mean 'motionsense'"):
        fetch("motionsens")


def test_two_at_once_download_it_once(site, tmp_path):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: fetch("motionsense", folder=tmp_path), range(2))
    assert first == second and first.read_bytes() == CONTENT
    assert site.sent == len(CONTENT) and [entry.name for entry in first.parent.iterdir()] == [ARCHIVE]
