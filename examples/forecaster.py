# %% [markdown]
# # A forecast
#
# From the electric load and the temperature of the last two days a model forecasts the load of the next six hours. How
# much warmer would it have to have been for the forecast of the third hour to stay low? The data are simulated: people
# heat when it is cold, with some delay.

# %%
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparcets as sp

rng = np.random.default_rng(0)
days = 300  # in the tests: 60
hours = np.arange(24 * days)
weather = np.convolve(rng.normal(0, 1, len(hours) + 47), np.ones(48) / 7, mode="valid")
temperature = 5 + 4 * np.sin(2 * np.pi * (hours - 9) / 24) + 5 * weather
felt = np.convolve(np.concatenate([temperature[:11], temperature]), np.ones(12) / 12, mode="valid")  # walls are slow
load = 60 + 10 * np.sin(2 * np.pi * (hours - 12) / 24) - 1.5 * felt + rng.normal(0, 1, len(hours))

past, horizon = 48, 6
starts = np.arange(0, len(hours) - past - horizon, 24)
X = np.stack([np.stack([load[s : s + past], temperature[s : s + past]], axis=1) for s in starts]).astype("float32")
future = np.stack([load[s + past : s + past + horizon] for s in starts])

# %% [markdown]
# A forecaster is a model that predicts several numbers per series: one for each hour of its horizon.

# %%
ds = sp.Dataset.from_arrays(
    X,
    future,
    task="regression",
    output_names=[f"load in {h} h" for h in range(1, horizon + 1)],
    output_units="MW",
    feature_names=["load", "temperature"],
    units=["MW", "°C"],
)
model = make_pipeline(StandardScaler(), Ridge(10.0)).fit(ds.X_train.reshape(len(ds.X_train), -1), ds.y_train)
reg = sp.wrap(model, task="regression", layout="flat")
print(f"The forecasts are wrong by {np.abs(reg.predict(ds.X_test) - ds.y_test).mean():.1f} MW on average.")

# %% [markdown]
# The load that was measured stays, and the temperature may rise only, as it does in real days. `output=` names the hour
# that the question is about; a step is an hour.

# %%
settings = sp.ExplainerConfig.quick()  # in the tests: sp.ExplainerConfig(families=("intervals",))
ex = sp.Explainer(reg, settings).fit(ds)
forecast = reg.predict(ds.X_test)[:, 2]
cold = ds.X_test[np.argsort(forecast)[-5:]]
limits = sp.Constraints(immutable=["load"], direction={"temperature": "up"})
e = ex.explain(cold, target=sp.Change(-3, output="load in 3 h"), constraints=limits)
print(e)
shown = int((e.verdict == "believed").argmax())  # the first that is believed
print(e.text(shown))

# %%
figure = e.plot(shown)
figure.savefig("forecaster.png")
figure

# %% [markdown]
# ## What this shows, and what it does not
#
# It shows which hours of the past the forecast rests on, in the units of the past: degrees and hours.
#
# Do not conclude that the load itself would fall so. The measured load was held fixed while the temperature was
# changed, and no real winter does that; the forecaster may also have learnt the season instead of the heating.
