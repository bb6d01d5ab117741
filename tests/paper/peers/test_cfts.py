"""The adapter, with a fake package cfts: layout of the series, time limits, crashes, seeds, suppressed output."""

import random
import signal
import sys
import time
import warnings
from types import ModuleType

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, MissingExtraError, SparcetsError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from sparcets_paper.peers import ALGORITHMS, PEERS
from sparcets_paper.peers.cfts import CftsPeer, PeerConfig

X, y = make_series(60, n_steps=12, n_features=4)
X = X * np.array([1, 10, 1, 5], dtype=np.float32) + np.array([0, 0, 0, 100], dtype=np.float32)


def scaled_means(values):
    return mean_proba(np.asarray(values) / np.array([1, 10, 1, 5]))


def black_box():
    return sp.wrap(scaled_means, n_classes=3)


@pytest.fixture
def install(monkeypatch):
    """Replace an algorithm by a function; the real package, if installed, is not used."""

    def put(function, algorithm="comte"):
        module_name, _, name = ALGORITHMS[algorithm].function.partition(":")
        module = ModuleType(f"cfts.{module_name}")
        setattr(module, name, function)
        monkeypatch.setitem(sys.modules, "cfts", ModuleType("cfts"))
        monkeypatch.setitem(sys.modules, f"cfts.{module_name}", module)

    return put


def fitted(algorithm="comte", model=None, **settings):
    model = black_box() if model is None else model
    return PEERS.load(f"cfts:{algorithm}")(model, PeerConfig(**settings)).fit(X, y)


def nearest(sample, model, target_class=None, dataset=None):
    """Return the nearest series of the target class, which most peers start with."""
    of_target = [x for x, label in dataset if label == target_class]
    return min(of_target, key=lambda x: float(((x - sample) ** 2).sum())), None


QUERIES, TARGET = X[y != 2][:4], 2


def test_answers_are_in_the_units_of_the_data(install):
    install(nearest)
    peer = fitted()
    e = peer.explain(QUERIES, TARGET)
    assert e.valid.all() and set(e.status) == {"refined"} and e.method == "cfts:comte"
    real = {x.round(3).tobytes() for x in X[y == 2]}
    assert all(x.round(3).tobytes() in real for x in e.counterfactual)
    assert (peer.ran_, peer.timed_out_, peer.crashed_) == (4, 0, 0)


def test_algorithm_and_model_take_standardised_series_with_features_first(install):
    seen = {}

    def look(sample, model, target_class=None, dataset=None):
        stacked = np.stack([x for x, _ in dataset])
        seen.update(shape=sample.shape, mean=stacked.mean((0, 2)), std=stacked.std((0, 2)), type=sample.dtype)
        seen.update(labels=[label for _, label in dataset], out=model(torch.tensor(sample[None])), target=target_class)
        return sample, None

    install(look)
    fitted().explain(QUERIES[:1], TARGET)
    assert seen["shape"] == (4, 12) and seen["type"] == np.float32 and seen["target"] == 2
    np.testing.assert_allclose(seen["mean"], 0, atol=1e-5)
    np.testing.assert_allclose(seen["std"], 1, atol=1e-5)
    assert seen["labels"] == y.tolist()
    np.testing.assert_allclose(seen["out"].exp(), scaled_means(QUERIES[:1]), atol=1e-5)


def test_unchanged_entries_equal_the_query_and_constraints_hold(install):
    def lift(sample, model, target_class=None, dataset=None):
        changed = sample.astype(np.float64)
        changed[target_class, :6] += 9.0
        changed[3, 2] += 9.0
        return changed, None

    install(lift)
    e = fitted().explain(QUERIES, TARGET)
    expected = np.zeros((12, 4), dtype=bool)
    expected[:6, 2] = expected[2, 3] = True
    assert (e.changed == expected).all() and e.valid.all()
    same = e.counterfactual.view(np.uint32) == QUERIES.view(np.uint32)
    assert same[:, ~expected].all()
    kept = fitted().explain(QUERIES, TARGET, constraints=sp.Constraints(immutable=[3], frozen=[(0, 2)]))
    assert not kept.changed[..., 3].any() and not kept.changed[:, :2].any() and kept.changed[:, 2:6, 2].all()
    capped = fitted().explain(QUERIES, TARGET, sparsity=4 / 48, n=2)
    assert (capped.changed.sum((1, 2))[::2] <= 4).all() and set(capped.status[1::2]) == {"not_found"}


def test_a_crash_is_a_reason_and_the_others_continue(install):
    calls = []

    def second_crashes(sample, model, target_class=None, dataset=None):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("no such thing")
        return nearest(sample, model, target_class, dataset)

    install(second_crashes)
    peer = fitted()
    e = peer.explain(QUERIES, TARGET)
    assert e.status.tolist() == ["refined", "not_found", "refined", "refined"]
    assert e.reason[1] == "cfts:comte crashed: KeyError: 'no such thing'"
    assert (e.counterfactual[1] == QUERIES[1]).all()
    assert (peer.ran_, peer.timed_out_, peer.crashed_) == (3, 0, 1)


@pytest.mark.parametrize(("returned", "reason"), [(None, "found nothing"), (np.zeros(7), "it returned shape")])
def test_no_answer_and_one_of_the_wrong_shape(install, returned, reason):
    calls = []

    def once(sample, model, target_class=None, dataset=None):
        calls.append(1)
        return (returned, None) if len(calls) == 1 else nearest(sample, model, target_class, dataset)

    install(once)
    e = fitted().explain(QUERIES, TARGET)
    assert e.status[0] == "not_found" and reason in e.reason[0] and e.valid[1:].all()


def never_ends(sample, model, target_class=None, dataset=None):
    try:
        while True:
            time.sleep(0.005)
    except:  # noqa: E722 - a peer does this
        pass
    while True:
        model(torch.zeros(1, 4, 12))


def test_the_time_limit_holds_even_if_the_alarm_is_caught(install):
    install(never_ends)
    peer = fitted(seconds_per_query=0.1)
    before = signal.getsignal(signal.SIGALRM)
    e = peer.explain(QUERIES[:2], TARGET)
    assert e.reason.tolist() == ["cfts:comte did not finish within 0.1 s"] * 2
    assert (peer.ran_, peer.timed_out_, peer.crashed_) == (0, 2, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_output_is_suppressed_and_random_state_restored(install, capfd):
    def loud(sample, model, target_class=None, dataset=None):
        print("hello")  # noqa: T201
        print("hello", file=sys.stderr)  # noqa: T201
        warnings.warn("beware", DeprecationWarning, stacklevel=1)
        random.random(), np.random.rand(), torch.rand(1)  # noqa: NPY002
        return nearest(sample, model, target_class, dataset)

    install(loud)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    fitted().explain(QUERIES, TARGET)
    assert random.getstate() == before[0] and (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])
    assert capfd.readouterr() == ("", "")


def test_the_seed_depends_on_the_query(install):
    def draw(sample, model, target_class=None, dataset=None):
        sample[:, 0] += [random.random(), np.random.rand(), torch.rand(()).item(), 1.0]  # noqa: NPY002
        return sample, None

    install(draw)
    e = fitted().explain(QUERIES, TARGET)
    np.testing.assert_array_equal(fitted(batch_size=1).explain(QUERIES[::-1], TARGET).delta[::-1], e.delta)
    other = fitted(seed=1).explain(QUERIES, TARGET)
    assert (other.delta[:, 0, :3] != e.delta[:, 0, :3]).all() and len(np.unique(e.delta[:, 0, 0])) == 4


def test_gradients_arrive_and_the_users_model_is_untouched(install):
    module = MeanModule()
    grown = []

    def descend(sample, model, target_class=None, dataset=None):
        model.train()
        x = torch.tensor(sample[None], requires_grad=True)
        for _ in range(50):
            loss = -model(x)[0, target_class]
            loss.backward()
            with torch.no_grad():
                x -= 5.0 * x.grad / (x.grad.norm() + 1e-6)
                x.grad = None
        grown.append(1)
        return x.detach().numpy()[0], None

    install(descend, "glacier")
    module.eval()
    model = sp.wrap(module, n_classes=3)
    with torch.no_grad():  # gradients are enabled for the peer
        e = fitted("glacier", model).explain(QUERIES, TARGET)
    assert e.valid.all() and len(grown) == 4
    assert module.sharpness.grad is None and module.sharpness.requires_grad and not module.training
    with pytest.raises(CapabilityError, match="cfts:glacier needs gradients"):
        fitted("glacier")


def test_algorithms_that_take_arrays_and_probabilities(install):
    seen = {}

    def look(sample, model, X_train, y_train, target_class=None):
        seen.update(X=X_train.shape, y=y_train.copy(), sums=model(torch.tensor(X_train)).sum(1))
        X_train[:] = 0
        y_train[:] = 0  # must not affect the next query
        return sample, None

    install(look, "ab_cf")
    fitted("ab_cf").explain(QUERIES[:2], TARGET)
    assert seen["X"] == (60, 4, 12)
    np.testing.assert_array_equal(seen["y"], y)
    np.testing.assert_allclose(seen["sums"], 1, atol=1e-5)


def test_options(install):
    def with_options(sample, model, target_class=None, dataset=None, lift=0.0):
        sample[target_class] += lift
        return sample, None

    install(with_options)
    assert fitted(options={"lift": 9.0}).explain(QUERIES, TARGET).valid.all()
    with pytest.raises(ConfigError, match=r"cfts:comte has no option 'lifd'. Did you mean 'lift'\? Known: lift\."):
        fitted(options={"lifd": 9.0})
    with pytest.raises(ConfigError, match="no option 'dataset'"):
        fitted(options={"dataset": []})


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "cfts", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparcets\[peers\]'"):
        fitted()


def test_the_registry_works_without_the_package():
    assert "cfts:comte" in PEERS and len(PEERS) == len(ALGORITHMS) == len(PEERS.about)
    for name in PEERS:
        kind = PEERS.load(name)
        assert issubclass(kind, CftsPeer) and kind.__name__ == name and kind(black_box()).method == name
        assert kind.config_class.from_dict(kind.config_class.tiny().to_dict()) == kind.config_class.tiny()
    with pytest.raises(SparcetsError, match="Did you mean 'cfts:comte'"):
        PEERS.load("cfts:comt")
