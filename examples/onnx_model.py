# %% [markdown]
# # A model in an ONNX file
#
# Someone hands you `fall.onnx`, from whatever they trained it with, and you want to know what it reacts to. It decides
# whether two seconds of an acceleration sensor on the wrist are a fall.

# %%
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from sklearn.neural_network import MLPClassifier

import sparcets as sp

rng = np.random.default_rng(0)
n, steps = 240, 40  # in the tests: 60, 40
fall = np.arange(n) % 2
X = rng.normal(0, 0.15, (n, steps, 3)).astype("float32")
X[:, :, 2] += 1  # gravity
for i in np.flatnonzero(fall):
    hit = rng.integers(10, 25)
    X[i, hit - 4 : hit, 2] -= 0.8  # weightless for a moment,
    X[i, hit : hit + 2] += rng.uniform(1.5, 3.0, 3)  # then the floor,
    X[i, hit + 2 :] *= 0.3  # then stillness
ds = sp.Dataset.from_arrays(
    X,
    np.array(["other", "fall"])[fall],
    class_names=["other", "fall"],
    feature_names=["acc_x", "acc_y", "acc_z"],
    units="g",
    sampling_rate=20,
)

# %% [markdown]
# This cell stands for whoever made the file: it writes a trained network as ONNX. You would start below it.

# %%
net = MLPClassifier((32,), max_iter=1000, random_state=0).fit(ds.X_train.reshape(len(ds.X_train), -1), ds.y_train)
weights = {"W0": net.coefs_[0], "b0": net.intercepts_[0], "W1": net.coefs_[1], "b1": net.intercepts_[1]}
nodes = [
    helper.make_node("Flatten", ["series"], ["flat"]),
    helper.make_node("Gemm", ["flat", "W0", "b0"], ["hidden"]),
    helper.make_node("Relu", ["hidden"], ["active"]),
    helper.make_node("Gemm", ["active", "W1", "b1"], ["logit"]),
    helper.make_node("Sigmoid", ["logit"], ["fall"]),
]
series = helper.make_tensor_value_info("series", TensorProto.FLOAT, ["batch", steps, 3])
result = helper.make_tensor_value_info("fall", TensorProto.FLOAT, ["batch", 1])
stored = [numpy_helper.from_array(value.astype("float32"), name) for name, value in weights.items()]
graph = helper.make_graph(nodes, "fall", [series], [result], stored)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "fall.onnx")

# %% [markdown]
# The file is all that is needed. It returns one number between 0 and 1, which is what `output="sigmoid"` says.

# %%
clf = sp.wrap("fall.onnx", output="sigmoid", class_names=ds.class_names)
predicted = clf.predict(ds.X_test)
print(f"{(predicted == ds.y_test).mean():.0%} of the test series are recognised.")

settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(clf, settings).fit(ds)
e = ex.explain(ds.X_test[predicted == 1][:5], target="other")
print(e)
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))

# %%
figure = e.plot(shown)
figure.savefig("onnx_model.png")
figure

# %% [markdown]
# The same on the command line, with the classes in the order of the model: `sparcets fit --dataset my.csv --model
# fall.onnx --output sigmoid --classes other,fall --out model`, and `sparcets explain model --target other`.
#
# ## What this shows, and what it does not
#
# It shows what the file reacts to, without its source, its framework or its training data: any recordings of the same
# kind will do for `fit`.
#
# Do not conclude that the answer is a recording without a fall. The hit is gone, but the stillness after it is not;
# that was enough for the network and for models of other kinds. No real recording is like that, so the answer is called
# doubtful.
