"""The method without each of its parts, on two data sets, stored in ``results/flagship/ablation.jsonl``.

    python benchmarks/ablation.py WORK_FOLDER

Families are taken away by the settings. The search and the selector are taken away from a fitted explainer: without the
search, real series answer; without the selector, the sparsest candidate that the explained classifier accepts does.
"""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from sparcets.core.settings import ExplainerConfig
from sparcets.methods.own.ensemble import Selector
from sparcets.methods.own.explainer import Explainer
from sparcets.methods.own.model import FittedModel
from sparcets_paper.benchmark.cell import RunContext, run_cell
from sparcets_paper.benchmark.plan import Cell
from sparcets_paper.benchmark.store import ResultStore

RESULTS = Path(__file__).parents[1] / "results" / "flagship" / "ablation.jsonl"
DATA = (("catching", "Control"), ("basic_motions", None))
QUERIES = 40
FAMILIES = {"neural": "networks", "intervals": "interval statistics"}  # names in the table


def without_search(model: FittedModel) -> FittedModel:
    return replace(model, searches=False)


def without_selector(model: FittedModel) -> FittedModel:
    return replace(model, ensemble=replace(model.ensemble, selector=Selector(networks=(), judges=())))


def variants() -> dict[str, tuple[tuple[str, ...], Callable[[FittedModel], FittedModel] | None]]:
    """Return settings and what is taken away from the fitted model, by the name of the variant."""
    found: dict[str, tuple[tuple[str, ...], Callable[[FittedModel], FittedModel] | None]] = {
        "default, the same queries": ((), None)
    }
    families = ExplainerConfig().families
    for name in families:
        rest = ",".join(f'"{other}"' for other in families if other != name)
        found[f"without {FAMILIES.get(name, name)}"] = ((f"families=[{rest}]",), None)
    found["without the search (real series)"] = ((), without_search)
    found["without the selector"] = ((), without_selector)
    found["the model alone (no families, no selector)"] = (("believed_by=model",), None)
    return found


@contextmanager
def fitted_as(change: Callable[[FittedModel], FittedModel] | None):
    """Explain with the fitted model as changed; what is fitted and stored is not."""
    if change is None:
        yield
        return
    plain = Explainer._explain

    def explain(self, request):
        fitted = self._model
        self._model = change(fitted)
        try:
            return replace(plain(self, request), families=(), support=None)  # the whole selector is asked afterwards
        finally:
            self._model = fitted

    with mock.patch.object(Explainer, "_explain", explain):
        yield


def main() -> None:
    context, store = RunContext(Path(sys.argv[1])), ResultStore(RESULTS)
    for dataset, target in DATA:
        for label, (settings, change) in variants().items():
            cell = Cell(dataset=dataset, target=target, settings=settings, label=label, queries=QUERIES)
            with fitted_as(change):
                row = run_cell(cell, context)
            if change is not None:
                row["key"] = f"{cell.key}-{change.__name__}"  # the cell itself is the default
            store.append(row)
            print(dataset, label, row.get("measures", row), flush=True)


if __name__ == "__main__":
    main()
