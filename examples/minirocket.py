# %% [markdown]
# # A black box: MiniRocket
#
# MiniRocket turns a series into thousands of features of random convolutions, with a linear classifier on top. It is
# fast and accurate, it has no gradients, and nobody can read its weights. All that is needed to explain it is
# `predict_proba`. The recordings are those of a smart watch: badminton, running, standing, walking.

# %%
from aeon.classification.convolution_based import MiniRocketClassifier

import sparcets as sp

ds = sp.load_dataset("basic_motions")
print(ds)

# %% [markdown]
# aeon has series as (cases, channels, time), this package as (batch, time, features). `sp.wrap` knows aeon's models and
# turns the axes by itself; only the training below is aeon's own.

# %%
n_kernels = 1000  # in the tests: 84
model = MiniRocketClassifier(n_kernels, random_state=0).fit(ds.X_train.transpose(0, 2, 1), ds.y_train)
clf = sp.wrap(model, class_names=ds.class_names)
predicted = clf.predict(ds.X_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test series are recognised.")

# %% [markdown]
# What would it take for a game of badminton to be called *anything else*? `sp.Not` lets the explainer choose the class
# that is reached most easily. `sparsity=0.3` allows three values in ten to change, at most.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)

badminton = ds.class_names.index("badminton")
queries = ds.X_test[(predicted == badminton) & (ds.y_test == badminton)][:5]
e = ex.explain(queries, target=sp.Not("badminton"), sparsity=0.3)
print(e)
for name, verdict, share in zip(e.target_names, e.verdict, e.share_changed, strict=True):
    print(f"badminton -> {name:8}  {verdict:11}  {share:.0%} of the values change")

# %%
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))
figure = e.plot(shown)
figure.savefig("minirocket.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows that a model without gradients is explained like any other, by asking it: `valid` is MiniRocket's own word on
# the changed series, never that of the models that helped to find it.
#
# Do not conclude much from forty training series. An answer that is called *doubtful* or a *trick* says that models of
# other kinds are not convinced, or that no real series looks like this: then it tells something about MiniRocket, and
# nothing about badminton.
