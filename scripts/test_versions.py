"""Run the tests with other versions than those of ``constraints.txt``.

    python scripts/test_versions.py minimum                        # the lowest versions that pyproject.toml allows
    python scripts/test_versions.py newest --python python3.14     # the newest ones, with another Python
    python scripts/test_versions.py minimum -- tests/cli -x        # arguments for pytest

The virtual environment is made in ``--folder`` and used again by the next call. Tests of CUDA are left out. Most
versions of PyTorch are downloads of several gigabytes; ``--torch 2.13.0`` holds it at one that is at hand. The script
itself needs Python 3.11. Its last lines are the versions, and how many tests passed and failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("all", "onnx", "dev")
LOWEST = re.compile(r"([A-Za-z0-9_.-]+)\s*>=\s*([0-9][0-9A-Za-z.]*)")

VERSIONS = """
import platform, sys
from importlib.metadata import distributions
found = {one.name.lower().replace("_", "-"): one.version for one in distributions()}
names = [name for name in sys.argv[1:] if name in found]  # some are for other versions of Python
print(f"Python {platform.python_version()}", *(f"{name} {found[name]}" for name in names), sep=", ")
"""


def lowest_versions() -> dict[str, str]:
    """Return the lowest version of every package that pyproject.toml names, except those of extras left out here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras, needed, names = project["optional-dependencies"], list(project["dependencies"]), list(EXTRAS)
    while names:
        for requirement in extras[names.pop()]:
            own = re.fullmatch(rf"{project['name']}\[(.*)\]", requirement)
            if own:
                names += own[1].split(",")
            else:
                needed.append(requirement)
    found = [LOWEST.fullmatch(requirement.partition(";")[0].strip()) for requirement in needed]
    assert all(found), f"every requirement needs a lowest version: {needed}"
    return {match[1]: match[2] for match in found if match}


def main() -> int:
    """Make the environment, and run pytest in it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", choices=("minimum", "newest"))
    parser.add_argument("--python", default=sys.executable, help="the Python to test with (default: this one)")
    parser.add_argument("--torch", help="version of PyTorch, instead of the lowest or newest")
    parser.add_argument("--folder", type=Path, help="where the environment lies (default: .venv-VERSIONS)")
    given = sys.argv[1:]
    end = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:end])
    folder = options.folder or ROOT / f".venv-{options.versions}"
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"

    pinned = lowest_versions() if options.versions == "minimum" else {}
    if options.torch:
        pinned["torch"] = options.torch
    if not python.exists():
        subprocess.run([options.python, "-m", "venv", folder], check=True)
    constraints = folder / "versions.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pinned.items())))
    install = ["-m", "pip", "install", "--disable-pip-version-check", "--upgrade", "-c", constraints]
    subprocess.run([python, *install, "-e", f"{ROOT}[{','.join(EXTRAS)}]"], check=True)
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    # Old versions use what new ones of their own dependencies deprecate.
    deprecated = [part for kind in ("", "Pending") for part in ("-W", f"ignore::{kind}DeprecationWarning")]
    tests = [python, "-m", "pytest", "-m", "not gpu", f"--junitxml={results}", *deprecated, *given[end + 1 :]]
    code = subprocess.run(tests, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode
    print(f"\n{options.versions} versions: {installed_versions(python)}\n{summary(results)}")
    return code


def installed_versions(python: Path) -> str:
    """Return the versions of Python and of the packages that pyproject.toml names."""
    names = ["sparcets", *lowest_versions()]
    return subprocess.run([python, "-c", VERSIONS, *names], capture_output=True, text=True, check=True).stdout.strip()


def summary(results: Path) -> str:
    """Return the counts of a run of pytest, and the tests that failed."""
    if not results.exists():
        return "no results: pytest ended before its tests did"
    suite = ElementTree.parse(results).getroot().find("testsuite")
    assert suite is not None
    n = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    passed = n["tests"] - n["failures"] - n["errors"] - n["skipped"]
    failed = [
        f"  {case.get('classname')}::{case.get('name')}"
        for case in suite.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    counts = f"{passed} passed, {n['failures']} failed, {n['errors']} errors, {n['skipped']} skipped"
    return "\n".join([f"{counts} in {float(suite.get('time', 0)) / 60:.0f} min", *failed])


if __name__ == "__main__":
    sys.exit(main())
