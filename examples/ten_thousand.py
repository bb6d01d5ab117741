# %% [markdown]
# # Ten thousand series
#
# One explanation is read; ten thousand are counted. With `out=` the answers are written to a folder as they are found,
# so that neither the queries nor the answers have to fit in memory, and a run that was cut off goes on where it was.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sparcets as sp

n, training = 10_000, 600  # in the tests: 200, 60
steps, names = 50, ["acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"]


def recordings(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(0, 0.5, (n, steps, 6)).astype("float32")
    start = rng.integers(15, 25, n)  # an event of ten steps, most of all in the first feature
    for i in np.flatnonzero(y):
        X[i, start[i] : start[i] + 10] += [2.0, 0.8, 0, 0, 1.2, 0]
    return X, y


ds = sp.Dataset.from_arrays(*recordings(training, seed=0), class_names=["quiet", "event"], feature_names=names)
epochs = sp.ClassifierConfig(epochs=10)  # in the tests: sp.ClassifierConfig(epochs=20)
clf = sp.TorchClassifier("fcn", epochs).fit(ds)
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)

# %% [markdown]
# The queries lie in a file, and are read from it as the work goes on.

# %%
np.save("queries.npy", recordings(n, seed=1)[0])
queries = np.load("queries.npy", mmap_mode="r")
e = ex.explain(queries, target="event", out="answers")
shards = list(Path("answers").glob("*.npz"))
print(f"{len(e):,} answers in {len(shards)} files")

# %% [markdown]
# One file after the other is read, so that ten million answers would take no more memory. Which entries change, and
# how often?

# %%
often, answered, words = np.zeros((steps, len(names))), 0, []
for shard in e.shards():
    found = shard[shard.valid & (shard.status != "unchanged")]
    often += found.changed.sum(0)
    answered += len(found)
    words += list(shard.verdict)
print(f"{answered:,} quiet series were changed into events.")
print({str(word): int(count) for word, count in zip(*np.unique(words, return_counts=True), strict=True)})

# %%
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
image = axes.imshow(100 * often.T / answered, aspect="auto", cmap="Oranges", vmin=0, vmax=100)
axes.set(
    xlabel="step", yticks=range(len(names)), yticklabels=names, title="How often an entry has to change for an event"
)
figure.colorbar(image, label="% of answers")
figure.savefig("ten_thousand.png", dpi=120)

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows what the model needs in general: the pattern that no single answer tells, and how many answers are believed.
# Most are doubtful here: to raise one feature is enough for all the models, but in a real event three of them rise, the
# first one less. Where this matters, `groups` among the constraints ask for more.
#
# Do not conclude that an entry that rarely changes is unimportant. Answers are sparse, so of two features that say the
# same, only one has to change; which one may differ from series to series.
