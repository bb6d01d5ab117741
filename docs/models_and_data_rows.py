"""The rows of docs/models-and-data.md, one cell each: `# %% group | what | needs package`.

Lines above `# ---` prepare what a user has already; those below are shown. Every cell runs by itself, after the first
one, and leaves the answers in `e`. docs/models_and_data.py runs them.
"""

# %% setup
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

import sparcets as sp

FAST = sp.ExplainerConfig(families=("intervals",))  # a second or two; for real use, leave it out


def series(n=60, steps=30, features=3, seed=0):
    """Return series of two classes; in class 1, the first feature is raised in the middle third of the time."""
    y = np.arange(n) % 2
    X = np.random.default_rng(seed).normal(size=(n, steps, features)).astype("float32")
    X[y == 1, steps // 3 : max(2 * steps // 3, 1), 0] += 2
    return X, y


class Mean(nn.Module):
    """A model that takes series of any size: logits of two classes, by the mean of the first feature."""

    def forward(self, x):
        m = 9 * (x[:, :, 0].mean(1) - 0.33)
        return torch.stack([-m, m], 1)


def long_frame(lengths):
    """Return series of these lengths as a frame, a row per series and step."""
    rows = [
        {"series": f"s{i}", "time": t / 50, "label": ["ill", "well"][y[i]], "acc": X[i, t, 0], "gyro": X[i, t, 1]}
        for i, n in enumerate(lengths)
        for t in range(n)
    ]
    return pd.DataFrame(rows)


X, y = series()
flat = X.reshape(len(X), -1)
clf = sp.wrap(Mean(), n_classes=2)

# %% Series | a list of arrays of unequal length
many = [x[: 20 + i % 11] for i, x in enumerate(X)]
# ---
ex = sp.Explainer(clf, FAST).fit(many, y)
e = ex.explain(many[:6])

# %% Series | padded arrays, with their lengths
lengths = 20 + np.arange(60) % 11
# ---
ex = sp.Explainer(clf, FAST).fit(X, y, lengths=lengths)
e = ex.explain(X[:6], lengths=lengths[:6])

# %% Series | unequal lengths in a .csv file
long_frame(20 + np.arange(60) % 11).to_csv("ragged.csv", index=False)
# ---
ds = sp.load_dataset("ragged.csv")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Series | unequal lengths in a .parquet file | pyarrow
long_frame(20 + np.arange(60) % 11).to_parquet("ragged.parquet")
# ---
ds = sp.load_dataset("ragged.parquet")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Series | unequal lengths in a .ts file | aeon
lines = ["@problemName ragged", "@timeStamps false", "@univariate false", "@dimensions 3", "@equalLength false"]
lines += ["@classLabel true ill well", "@data"]
for i, x in enumerate(X):
    channels = [",".join(map(str, channel[: 20 + i % 11])) for channel in x.T]
    lines.append(":".join([*channels, ["ill", "well"][y[i]]]))
Path("ragged.ts").write_text("\n".join(lines))
# ---
ds = sp.load_dataset("ragged.ts")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Series | missing values, kept: the model takes NaN
from sklearn.ensemble import HistGradientBoostingClassifier

X[::3, 5, 1] = np.nan
model = HistGradientBoostingClassifier(max_iter=20).fit(X.reshape(60, -1), y)
# ---
clf = sp.wrap(model, layout="flat", missing="keep")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | missing values: the last one before, carried forward
X[::3, 5, 1] = np.nan
# ---
clf = sp.wrap(Mean(), n_classes=2, missing="forward")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | missing values: the mean of the feature in that series
X[::3, 5:9, 0] = np.nan
# ---
clf = sp.wrap(Mean(), n_classes=2, missing="mean")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | missing values: a function of your own
X[::3, 5, 1] = np.nan
# ---
clf = sp.wrap(Mean(), n_classes=2, missing=lambda x: np.nan_to_num(x, nan=0.0))
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | 1 step: tabular data
X, y = series(steps=1)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | 5 steps
X, y = series(steps=5)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | 3,000 steps of 8 features
X, y = series(n=20, steps=3000, features=8)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:1])

# %% Series | 1 feature
X, y = series(features=1)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | 500 features
X, y = series(features=500)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | a class with one series
rows = np.flatnonzero((y == 0) | (np.arange(60) == 1))
# ---
e = sp.Explainer(clf, FAST).fit(X[rows], y[rows]).explain(X[rows[:6]], target=1)

# %% Series | 200 series of one class, 3 of the other
X, y = series(n=400)
rows = np.sort(np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]])
# ---
e = sp.Explainer(clf, FAST).fit(X[rows], y[rows]).explain(X[rows[6:12]], target=1)

# %% Series | a constant channel
X[:, :, 2] = 7.0
# ---
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Series | a channel of 0 and 1, which stays one
X[:, :, 0] = X[:, :, 0] > 1
# ---
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])
assert np.isin(e.counterfactual[:, :, 0], [0, 1]).all()

# %% Series | a channel of whole numbers
X[:, :, 0] = np.round(X[:, :, 0])
# ---
whole = sp.Constraints(integer=["f0"])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=whole)
assert (e.counterfactual[:, :, 0] % 1 == 0).all()

# %% Series | float64: UTM coordinates in metres
origin = np.array([500_000.0, 5_300_000.0, 0.0])


def model(x):
    return Mean()(torch.from_numpy(x - origin)).softmax(1).numpy()


# ---
X = X.astype("float64") + origin
e = sp.Explainer(sp.wrap(model), FAST).fit(X, y).explain(X[:6])
assert e.counterfactual.dtype == "float64"

# %% Doors | arrays, split into training and test
ds = sp.Dataset.from_arrays(X, y, feature_names=["acc", "gyro", "load"], units=["m/s²", "rad/s", "N"])
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a frame, long: a row per series and step
df = long_frame([30] * 60).rename(columns={"series": "id", "time": "t", "label": "y"})
# ---
ds = sp.Dataset.from_frame(df, series="id", time="t", label="y")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a frame, tidy: a row per series, step and feature
df = long_frame([30] * 60).melt(["series", "time", "label"], var_name="feature")
# ---
ds = sp.Dataset.from_frame(df)
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a frame, wide: a row per series
df = pd.DataFrame(flat, columns=[f"f{i % 3}_{i // 3}" for i in range(90)]).assign(label=y)
# ---
ds = sp.Dataset.from_frame(df)
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a frame with series and time as its index
df = long_frame([30] * 60).set_index(["series", "time"])
# ---
ds = sp.Dataset.from_frame(df)
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a .csv file with semicolons and decimal commas
long_frame([30] * 60).to_csv("mine.csv", index=False, sep=";", decimal=",")
# ---
ds = sp.load_dataset("mine.csv")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a .parquet file | pyarrow
long_frame([30] * 60).to_parquet("mine.parquet")
# ---
ds = sp.load_dataset("mine.parquet")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | a .npz file
np.savez("mine.npz", X=X, y=y)
# ---
ds = sp.load_dataset("mine.npz")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Doors | times in seconds give the sampling rate
df = long_frame([30] * 60)
# ---
ds = sp.Dataset.from_frame(df, time="time")
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)
assert ds.sampling_rate == 50

# %% Doors | names of recordings and people, kept with the answers
names, people = [f"trial {i}" for i in range(60)], [f"P{i % 10}" for i in range(60)]
# ---
ds = sp.Dataset.from_arrays(X, y, ids=names, subjects=people)
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)
assert set(e.to_frame()["id"]) <= set(names)

# %% Models | a PyTorch module that returns logits
e = sp.Explainer(sp.wrap(Mean(), n_classes=2), FAST).fit(X, y).explain(X[:6])

# %% Models | a module that returns probabilities
model = nn.Sequential(Mean(), nn.Softmax(1))
# ---
clf = sp.wrap(model, n_classes=2, output="probabilities")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])


# %% Models | a module with one sigmoid
class One(nn.Module):
    def forward(self, x):
        return torch.sigmoid(9 * (x[:, :, :1].mean(1) - 0.33))


# ---
clf = sp.wrap(One(), n_classes=2, output="sigmoid")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])


# %% Models | a module that takes (batch, features, time)
class Turned(nn.Module):
    def forward(self, x):
        return Mean()(x.transpose(1, 2))


# ---
clf = sp.wrap(Turned(), n_classes=2, layout="bft")
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Models | one of ours, trained here
ds = sp.Dataset.from_arrays(X, y)
clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(ds)
e = sp.Explainer(clf, FAST).fit(ds).explain(ds)

# %% Models | a pipeline of scikit-learn on flat series
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# ---
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(flat, y)
e = sp.Explainer(sp.wrap(model, layout="flat"), FAST).fit(X, y).explain(X[:6])

# %% Models | a random forest
from sklearn.ensemble import RandomForestClassifier

# ---
model = RandomForestClassifier(30, random_state=0).fit(flat, y)
e = sp.Explainer(sp.wrap(model, layout="flat"), FAST).fit(X, y).explain(X[:6])

# %% Models | a support vector machine, without probabilities
from sklearn.svm import SVC

# ---
model = SVC().fit(flat, y)
e = sp.Explainer(sp.wrap(model, layout="flat"), FAST).fit(X, y).explain(X[:6])

# %% Models | a ridge classifier, which has none either
from sklearn.linear_model import RidgeClassifier

# ---
model = RidgeClassifier().fit(flat, y)
e = sp.Explainer(sp.wrap(model, layout="flat"), FAST).fit(X, y).explain(X[:6])

# %% Models | aeon: MiniRocket | aeon
from aeon.classification.convolution_based import MiniRocketClassifier

model = MiniRocketClassifier(n_kernels=168, random_state=0).fit(X.transpose(0, 2, 1), y)
# ---
e = sp.Explainer(sp.wrap(model), FAST).fit(X, y).explain(X[:6])

# %% Models | Keras | keras
import keras

model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(2, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(X, y, epochs=30, verbose=0)
# ---
e = sp.Explainer(sp.wrap(model), FAST).fit(X, y).explain(X[:6])

# %% Models | an .onnx file | onnxruntime
from onnx import TensorProto, helper, numpy_helper, save
from sklearn.linear_model import LogisticRegression

linear = LogisticRegression().fit(flat, y)
weight = np.stack([-linear.coef_[0], linear.coef_[0]], 1).astype("float32")
nodes = [
    helper.make_node("Flatten", ["x"], ["flat"], axis=1),
    helper.make_node("MatMul", ["flat", "weight"], ["z"]),
    helper.make_node("Softmax", ["z"], ["p"]),
]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in (("x", ["n", 30, 3]), ("p", ["n", 2]))]
graph = helper.make_graph(nodes, "model", ends[:1], ends[1:], [numpy_helper.from_array(weight, "weight")])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "model.onnx")
# ---
e = sp.Explainer(sp.wrap("model.onnx"), FAST).fit(X, y).explain(X[:6])

# %% Models | a session of onnxruntime | onnxruntime
import onnxruntime
from onnx import TensorProto, helper, save

nodes = [
    helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
    helper.make_node("Softmax", ["m"], ["p"]),
]
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in (("x", ["n", 30, 3]), ("p", ["n", 3]))]
graph = helper.make_graph(nodes, "model", ends[:1], ends[1:])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "means.onnx")
session = onnxruntime.InferenceSession("means.onnx", providers=["CPUExecutionProvider"])
labels = X.mean(1).argmax(1)
# ---
e = sp.Explainer(sp.wrap(session), FAST).fit(X, labels).explain(X[:6])

# %% Models | a program of torch.export
from torch.export import Dim, export

# ---
program = export(Mean(), (torch.from_numpy(X),), dynamic_shapes={"x": {0: Dim("batch")}})
e = sp.Explainer(sp.wrap(program, n_classes=2), FAST).fit(X, y).explain(X[:6])

# %% Models | xgboost | xgboost
from xgboost import XGBClassifier

# ---
model = XGBClassifier(n_estimators=20).fit(flat, y)
e = sp.Explainer(sp.wrap(model, layout="flat"), FAST).fit(X, y).explain(X[:6])

# %% Models | a booster of lightgbm | lightgbm
import lightgbm

# ---
model = lightgbm.train({"objective": "binary", "verbose": -1}, lightgbm.Dataset(flat, y), 20)
e = sp.Explainer(sp.wrap(model), FAST).fit(X, y).explain(X[:6])


# %% Models | a module that returns a dict
class Named(nn.Module):
    def forward(self, x):
        return {"embedding": x.mean(1), "scores": Mean()(x)}


# ---
clf = sp.wrap(Named(), n_classes=2, output=("logits", "scores"))
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])


# %% Models | a module that returns a tuple
class Pair(nn.Module):
    def forward(self, x):
        return x.mean(1), Mean()(x)


# ---
clf = sp.wrap(Pair(), n_classes=2, output=1)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])


# %% Models | a module that also takes an age and a ward
class Aged(nn.Module):
    def __init__(self):
        super().__init__()
        self.wards = nn.Embedding.from_pretrained(torch.tensor([[0.0, 0.1], [0.2, 0.0], [0.1, 0.1]]))

    def forward(self, x, age, ward):
        return Mean()(x) + 0.02 * (age[:, None] - 50) * torch.tensor([1.0, -1.0]) + self.wards(ward)


age, ward = np.linspace(30, 70, 60), np.arange(60) % 3
# ---
clf = sp.wrap(Aged(), n_classes=2)
ex = sp.Explainer(clf, FAST).fit(X, y, side={"age": age, "ward": ward})
e = ex.explain(X[:6], side={"age": age[:6], "ward": ward[:6]})
assert (e.side["age"] == age[:6]).all()


# %% Models | a function of the series and an age
def model(x, age):
    return np.eye(2)[(x[:, :, 0].mean(1) > 0.33 + 0.002 * (age - 50)).astype(int)]


age = np.linspace(30, 70, 60)
# ---
ds = sp.Dataset.from_arrays(X, y, side={"age": age})
e = sp.Explainer(sp.wrap(model), FAST).fit(ds).explain(ds)

# %% Models | an .onnx file with two inputs | onnxruntime
from onnx import TensorProto, helper, save

nodes = [
    helper.make_node("ReduceMean", ["x"], ["mean"], axes=[1], keepdims=0),
    helper.make_node("Add", ["mean", "shift"], ["z"]),
    helper.make_node("Softmax", ["z"], ["p"]),
]
shapes = {"x": ["n", 30, 3], "shift": ["n", 3], "p": ["n", 3]}
ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
graph = helper.make_graph(nodes, "model", ends[:2], ends[2:])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "shifted.onnx")
shift = np.random.default_rng(1).normal(0, 0.1, (60, 3)).astype("float32")
labels = (X.mean(1) + shift).argmax(1)
# ---
ex = sp.Explainer(sp.wrap("shifted.onnx"), FAST).fit(X, labels, side={"shift": shift})
e = ex.explain(X[:6], side={"shift": shift[:6]})


# %% Models | a model that takes 2 to 16 series at a time
def model(x):
    assert 2 <= len(x) <= 16
    return Mean()(torch.from_numpy(x)).softmax(1).numpy()


# ---
clf = sp.wrap(model, batch=(2, 16))
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Models | a plain function
clf = sp.wrap(lambda x: np.eye(2)[(x[:, :, 0].mean(1) > 0.33).astype(int)])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Questions | a class by name
labels = np.array(["ill", "well"])[y]
# ---
e = sp.Explainer(clf, FAST).fit(X, labels).explain(X[y == 0][:6], target="well")

# %% Questions | an array of class indices, one per query
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], target=1 - y[:6])

# %% Questions | the runner-up class of each query
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6])

# %% Questions | any class but one
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[y == 0][:6], target=sp.Not("0"))

# %% Questions | with a probability of at least 0.9
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], confidence=0.9)
assert (e.probability[e.valid] >= 0.9).all()

# %% Questions | at most 10 % of the entries changed
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], sparsity=0.1)

# %% Questions | three different answers
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:4], n=3)


# %% Questions | regression: a number of at least 1
class Number(nn.Module):
    def forward(self, x):
        return x[:, :, 0].mean(1, keepdim=True)


z = X[:, :, 0].mean(1)
# ---
clf = sp.wrap(Number(), task="regression")
e = sp.Explainer(clf, FAST).fit(X, z).explain(X[:6], target=sp.AtLeast(1))


# %% Questions | regression: at most 0, by a random forest
from sklearn.ensemble import RandomForestRegressor

z = X[:, :, 0].mean(1)
# ---
model = RandomForestRegressor(20, random_state=0).fit(flat, z)
clf = sp.wrap(model, task="regression", layout="flat")
e = sp.Explainer(clf, FAST).fit(X, z).explain(X[:6], target=sp.AtMost(0))


# %% Questions | regression: between two numbers
class Number(nn.Module):
    def forward(self, x):
        return x[:, :, 0].mean(1, keepdim=True)


z = X[:, :, 0].mean(1)
# ---
clf = sp.wrap(Number(), task="regression")
e = sp.Explainer(clf, FAST).fit(X, z).explain(X[:6], target=sp.Between(0.3, 0.4))


# %% Questions | regression: 0.5 more than now
class Number(nn.Module):
    def forward(self, x):
        return x[:, :, 0].mean(1, keepdim=True)


z = X[:, :, 0].mean(1)
# ---
clf = sp.wrap(Number(), task="regression")
e = sp.Explainer(clf, FAST).fit(X, z).explain(X[:6], target=sp.Change(0.5))


# %% Questions | forecasts: the third step of the horizon
class Horizon(nn.Module):
    def forward(self, x):
        return x[:, -10:, 0].mean(1, keepdim=True) * torch.tensor([1.0, 0.8, 0.6])


z = X[:, -10:, 0].mean(1, keepdims=True) * [1.0, 0.8, 0.6]
# ---
clf = sp.wrap(Horizon(), task="regression")
e = sp.Explainer(clf, FAST).fit(X, z).explain(X[:6], target=sp.AtLeast(0.5, output=2))

# %% Constraints | features that may not change
limits = sp.Constraints(immutable=["f1"])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert not e.changed[:, :, 1].any()

# %% Constraints | steps that may not change, also with an open end
limits = sp.Constraints(frozen=[(0, 5), (25, None)])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert not e.changed[:, :5].any() and not e.changed[:, 25:].any()

# %% Constraints | steps of one feature that may not change
limits = sp.Constraints(frozen={"f0": [(0, 15)]})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert not e.changed[:, :15, 0].any()

# %% Constraints | ranges of values
limits = sp.Constraints(ranges={"f0": (-1.0, 2.5)})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert (e.counterfactual[e.changed] <= 2.5).all()

# %% Constraints | a largest step
limits = sp.Constraints(max_step={"f0": 2.0})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)

# %% Constraints | one direction
limits = sp.Constraints(direction={"f0": "up"})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[y == 0][:6], target=1, constraints=limits)
assert (e.delta[:, :, 0] >= 0).all()

# %% Constraints | features that change together
limits = sp.Constraints(groups={"hand": ["f0", "f1"]})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert (e.changed[:, :, 0] == e.changed[:, :, 1]).all()

# %% Constraints | few features
limits = sp.Constraints(max_features=1)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert (e.changed.any(1).sum(1) <= 1).all()

# %% Constraints | whole numbers
limits = sp.Constraints(integer=["f0"])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert (e.counterfactual[:, :, 0][e.changed[:, :, 0]] % 1 == 0).all()

# %% Constraints | stretches that only rise
limits = sp.Constraints(monotone={"f0": "up"})
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)

# %% Constraints | features with a fixed sum
limits = sp.Constraints(fixed_sum=[("f0", "f1")])
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)
assert np.allclose(e.counterfactual[:, :, :2].sum(2), e.query[:, :, :2].sum(2), atol=1e-5)


# %% Constraints | a function of your own
def smoothed(made, query):
    return np.clip(made, query - 3, query + 3)


# ---
limits = sp.Constraints(project=smoothed)
e = sp.Explainer(clf, FAST).fit(X, y).explain(X[:6], constraints=limits)

# %% Constraints | standing ones, given to fit
limits = sp.Constraints(immutable=["f2"])
e = sp.Explainer(clf, FAST).fit(X, y, constraints=limits).explain(X[:6])
