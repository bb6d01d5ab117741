"""Tables with unequal lengths and with empty cells, from the command line: from a table to a report."""

from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.testing.data import make_series


def write_table(path: Path, n_series: int, lengths: np.ndarray) -> None:
    X, y = make_series(n_series)
    names = ["calm", "brisk", "wild"]
    with path.open("w") as file:
        file.write("series,time,label,left,right,top,idle\n")
        for i, n in enumerate(lengths):
            for t in range(n):
                file.write(",".join(str(v) for v in (f"s{i}", t, names[y[i]], *X[i, t].tolist())) + "\n")


def test_a_ragged_table_is_fitted_explained_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(Path("own.csv"), 90, 14 + np.arange(90) % 7)
    assert main(["fit", "-d", "own.csv", "--out", "model", "-m", "nearest", "-c", "fcn", "--preset", "tiny"]) == 0
    assert main(["explain", "model", "-t", "brisk", "--out", "run.npz", "--plots", "pictures"]) == 0
    e = sp.load_explanation("run.npz")
    assert e.info.unequal and e.lengths is not None and len(set(e.lengths.tolist())) > 3
    assert e.valid.any() and not e.changed[np.arange(20) >= e.lengths[:, None]].any()
    assert main(["report", "run.npz", "--out", "report.html"]) == 0
    assert "up to 20 steps" in Path("report.html").read_text(encoding="utf-8")

    write_table(Path("short.csv"), 30, np.full(30, 15))  # of one length, shorter than the longest of the fit
    assert main(["explain", "model", "-d", "short.csv", "-t", "brisk", "--out", "short.npz"]) == 0
    assert (sp.load_explanation("short.npz").lengths == 15).all()


def test_a_table_with_empty_cells_is_fitted_explained_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = make_series(90)
    gaps = np.random.default_rng(0).random(X.shape) < 0.1
    rows = [
        ",".join(
            [f"s{i}", str(t), "cbw"[y[i]], *("" if g else f"{v:.4f}" for v, g in zip(X[i, t], gaps[i, t], strict=True))]
        )
        for i in range(90)
        for t in range(20)
    ]
    Path("own.csv").write_text("\n".join(["series,time,label,left,right,top,idle", *rows]) + "\n")
    fit = ["fit", "-d", "own.csv", "--out", "model", "-m", "nearest", "-c", "fcn", "--preset", "tiny"]
    assert main(fit) == 2
    assert "missing='forward'" in capsys.readouterr().err
    assert main([*fit, "--missing", "forward"]) == 0
    assert f"{gaps.sum()} values missing" in capsys.readouterr().out
    assert main(["explain", "model", "-t", "b", "--out", "run.npz", "--plots", "pictures"]) == 0
    e = sp.load_explanation("run.npz")
    assert e.missing is not None and e.valid.any() and np.array_equal(np.isnan(e.counterfactual), e.missing)
    assert main(["report", "run.npz", "--out", "report.html"]) == 0
