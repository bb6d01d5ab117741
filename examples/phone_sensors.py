# %% [markdown]
# # Sensors of a phone
#
# Two seconds of a phone in the pocket: attitude, gravity, rotation and acceleration. A network says what the person is
# doing. Why does it call this window *jogging* and not *walking*? The recordings are those of MotionSense, 24 people;
# where they are not at hand (`sparcets data fetch motionsense` gets them), those of a smart watch take their place,
# which come with aeon.

# %%
import numpy as np

import sparcets as sp

try:
    ds, fast, slow = sp.load_dataset("motionsense", split="subject"), "jog", "wlk"
except sp.SparcetsError:
    ds, fast, slow = sp.load_dataset("basic_motions"), "running", "walking"
print(ds)
print("features:", ", ".join(ds.feature_names))

# %% [markdown]
# `split="subject"` holds out people, not windows: the network is tested on people it has never seen.

# %%
training = sp.ClassifierConfig(epochs=4)  # in the tests: sp.ClassifierConfig(epochs=20)
clf = sp.TorchClassifier("fcn", training).fit(ds)
predicted = clf.predict(ds.X_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test windows are recognised.")

# %% [markdown]
# The person carries the phone as before, so what tells its orientation may not change, and of the other features three
# at most may.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)

orientation = [name for name in ds.feature_names if name.startswith(("attitude", "gravity"))]
limits = sp.Constraints(immutable=orientation, max_features=3)
jogging = ds.class_names.index(fast)
rows = np.flatnonzero((predicted == jogging) & (ds.y_test == jogging))[:8]
e = ex.explain(ds.X_test[rows], target=slow, constraints=limits)
print(e)
print("verdicts:", ", ".join(e.verdict))

# %%
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))
figure = e.plot(shown)
figure.savefig("phone_sensors.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows which part of the recording keeps this network from saying *walking*, if the phone stays where it is. With
# eight windows explained, the table `e.to_frame()` says whether it is the same part for all of them.
#
# Do not conclude that people who walk differ from people who jog in these features alone: others were not allowed to
# change, and fewer than needed may have been allowed. A window that was not answered is not unexplainable; it needs
# more than three features.
