"""axe, which finds what keeps people from reading a page, in the browser of the tests."""

import hashlib
import io
import os
import tarfile
import urllib.request
from functools import cache
from pathlib import Path

import pytest

ADDRESS = "https://registry.npmjs.org/axe-core/-/axe-core-4.14.0.tgz"
SHA256 = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af"
SERIOUS = ("serious", "critical")


@cache
def source():
    """Return the code of axe: the file that AXE names, else a download; the test is skipped if there is neither."""
    if "AXE" in os.environ:
        return Path(os.environ["AXE"]).read_text(encoding="utf-8")
    try:
        with urllib.request.urlopen(ADDRESS, timeout=20) as response:
            content = response.read()
    except OSError as error:
        pytest.skip(f"axe cannot be downloaded ({error}); AXE=/path/to/axe.min.js names a copy")
    assert hashlib.sha256(content).hexdigest() == SHA256
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        file = archive.extractfile("package/axe.min.js")
        return file.read().decode()


def serious_findings(page, scheme):
    """Return what axe finds on an open page, light or dark, a line for each element; only what is serious."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_timeout(300)  # colours fade
    page.evaluate(source())
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        f"{finding['id']}: {node['html'][:200]} ({'; '.join(check['message'] for check in node['any'][:1])})"
        for finding in found
        if finding["impact"] in SERIOUS
        for node in finding["nodes"]
    ]
