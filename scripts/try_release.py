"""Install the wheel of ``dist/`` into an empty environment, as a user does, and run the README's example there.

    make release && python scripts/try_release.py       # a few minutes, most of them PyTorch's download

Then every extra is resolved, without installing it. Versions are those of ``constraints.txt``, so that what is tried
is what was tested. The checkout itself is never imported: everything runs in a temporary folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def example() -> str:
    """Return the first block of Python code in the README."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)[:1]
    return code


def extras(wheel: Path) -> list[str]:
    """Return the extras that the metadata of a wheel names."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return re.findall(r"^Provides-Extra: (\S+)", archive.read(name).decode(), flags=re.M)


def main() -> int:
    """Try the wheel; return 1 if something does not work."""
    wheels = sorted((ROOT / "dist").glob("sparcets-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"dist/ has {len(wheels)} wheels, expected one: run make release first.")
    (wheel,) = wheels
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()

        def run(*command: str | Path) -> None:
            subprocess.run([str(part) for part in command], cwd=folder, env=environment, check=True)

        venv.create(Path(folder, "env"), with_pip=True)
        python = Path(folder, "env", "Scripts" if os.name == "nt" else "bin", "python")
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-c", ROOT / "constraints.txt")
        run(*pip, f"{wheel}[plots]")
        print(f"installed {wheel.name} in {time.monotonic() - started:.0f} s", flush=True)
        Path(folder, "example.py").write_text(example(), encoding="utf-8")
        run(python, "example.py")
        assert Path(folder, "answer.png").stat().st_size > 10_000
        assert Path(folder, "run.npz").exists()
        run(python, "-m", "sparcets", "--version")
        run(python, "-m", "sparcets", "report", "run.npz", "--out", "report.html")
        failed = []
        for extra in extras(wheel):
            try:
                run(*pip, "--dry-run", f"{wheel}[{extra}]")
                print(f"[{extra}] resolves", flush=True)
            except subprocess.CalledProcessError:
                failed.append(extra)
        if failed:
            print(f"extras that do not resolve: {', '.join(failed)}")
        return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
