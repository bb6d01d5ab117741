"""What is released: one version, the right files, and the same commands everywhere."""

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import sparcets

ROOT = Path(__file__).parents[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_there_is_one_version():
    assert f"\nversion: {sparcets.__version__}\n" in read("CITATION.cff")
    (date,) = re.findall(r'^date-released: "(.*)"$', read("CITATION.cff"), flags=re.M)
    assert f"\n## [{sparcets.__version__}] - {date}\n" in read("CHANGELOG.md")
    assert 'dynamic = ["version"]' in read("pyproject.toml"), "the version is that of sparcets/__init__.py"


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Return the names of the files in the wheel, and in the source archive."""
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling; `make release` builds both as well")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    assert wheel.name == f"sparcets-{sparcets.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2**21 and source.stat().st_size < 2**23
    with zipfile.ZipFile(wheel) as zipped, tarfile.open(source) as tarred:
        return set(zipped.namelist()), {name.partition("/")[2] for name in tarred.getnames()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not in a source archive")
def test_the_wheel_holds_the_package_and_nothing_else(archives):
    wheel, _ = archives
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "sparcets", "sparcets_paper"]
    ours = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    about = {name for name in wheel if name.startswith(f"sparcets-{sparcets.__version__}.dist-info/")}
    assert {Path(name).name for name in about} == {"METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt"}
    assert wheel - about == set(ours.stdout.split()), "the wheel has the files of the package, and no others"
    assert {Path(name).suffix for name in wheel - about} == {".json", ".py", ".typed", ".css", ".js", ".html", ".svg"}
    for name in ("py.typed", "show/templates/report.js", "studio/static/index.html", "studio/static/js/main.js"):
        assert f"sparcets/{name}" in wheel


def test_the_source_archive_can_be_tested_and_documented(archives):
    _, source = archives
    names = "README.md CHANGELOG.md SECURITY.md LICENSE CITATION.cff Makefile constraints.txt mkdocs.yml".split()
    assert {*names, "pyproject.toml", "tests/test_release.py", "docs/start.md", "docs/site/hooks.py"} <= source
    data = (".npz", ".npy", ".safetensors", ".pyc")
    assert not [name for name in source if name.endswith(data) or "/reproduction/" in name]
