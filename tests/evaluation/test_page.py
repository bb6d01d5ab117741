"""docs/evaluation.md names every measure, with its direction, and its code runs."""

import re
from pathlib import Path

import numpy as np

import sparcets as sp
from sparcets.evaluation.evaluate import EXPLANATION_MEASURES
from sparcets.evaluation.families import FAMILIES
from sparcets.evaluation.judges import JUDGES
from sparcets.evaluation.scores import HIGHER, SHAPE, TRUTH, better

PAGE = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
ARROWS = {"higher": "↑", "lower": "↓", "": ""}


def test_every_measure_has_its_line_and_direction():
    table = {}
    for names, arrow in re.findall(r"^\| (`.*?`) \| (.?) ?\|", PAGE, flags=re.M):
        table.update(dict.fromkeys(re.findall(r"`([\w<>]+)`", names), arrow.strip()))
    for name in {*EXPLANATION_MEASURES, *SHAPE, *TRUTH, *HIGHER, "universality", "seconds", "transfer_<judge>"}:
        assert table.get(name) == ARROWS[better(name)], name
    for judge in (*JUDGES, *FAMILIES, "transfer_unseen"):
        assert f"`{judge}`" in PAGE
    box = sp.load_dataset("moving_box", kinds="Middle", processes="Gaussian", n_per_combination=20)
    model = sp.wrap(lambda X: np.eye(2)[(X.mean((1, 2)) > 0).astype(int)])
    e = sp.Nearest(model).fit(box).explain(box.X_test, target=1, n=2)
    for name in sp.evaluate(e, box, judges={"mine": model}).summary:
        base = name.removesuffix("_all").replace("transfer_mine", "transfer_<judge>")
        assert f"`{base}`" in PAGE, name
