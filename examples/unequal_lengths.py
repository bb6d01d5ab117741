# %% [markdown]
# # Series of unequal length
#
# Breaths take as long as they take. Each series here is one breath, of two to five seconds: the flow of the air and the
# girth of the chest. In an obstructed breath the air leaves slowly. The data are simulated.

# %%
import numpy as np

import sparcets as sp

rng = np.random.default_rng(0)
n = 160  # in the tests: 60
breaths, labels = [], []
for i in range(n):
    obstructed = i % 2 == 1
    steps = int(rng.integers(20, 50))  # 10 values per second
    inhaling = int(0.4 * steps)
    time = np.arange(steps - inhaling) / (steps - inhaling)
    decay = rng.uniform(1.0, 2.0) if obstructed else rng.uniform(4.0, 6.0)
    out = -np.exp(-decay * time) * np.minimum(8 * time, 1)
    flow = np.concatenate([0.6 * np.sin(np.pi * np.arange(inhaling) / inhaling), out])
    chest = rng.normal(90, 3) + 0.8 * np.cumsum(flow) / steps * 10
    noise = rng.normal(0, [0.03, 0.05], (steps, 2))
    breaths.append((np.stack([flow, chest], axis=1) + noise).astype("float32"))
    labels.append("obstructed" if obstructed else "free")
print(len(breaths), "breaths of", min(map(len, breaths)), "to", max(map(len, breaths)), "steps")

# %% [markdown]
# A list of arrays (time, features) goes in as it is; nothing is cut, and nothing is padded by hand.

# %%
names = {"feature_names": ["flow", "chest"], "units": ["L/s", "cm"], "sampling_rate": 10}
ds = sp.Dataset.from_arrays(breaths, labels, **names)
training = sp.ClassifierConfig(epochs=15)  # in the tests: sp.ClassifierConfig(epochs=3)
clf = sp.TorchClassifier("fcn", training).fit(ds)
predicted = clf.predict(ds.X_test, lengths=ds.lengths_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test breaths are recognised.")

# %% [markdown]
# `explain(ds)` takes the test series of the data set, with their lengths; for series of your own,
# `explain(list_of_series)`. The chest moves with the air, so the two may only change together.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)
limits = sp.Constraints(groups={"breath": ["flow", "chest"]})
e = ex.explain(ds, target="free", constraints=limits)
print(e)

# %%
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))
print("lengths of the first answers:", [len(e.counterfactual[i][: e.lengths[i]]) for i in range(6)])

# %%
figure = e.plot(shown)
figure.savefig("unequal_lengths.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows what has to change *within* the breath. An answer is as long as its query, and padding is never changed,
# counted, told or drawn.
#
# Do not conclude that the duration does not matter. A counterfactual cannot make a breath shorter or longer, so what a
# model has learnt from the duration alone is not told by it.
