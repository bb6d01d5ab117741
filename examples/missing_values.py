# %% [markdown]
# # Missing values
#
# On a ward the pulse is taken every hour and blood is drawn now and then, so most values of the laboratory are missing.
# Gradient boosting takes missing values as they are. What would have to be different for it to call a patient *stable*?
# The patients are simulated, and a step is an hour.

# %%
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import sparcets as sp

rng = np.random.default_rng(0)
n, hours = 300, 24  # in the tests: 60, 24
worse = np.arange(n) % 2
course = np.outer(worse * rng.uniform(0.5, 1.5, n), np.linspace(0, 1, hours) ** 2)  # they get worse late in the day
X = np.stack([80 + 35 * course, 120 - 30 * course, 1.2 + 3 * course], axis=2)
X += rng.normal(0, [6, 8, 0.3], X.shape)
X[rng.random(X.shape) < 0.1] = np.nan  # one in ten was not written down
X[:, :, 2][rng.random((n, hours)) < 0.8] = np.nan  # no blood was drawn
ds = sp.Dataset.from_arrays(
    X.astype("float32"),
    np.array(["stable", "worse"])[worse],
    feature_names=["pulse", "pressure", "lactate"],
    units=["bpm", "mmHg", "mmol/L"],
)
print(f"{np.isnan(ds.X_train).mean():.0%} of the values are missing.")

# %% [markdown]
# `missing="keep"` says that the model is given the gaps as they are. A model that cannot take them gets the last value
# before the gap with `missing="forward"`, the mean of the series with `missing="mean"`, or what your own function
# returns.

# %%
model = HistGradientBoostingClassifier(max_iter=30, random_state=0)
model.fit(ds.X_train.reshape(len(ds.X_train), -1), ds.y_train)
clf = sp.wrap(model, layout="flat", missing="keep", class_names=ds.class_names)
predicted = clf.predict(ds.X_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test patients are recognised.")

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)
e = ex.explain(ds.X_test[predicted == 1][:5], target="stable")
print(e)
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))

# %% [markdown]
# What is missing in the query stays missing in the answer: nothing is invented.

# %%
same_gaps = np.array_equal(np.isnan(e.query), np.isnan(e.counterfactual))
print("the answers have the gaps of their queries:", same_gaps)
figure = e.plot(shown)
figure.savefig("missing_values.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows which *measured* values keep the model from saying *stable*. Values that were not measured are neither
# changed nor counted.
#
# Do not conclude that a missing value does not matter to the model: that blood was drawn at all may tell it something,
# and a counterfactual never adds or removes a measurement. And to lower a pulse is not to cure a patient; the answer
# describes the model.
