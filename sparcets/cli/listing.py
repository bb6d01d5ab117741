"""``sparcets list``: what there is."""

from __future__ import annotations

from sparcets.cli.options import Json, print_json, print_table


def list_all(json: Json = False) -> None:
    """List methods, data sets and classifier architectures."""
    # The registries are data: listing them imports neither torch nor a data set.
    from sparcets.datasets.load import DATASETS
    from sparcets.explainers import EXPLAINERS
    from sparcets.networks import ARCHITECTURES

    kinds = {"explainers": EXPLAINERS, "datasets": DATASETS, "classifiers": ARCHITECTURES}
    if json:
        print_json(
            {kind: {name: registry.about.get(name, "") for name in registry} for kind, registry in kinds.items()}
        )
        return
    rows = [
        (kind.rstrip("s"), name, registry.about.get(name) or f"from {registry.location(name)}")
        for kind, registry in kinds.items()
        for name in registry
    ]
    print_table(["kind", "name", "what it is"], rows)
