"""Importing sparcets, asking for help and listing what there is load nothing heavy."""

import importlib
import subprocess
import sys

import pytest

import sparcets

HEAVY = ("torch", "matplotlib", "pandas", "sklearn", "aeon", "plotly", "scipy")


@pytest.mark.parametrize(
    "code",
    [
        "import sparcets",
        "import sparcets; dir(sparcets); sparcets.SparcetsError",
        "import sparcets; sparcets.Dataset, sparcets.Constraints, sparcets.Explanation",
        "import sparcets; sparcets.ExplainerConfig, sparcets.SparceConfig.paper(target=1)",
        "from sparcets.__main__ import main; main(['--help'])",
        "from sparcets.__main__ import main; main(['list', '--json'])",
        "from sparcets.__main__ import main; main(['data', 'list'])",
    ],
)
def test_nothing_heavy_is_loaded(code):
    probe = f"import sys\n{code}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[-2] == ""


def test_public_names_are_all_there_and_no_others():
    assert "Explainer" in sparcets.__all__
    for name, module in sparcets._WHERE.items():
        assert getattr(sparcets, name) is getattr(importlib.import_module(module), name)
    assert dir(sparcets) == sorted(sparcets.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Sparcee'"):
        sparcets.Sparcee  # noqa: B018
