"""Missing values from the command line: from a table with empty cells to a report."""

from pathlib import Path

import numpy as np
import pytest

import sparcets as sp
from sparcets.__main__ import main
from sparcets.testing.data import make_series


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
