# %% [markdown]
# # A movement with a skeleton
#
# Nine points of a body are followed while a person catches a ball, and a network says whether a person with ataxia, a
# person with autism or a control is catching. What would have to be different in a trial for the network to say
# *Control*? The trials are **simulated**: no patient was measured.

# %%
import sparcets as sp
from sparcets.motion.stick_figure import plot_body

ds = sp.load_dataset("catching", seed=0)
print(ds)
print("features:", ", ".join(ds.feature_names[:4]), "…")

# %% [markdown]
# A small convolutional network, trained for a few epochs. Your own model would come in by `sp.wrap(model)`.

# %%
training = sp.ClassifierConfig(epochs=5)  # in the tests: sp.ClassifierConfig(epochs=1)
clf = sp.TorchClassifier("fcn", training).fit(ds)
predicted = clf.predict(ds.X_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test trials are recognised.")

# %% [markdown]
# The features are named `LeftElbow_x`, `LeftElbow_y` and so on, so the package knows the limbs. Answers stay
# within what the training trials show: arms keep their length, and nothing moves faster or further than in a
# real trial. The ball (`Center`) may not change; the data set says so itself, in `ds.mutable`.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",), max_series=100)
ex = sp.Explainer(clf, settings).fit(ds)

autism = ds.class_names.index("Autism")
trials = ds.X_test[(predicted == autism) & (ds.y_test == autism)][:6]
e = ex.explain(trials, target="Control")
print(e)

# %% [markdown]
# Of the six answers, we look at the one that changes least.

# %%
least = int(e.share_changed.argmin())
print(e.text(least))

# %%
figure = plot_body(e[least])
figure.savefig("catching_skeleton.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows what *this network* reacts to in *this trial*, as a movement that a body could make. Other models that were
# trained on the same data agree, or the answer would not be called *believed*.
#
# Do not conclude that a patient should move like this, or that these differences cause the diagnosis: the answer
# describes the model. Another network may look elsewhere, and in a simulation the truth is what its authors put in.
