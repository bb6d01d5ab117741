"""Draw the figures of the paper from the stored answers: ``python docs/paper_figures.py [EXPLANATIONS]``.

With a folder of explanations, as ``sparcets reproduce`` leaves it, their first answers are stored before.
"""

import sys
from pathlib import Path

from sparcets.io.explanations import load_explanation
from sparcets_paper.reproduce.figures import FOLDER, draw_figures, save_compact
from sparcets_paper.reproduce.page import folder_rows, read_run

RESULTS = Path(__file__).parent.parent / "results" / "reproduction"
STORED = 100  # answers of each run


def pack(explanations: Path) -> None:
    """Store the first answers of every run that has a row."""
    for key in (row["key"] for row in folder_rows(RESULTS)):
        path = explanations / f"{key}.npz"
        if path.exists():
            e = load_explanation(path)
            save_compact(e[e.status != "unchanged"][:STORED], RESULTS / FOLDER / f"{key}.npz")


if __name__ == "__main__":
    if sys.argv[1:]:
        pack(Path(sys.argv[1]))
    drawn, left_out = draw_figures(RESULTS, folder_rows(RESULTS), read_run(RESULTS)["datasets"])
    print(*drawn, *(f"{stem} is left out: {why}" for stem, why in left_out.items()), sep="\n")
