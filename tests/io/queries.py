"""Files of series in the forms that are read, and a fitted explainer, for the tests of engines."""

import numpy as np

import sparcets as sp
from sparcets.testing.data import make_series

NAMES = ("f0", "f1", "f2", "f3")
STEPS = 12


def lists(X, ids):
    """Return a table with a row per series and a list per feature."""
    import pyarrow as pa

    return pa.table({"id": list(ids), **{name: list(X[:, :, i]) for i, name in enumerate(NAMES)}})


def long(X, ids):
    """Return a table with a row per series and step."""
    import pyarrow as pa

    n, steps, _ = X.shape
    values = {name: X[:, :, i].ravel() for i, name in enumerate(NAMES)}
    return pa.table({"id": np.repeat(ids, steps).tolist(), "time": np.tile(np.arange(steps), n), **values})


def nested(X, ids):
    """Return a table with a row per series and one list of steps."""
    import pyarrow as pa

    return pa.table({"id": list(ids), "values": pa.array(X.tolist(), pa.list_(pa.list_(pa.float32())))})


def write(table, path, rows=100):
    """Write a table as Parquet or Arrow, in groups of rows."""
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
    else:
        feather.write_feather(table, str(path), chunksize=rows)


def fit(folder, method=sp.Nearest, **config):
    """Fit an explainer, save it with its classifier, and return it with the series."""
    X, y = make_series(200, n_steps=STEPS)
    data = sp.Dataset.from_arrays(X, y)
    model = sp.TorchClassifier("bilstm", sp.ClassifierConfig.tiny()).fit(data, progress=False)
    explainer = method(model, method.config_class.tiny().override(*(f"{k}={v}" for k, v in config.items())))
    explainer.fit(data, progress=False)
    model.save(folder / "classifier")
    explainer.save(folder / "explainer")
    return explainer, X


def read(folder):
    """Return all rows of a folder of answers, in the order of the files."""
    import pyarrow.parquet as pq

    return [row for file in parts(folder) for row in pq.read_table(folder / file, partitioning=None).to_pylist()]


def parts(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))


def content(folder):
    return {name: (folder / name).read_bytes() for name in parts(folder)}


def series(row, column="counterfactual"):
    """Return the series of a row (time, features)."""
    return np.stack([row[column][name] for name in NAMES], axis=1)
