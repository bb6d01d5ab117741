# %% [markdown]
# # A random forest on summaries
#
# Many models never see a series: they are given its mean, its spread and its slope. Such a model is a pipeline of
# scikit-learn, and it is explained in terms of the *series*, not of the summaries. The data stand for the sensors of a
# pump: in a pump with a worn bearing the vibration grows while it runs, and it gets warm.

# %%
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sparcets as sp

rng = np.random.default_rng(0)
n, steps = 240, 50  # in the tests: 60, 50
worn = np.arange(n) % 2
wear = worn * rng.uniform(0.5, 1.5, n)  # some are worn more than others
time = np.linspace(0, 1, steps)
X = np.empty((n, steps, 3), dtype="float32")
X[:, :, 0] = 2 + rng.normal(0, 0.3, (n, steps)) + np.outer(wear, 2 * time) * rng.normal(0, 1, (n, steps))
X[:, :, 1] = 40 + np.outer(1 + wear, 6 * time) + rng.normal(0, 0.5, (n, steps))
X[:, :, 2] = 5 + 0.2 * np.sin(9 * time + rng.uniform(0, 6, (n, 1))) + rng.normal(0, 0.05, (n, steps))
ds = sp.Dataset.from_arrays(
    X,
    np.array(["sound", "worn"])[worn],
    feature_names=["vibration", "temperature", "pressure"],
    units=["mm/s", "°C", "bar"],
    sampling_rate=1,
)

# %% [markdown]
# The pipeline takes series (batch, time, features) and makes four numbers of each feature.


# %%
def summaries(X):
    slope = X[:, -10:].mean(1) - X[:, :10].mean(1)
    return np.concatenate([X.mean(1), X.std(1), X.max(1) - X.min(1), slope], axis=1)


model = make_pipeline(FunctionTransformer(summaries), RandomForestClassifier(60, random_state=0))
model.fit(ds.X_train, ds.y_train)
clf = sp.wrap(model, layout="btf", class_names=ds.class_names)
print(f"{(clf.predict(ds.X_test) == ds.y_test).mean():.0%} of the test series are recognised.")

# %% [markdown]
# What would have to be measured in a worn pump for the forest to call it sound? The pressure is set by the operator, so
# it may not change; the others stay within what real pumps show. `confidence=0.7` asks for an answer that the forest is
# not undecided about.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)
queries = ds.X_test[clf.predict(ds.X_test) == 1][:4]
limits = sp.Constraints(immutable=["pressure"])
e = ex.explain(queries, target="sound", constraints=limits, confidence=0.7)
print(e)
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))

# %%
figure = e.plot(shown)
figure.savefig("forest_on_summaries.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows *when* something has to be different, although the forest itself knows no time beyond the slope: the answer
# is a whole series, and the forest was asked about its summaries. It also shows a weakness of the forest: a cool pump
# is sound to it, however much it vibrates. No real pump is like that, so the answer is called doubtful.
#
# Do not conclude that the change is the only one. Many series have the same summaries, so the forest cannot tell them
# apart, and `explain(…, n=3)` gives three different answers. And cooling a pump does not mend its bearing.
