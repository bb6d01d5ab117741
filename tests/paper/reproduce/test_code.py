"""The digest of the code: it changes with what decides a number, and with nothing else."""

from pathlib import Path

import pytest

from sparcets_paper.reproduce.provenance import ROOT, deciding_files, deciding_text, digest_of_files

SOURCE = '''"""About λ."""

import math  # for pi


def area(r):
    """Return the area, π r²."""
    # A comment.
    text = "# no comment"
    return math.pi * r**2, text
'''
PLAIN = 'import math\n\ndef area(r):\n    text = "# no comment"\n    return math.pi * r**2, text\n'


def test_comments_docstrings_and_blank_lines_do_not_count() -> None:
    assert deciding_text(SOURCE) == deciding_text(PLAIN) == PLAIN.replace("\n\n", "\n")
    assert deciding_text(SOURCE.replace("r**2", "r**3")) != deciding_text(SOURCE)
    assert deciding_text(SOURCE.replace("# no", "# a")) != deciding_text(SOURCE)


@pytest.mark.parametrize(
    "part", ["methods/sparce", "training/losses", "training/generator", "data/moving_box", "evaluation/saliency"]
)
def test_methods_training_networks_data_and_measures_decide(part: str, tmp_path: Path) -> None:
    file = ROOT / f"sparcets/{part}.py"
    assert file in deciding_files()
    copy = tmp_path / f"sparcets/{part}.py"
    copy.parent.mkdir(parents=True)
    found = []
    for added in ("", "# nothing\n", "X = 1\n"):
        copy.write_text(file.read_text(encoding="utf-8") + added, encoding="utf-8")
        found.append(digest_of_files(tmp_path, [copy]))
    assert found[0] == digest_of_files(ROOT, [file]) == found[1] != found[2]


def test_tables_pages_plots_and_our_own_method_do_not_decide() -> None:
    names = {file.relative_to(ROOT).as_posix() for file in deciding_files()}
    assert all((ROOT / name).is_file() for name in names)
    shown = (
        "sparcets/show/",
        "sparcets/cli/",
        "sparcets/studio/",
        "sparcets/methods/own/",
        "sparcets_paper/reproduce/",
    )
    assert not [name for name in names if name.startswith(shown)]
