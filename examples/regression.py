# %% [markdown]
# # A number instead of a class
#
# A model predicts the walking speed from the angles of hip, knee and ankle during one step. It says 0.9 m/s. What would
# have to be different for it to say 1.2 m/s or more? The steps are simulated: who lifts the thigh further and bends the
# knee more walks faster, and the ankle has no part in it.

# %%
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

import sparcets as sp

rng = np.random.default_rng(0)
n, steps = 300, 40  # in the tests: 80, 40
phase = np.linspace(0, 2 * np.pi, steps)
hip, knee, ankle = rng.uniform(15, 35, n), rng.uniform(30, 65, n), rng.uniform(10, 20, n)
X = np.stack(
    [np.outer(hip, np.cos(phase)), np.outer(knee, np.sin(phase / 2) ** 4), np.outer(ankle, np.sin(phase))], axis=2
)
X += rng.normal(0, 1.5, X.shape)
speed = 0.2 + 0.022 * hip + 0.008 * knee + rng.normal(0, 0.03, n)
ds = sp.Dataset.from_arrays(
    X.astype("float32"),
    speed,
    task="regression",
    output_names="speed",
    output_units="m/s",
    feature_names=["hip", "knee", "ankle"],
    units="°",
    sampling_rate=40,
)

# %% [markdown]
# `task="regression"` says that the model predicts numbers; `layout="flat"`, that it wants each series as one row.

# %%
model = ExtraTreesRegressor(60, random_state=0).fit(ds.X_train.reshape(len(ds.X_train), -1), ds.y_train)
reg = sp.wrap(model, task="regression", layout="flat")
error = np.abs(model.predict(ds.X_test.reshape(len(ds.X_test), -1)) - ds.y_test.ravel()).mean()
print(f"The model is wrong by {error:.2f} m/s on average.")

# %% [markdown]
# The target says where the number has to lie: `sp.AtLeast`, `sp.AtMost`, `sp.Between`, or `sp.Change(+0.2)`, as
# compared with what the model says now.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(reg, settings).fit(ds)
slow = ds.X_test[reg.predict(ds.X_test).ravel() < 1.0][:5]
e = ex.explain(slow, target=sp.AtLeast(1.2))
print(e)
for before, after, verdict in zip(e.prediction_before[:, 0], e.prediction[:, 0], e.verdict, strict=True):
    print(f"{before:.2f} -> {after:.2f} m/s  {verdict}")

# %%
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))
figure = e.plot(shown)
figure.savefig("regression.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows what the model needs to see for another number, and it can be held against the truth here: hip and knee
# decide the speed in this simulation, and the ankle does not.
#
# Do not conclude that the least change has been found, or that a number just beyond the bound is certain: the model is
# wrong by some hundredths itself. Ask for more than the bound where that matters.
