"""fetch: download a data set from its authors, resume where a download broke off, and check what came.

A download goes to a ``.part`` file and gets its name only after its content was found right, so whatever carries the
final name is whole. The check is over the recordings, not the archive's bytes: authors repack archives.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from sparcets.datasets.folder import data_folder
from sparcets.datasets.load import DATASETS
from sparcets.datasets.motionsense import ARCHIVE, content_digest
from sparcets.datasets.uea_names import UEA_NAMES
from sparcets.datasets.ui_prmd import HOW_TO_GET
from sparcets.errors import DownloadError, FileFormatError, StorageError
from sparcets.registry import unknown_name

ATTEMPTS = 4
WAIT = 1.0  # seconds before the second attempt, doubled each time
TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 18

# Answers that another try may change; every other 4xx is final.
_PASSING = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True)
class Source:
    """Where a data set can be downloaded, and what must come.

    Attributes
    ----------
    url
        The authors' file.
    file
        Its name in the data set's folder.
    digest
        Measures the content of a downloaded file.
    expected
        What ``digest`` must return.
    """

    url: str
    file: str
    digest: Callable[[Path], str]
    expected: str


SOURCES = {
    "motionsense": Source(
        url="https://github.com/mmalekzadeh/motion-sense/raw/master/data/A_DeviceMotion_data.zip",
        file=ARCHIVE,
        digest=content_digest,
        expected="630368b746c855666a286ac24faf75d9d18206ec57f06c4647b6756b5be8ab48",
    ),
}


def fetch(
    name: str,
    *,
    url: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Download a data set into ``folder/name`` and return the file; at once where the right one is there already.

    Parameters
    ----------
    name
        The data set: ``motionsense``.
    url
        Another place to take the same file from.
    folder
        Where data sets lie, by default the folder that ``SPARCETS_DATA`` names or the user's cache.
    progress
        Called as ``progress(done, total)`` with bytes; the total is None where the server does not tell.

    Examples
    --------
    >>> fetch("motionsense")  # doctest: +SKIP
    PosixPath('/home/ada/.cache/sparcets/motionsense/A_DeviceMotion_data.zip')
    """
    if name not in SOURCES:
        raise _not_fetched(name)
    source = SOURCES[name]
    address = source.url if url is None else url
    final = (data_folder() if folder is None else Path(folder).expanduser()) / name / source.file
    if final.is_file() and _digest(source, final) == source.expected:
        return final
    part = final.with_name(f"{final.name}.part")
    with _writing(part):
        part.parent.mkdir(parents=True, exist_ok=True)
    _download(address, part, progress, by_hand=f"or download it by hand and put it at {final}")
    found = _digest(source, part)
    if found != source.expected:
        with _writing(part):
            part.unlink()
        raise DownloadError(
            f"what {address} sent is not {name} as it was published: its content has the digest {found}, expected "
            f"{source.expected}. It was removed; try again, or download it by hand and put it at {final}."
        )
    with _writing(final):
        part.replace(final)
    return final


def _not_fetched(name: str) -> Exception:
    if name == "ui_prmd":
        return DownloadError(f"ui_prmd cannot be fetched. {HOW_TO_GET}.")
    if name in DATASETS or name in UEA_NAMES:
        return DownloadError(f"there is nothing to fetch for {name}: load_dataset({name!r}) brings it by itself.")
    return unknown_name("data set", name, [*DATASETS, *UEA_NAMES])


def _digest(source: Source, file: Path) -> str:
    try:
        return source.digest(file)
    except FileFormatError:
        return "none (not a whole archive)"


class _BrokenOffError(Exception):
    """The network failed while a file came; not an OSError, so that it cannot pass for trouble with the disk."""


def _download(url: str, part: Path, progress: Callable[[int, int | None], None] | None, *, by_hand: str) -> None:
    """Fill ``part``, going on from what it holds, in several attempts."""
    why: object = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        try:
            return _receive(url, part, progress)
        except StorageError:
            raise
        except HTTPError as error:
            error.close()
            why = f"HTTP {error.code} {error.reason}"
            if error.code == 416:
                # The part is as long as the file, which is a finished download, or longer, which is a wrong one.
                if error.headers.get("Content-Range") == f"bytes */{_size(part)}":
                    return None
                with _writing(part):
                    part.unlink(missing_ok=True)
            elif error.code not in _PASSING:
                break
        except URLError as error:
            why = getattr(error.reason, "strerror", None) or error.reason
        except (OSError, HTTPException, _BrokenOffError) as error:
            why = str(error) or type(error).__name__
        except ValueError as error:  # not a URL at all
            why = error
            break
    raise DownloadError(f"cannot fetch {url}: {why}. Check the network and the address and try again, {by_hand}.")


def _receive(url: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Ask for what ``part`` does not hold yet and append it; a server that knows no ranges sends all of it again."""
    held = _size(part)
    headers = {"User-Agent": "sparcets", **({"Range": f"bytes={held}-"} if held else {})}
    with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as response:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {held}-")
        done = held if goes_on else 0
        length = response.headers.get("Content-Length") or ""
        total = done + int(length) if length.isdigit() else None
        with _writing(part), part.open("ab" if goes_on else "wb") as file:
            while chunk := _read(response):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
    if total is not None and done != total:
        raise _BrokenOffError(f"the connection broke off after {done} of {total} bytes")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _BrokenOffError(f"the connection broke off ({str(error) or type(error).__name__})") from error


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}. Free some space or choose another folder (SPARCETS_DATA)."
        ) from error
