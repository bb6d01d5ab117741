"""fetch: download a data set from its authors, with resume and verification.

A download is written to a hidden file and renamed only after its content has been verified, so a file with the final
name is always complete. The digest is computed over the recordings, not over the bytes of the archive, because authors
repack archives.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from sparcets.core.errors import DownloadError, FileFormatError, StorageError
from sparcets.core.registry import unknown_name
from sparcets.data.load import DATASETS, data_folder, writing
from sparcets.data.motionsense import ARCHIVE, content_digest
from sparcets.data.uea import UEA_NAMES
from sparcets.data.ui_prmd import HOW_TO_GET
from sparcets.io.files import is_plain_file
from sparcets.io.locks import LOCK, locked

ATTEMPTS = 4
WAIT = 1.0  # seconds before the second attempt, doubled each time
TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 18
PART = ".sparcets-part"  # at the end of the name of an unfinished download

# HTTP status codes worth retrying; every other 4xx is final.
_RETRIED = {408, 425, 429, 500, 502, 503, 504}


# The data set that can be fetched: where its authors publish it, and the digest of its recordings.
MOTIONSENSE = "motionsense"
URL = "https://github.com/mmalekzadeh/motion-sense/raw/master/data/A_DeviceMotion_data.zip"
DIGEST = "630368b746c855666a286ac24faf75d9d18206ec57f06c4647b6756b5be8ab48"


def fetch(
    name: str,
    *,
    url: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int | None], None] | None = None,
) -> Path:
    """Download a data set into ``folder/name`` and return the file; nothing is downloaded if it is already present.

    Two calls at once download it once: the second waits for the first.

    Parameters
    ----------
    name
        Name of the data set: ``motionsense``.
    url
        Alternative URL of the same file.
    folder
        Folder of the data sets, by default the one named by ``SPARCETS_DATA`` or the user's cache.
    progress
        Called as ``progress(done, total)`` in bytes; the total is None if the server does not report it.

    Examples
    --------
    >>> fetch("motionsense")  # doctest: +SKIP
    PosixPath('/home/ada/.cache/sparcets/motionsense/A_DeviceMotion_data.zip')
    """
    if name == "ui_prmd":
        raise DownloadError(f"ui_prmd cannot be fetched. {HOW_TO_GET}.")
    if name != MOTIONSENSE and (name in DATASETS or name in UEA_NAMES):
        raise DownloadError(f"there is nothing to fetch for {name}: load_dataset({name!r}) loads it directly.")
    if name != MOTIONSENSE:
        raise unknown_name("data set", name, [*DATASETS, *UEA_NAMES])
    final = (data_folder() if folder is None else Path(folder).expanduser()) / name / ARCHIVE
    if final.is_file() and _digest(final) == DIGEST:
        return final
    with writing(final):
        final.parent.mkdir(parents=True, exist_ok=True)
    with locked(final.with_name(f".{final.name}{LOCK}"), what=str(final)):
        if not (final.is_file() and _digest(final) == DIGEST):  # another process may have fetched it meanwhile
            _fetch(URL if url is None else url, final, progress)
    return final


def _fetch(address: str, final: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Download the file, check its content and give it its final name."""
    part = final.with_name(f".{final.name}{PART}")
    if os.path.lexists(final):
        raise StorageError(
            f"{final} is there already, but is not {final.parent.name} as published: its content has another digest. "
            "Move it to another place, and fetch again."
        )
    if os.path.lexists(part) and not is_plain_file(part):
        raise StorageError(f"{part} is in the way: it is no file. Move it to another place.")
    _download(address, part, progress, final)
    found = _digest(part)
    if found != DIGEST:
        with writing(part):
            part.unlink()
        raise DownloadError(
            f"the file from {address} is not {final.parent.name} as published: its content has the digest {found}, "
            f"expected {DIGEST}. It was removed; try again, or download it manually to {final}."
        )
    with writing(final):
        part.replace(final)


def _digest(file: Path) -> str:
    try:
        return content_digest(file)
    except FileFormatError:
        return "none (not a complete archive)"


class _ConnectionLostError(Exception):
    """The connection failed during a download; not an OSError, to distinguish it from errors of the disk."""


def _download(url: str, part: Path, progress: Callable[[int, int | None], None] | None, final: Path) -> None:
    """Download into ``part``, resuming from its current size, in several attempts."""
    reason: object = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        try:
            return _receive(url, part, progress)
        except StorageError:
            raise
        except HTTPError as error:
            error.close()
            reason = f"HTTP {error.code} {error.reason}"
            if error.code == 416:
                # The part is as long as the file (a finished download) or longer (a wrong one).
                if error.headers.get("Content-Range") == f"bytes */{_size(part)}":
                    return None
                with writing(part):
                    part.unlink(missing_ok=True)
            elif error.code not in _RETRIED:
                break
        except URLError as error:
            reason = getattr(error.reason, "strerror", None) or error.reason
        except (OSError, HTTPException, _ConnectionLostError) as error:
            reason = str(error) or type(error).__name__
        except ValueError as error:  # not a valid URL
            reason = error
            break
    raise DownloadError(
        f"cannot fetch {url}: {reason}. Check the network and the address and try again, or download it manually to "
        f"{final}."
    )


def _receive(url: str, part: Path, progress: Callable[[int, int | None], None] | None) -> None:
    """Request the missing bytes of ``part`` and append them; a server without range support sends the whole file."""
    received = _size(part)
    headers = {"User-Agent": "sparcets", **({"Range": f"bytes={received}-"} if received else {})}
    with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as response:
        resumed = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {received}-")
        done = received if resumed else 0
        length = response.headers.get("Content-Length") or ""
        total = done + int(length) if length.isdigit() else None
        with writing(part), part.open("ab" if resumed else "wb") as file:
            while chunk := _read(response):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
    if total is not None and done != total:
        raise _ConnectionLostError(f"the connection was lost after {done} of {total} bytes")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except (OSError, HTTPException) as error:
        raise _ConnectionLostError(f"the connection was lost ({str(error) or type(error).__name__})") from error


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
