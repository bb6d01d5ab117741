"""TorchClassifier: what fit takes, what it promises, what it refuses, and how it is saved."""

import math

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core import errors
from sparcets.core.seeding import spawn
from sparcets.core.series import Series
from sparcets.data.splits import stratified_split
from sparcets.models import network as torch_classifier
from sparcets.models.base import frozen
from sparcets.models.network import FILES
from sparcets.testing.data import make_series
from sparcets.training import ARCHITECTURES
from tests.saved import rewrite

X, Y = make_series(60, n_steps=12)
NEW, TRUTH = make_series(30, n_steps=12, seed=1)
WORDS = np.array(["calm", "wild", "brisk"])[Y]  # of classes 0, 1, 2; in the alphabet: brisk, calm, wild


def config(**changes):
    return sp.ClassifierConfig.from_dict({**sp.ClassifierConfig.tiny().to_dict(), "device": "cpu", **changes})


def fit(architecture="fcn", series=X, labels=Y, *, lengths=None, **changes):
    return sp.TorchClassifier(architecture, config(**changes)).fit(series, labels, lengths=lengths)


def same_weights(a, b):
    return all(torch.equal(value, b.weights()[name]) for name, value in a.weights().items())


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_every_architecture_learns_small_series_in_their_own_units(architecture):
    scale, shift = np.array([1, 1e4, 1e-3, 10]), np.array([0, 1e5, 0, -50])
    clf = fit(architecture, X * scale + shift, epochs=40, patience=40, batch_size=16)
    assert (clf.predict(NEW * scale + shift) == TRUTH).mean() > 0.9


@pytest.mark.parametrize("architecture", ["bilstm", "fcn", "transformer"])
def test_the_same_seed_gives_the_same_weights_bit_for_bit_whatever_the_global_state(architecture):
    fitted = []
    for state, seed in ((1, 7), (2, 7), (2, 8)):
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002
        fitted.append(fit(architecture, seed=seed, epochs=2, dropout=0.4, layers=2))
    same, again, other = fitted
    assert same_weights(same, again) and not same_weights(same, other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_on_a_gpu_the_same_seed_gives_the_same_weights_and_a_cpu_the_same_predictions(architecture, tmp_path):
    torch.cuda.manual_seed(3)
    state, lengths = torch.cuda.get_rng_state(), np.r_[np.full(30, 12), np.full(30, 7)]
    settings = {"epochs": 3, "dropout": 0.4, "layers": 2, "device": "cuda", "lengths": lengths}
    a, b = fit(architecture, **settings), fit(architecture, **settings)
    assert torch.equal(torch.cuda.get_rng_state(), state) and same_weights(a, b)
    a.save(tmp_path)
    on_cpu = sp.load_classifier(tmp_path, device="cpu")
    np.testing.assert_allclose(on_cpu.predict_proba(X, lengths), a.predict_proba(X, lengths), atol=1e-4)


def test_the_weights_kept_are_those_of_the_best_epoch_and_it_stops_early():
    noise = np.random.default_rng(0).permutation(Y)  # nothing to learn, so it soon gets worse
    clf = fit(labels=noise, epochs=12, patience=12)
    losses = clf.history_["validation_loss"]
    _, watched = stratified_split(noise, test_size=clf.config.validation, seed=spawn(clf.config.seed, "validation"))
    p = clf.predict_proba(X[watched])[np.arange(len(watched)), noise[watched]]
    assert -np.log(p).mean() == pytest.approx(min(losses), abs=1e-3)
    assert losses[-1] > min(losses) + 0.01  # otherwise this shows nothing
    assert len(fit(epochs=300, patience=2).history_["loss"]) < 100


def test_a_second_fit_forgets_the_first_and_strings_name_the_classes():
    clf = fit(series=X[:, :8] * 50, labels=WORDS.tolist(), epochs=2)
    assert clf.class_names == ("brisk", "calm", "wild") and clf.named
    clf.fit(X, Y)
    fresh = fit(epochs=2)
    assert clf.class_names == ("0", "1", "2") and not clf.named and clf.n_steps == 12
    assert clf.history_ == fresh.history_
    np.testing.assert_array_equal(clf.predict_proba(NEW), fresh.predict_proba(NEW))


def test_a_failed_check_keeps_the_first_fit_and_a_training_cut_off_is_no_fit(monkeypatch):
    clf = fit(epochs=1)
    before = clf.predict_proba(NEW)
    with pytest.raises(errors.NonFiniteError):
        clf.fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(clf.predict_proba(NEW), before)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch_classifier, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    with pytest.raises(errors.NotFittedError):
        clf.predict(NEW)


def test_series_that_were_checked_train_the_same_and_may_lack_a_class_or_have_probabilities_as_labels():
    def learn(labels, names=("0", "1", "2")):
        clf = sp.TorchClassifier("fcn", config(epochs=2))
        return clf.fit_unchecked(Series(X), labels, names, named=True, progress=False)

    assert same_weights(learn(Y), fit(epochs=2))
    assert learn(Y, tuple("abcd")).predict_proba(NEW).shape == (30, 4)  # no series of class d
    certain, doubtful = learn(np.eye(3, dtype=np.float32)[Y]), learn(np.full((60, 3), 1 / 3, dtype=np.float32))
    assert certain.predict_proba(X).max(1).mean() > doubtful.predict_proba(X).max(1).mean() + 0.1


def test_ten_series_a_class_of_one_and_batches_of_one_are_enough():
    small = fit(series=X[:10], labels=Y[:10] % 2, epochs=2)
    assert small.predict_proba(NEW).shape == (30, 2)
    rows = np.r_[np.flatnonzero(Y == 0)[:6], np.flatnonzero(Y == 1)[:6], np.flatnonzero(Y == 2)[:1]]
    alone = fit(series=X[rows], labels=Y[rows], epochs=60, patience=60)
    assert alone.predict(X[rows])[-1] == 2
    assert len(alone.validation_rows_) == 0, "early stopping watches what it learns from"
    one_by_one = fit(series=X[:20], labels=Y[:20], batch_size=1, epochs=20, patience=20)
    assert one_by_one.history_["loss"][-1] < 0.5 * one_by_one.history_["loss"][0]
    fit(series=X[:4, :1, :1], labels=[0, 1, 0, 1], epochs=1)  # one step, one feature


def vowels(n=72, n_steps=29, n_features=12, seed=0):
    """Return series like JapaneseVowels: 9 speakers, 7 to 29 steps, zeros behind the end."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 9
    speaker = np.random.default_rng(99).normal(0, 1, (9, n_features))
    lengths = rng.integers(7, n_steps + 1, n)
    series = speaker[y][:, None] + rng.normal(0, 0.5, (n, n_steps, n_features))
    series[np.arange(n_steps)[None] >= lengths[:, None]] = 0
    return series.astype(np.float32), y, lengths


@pytest.mark.parametrize("architecture", ["bigru", "resnet"])
def test_series_of_unequal_length_are_learnt_and_padding_never_matters(architecture):
    series, labels, lengths = vowels()
    clf = fit(architecture, series, labels, lengths=lengths, epochs=15, patience=15)
    new, truth, ends = vowels(45, seed=1)
    proba = clf.predict_proba(new, ends)
    assert (proba.argmax(1) == truth).mean() > 0.9
    new[np.arange(29)[None] >= ends[:, None]] = 1e6
    np.testing.assert_array_equal(clf.predict_proba(new, ends), proba)
    series[np.arange(29)[None] >= lengths[:, None]] = -1e6
    again = fit(architecture, series, labels, lengths=lengths, epochs=15, patience=15)
    np.testing.assert_array_equal(again.predict_proba(new, ends), proba)
    ds = sp.Dataset.from_arrays(series, labels, lengths=lengths)  # lengths travel with a dataset
    a = sp.TorchClassifier(architecture, config(epochs=1)).fit(ds)
    assert same_weights(a, fit(architecture, ds.X_train, ds.y_train, lengths=ds.lengths_train, epochs=1))


@pytest.mark.parametrize("architecture", ["bigru", "bilstm"])
def test_predictions_are_the_same_bits_while_another_thread_has_frozen_the_network(architecture, tmp_path):
    fitted = fit(architecture, epochs=2)
    fitted.save(tmp_path)

    def predict(classifier):
        return [classifier.predict_proba(NEW[i : i + 1 + i % 3]) for i in range(20)]

    for classifier in (fitted, sp.load_classifier(tmp_path)):
        alone = predict(classifier)
        with frozen(classifier._network):
            assert all(map(np.array_equal, predict(classifier), alone))
        classifier._network.train()  # then it is frozen by the call itself
        assert all(map(np.array_equal, predict(classifier), alone))


@pytest.mark.parametrize("architecture", ["bilstm", "transformer"])
def test_gradients_agree_with_finite_differences_in_the_data_units(architecture):
    clf = fit(architecture, X * 100 + 7, epochs=1)
    clf._network.double()
    clf._standardise = lambda x, lengths: (x - clf._center) / clf._scale
    x = torch.tensor(X[:2, :4] * 100 + 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(clf.log_proba, (x,), eps=1e-3, atol=1e-6)
    assert not any(p.requires_grad or p.grad is not None for p in clf._network.parameters())


DS = sp.Dataset.from_arrays(X, Y)


@pytest.mark.parametrize(
    ("arguments", "changes", "error", "message"),
    [
        ({"X": X[0], "y": Y}, {}, errors.ShapeError, "X must be"),
        ({"X": X, "y": Y[:-1]}, {}, errors.LabelError, "y must be"),
        ({"X": np.where(X[2, 3, 1] == X, np.inf, X), "y": Y}, {}, errors.NonFiniteError, "infinity"),
        ({"X": X}, {}, errors.DataError, r"fit needs labels: fit\(dataset\) or fit\(X, y\)"),
        ({"X": DS, "y": Y}, {}, errors.DataError, "a Dataset brings its own labels"),
        ({"X": DS, "lengths": np.full(48, 12)}, {}, errors.DataError, "a Dataset brings its own labels"),
        ({"X": DS}, {"device": "gpu"}, errors.CapabilityError, "no device 'gpu'"),
        (
            {"X": DS},
            {"lr": 1e37, "epochs": 2},
            errors.ConfigError,
            r"the training of fcn diverged.*Lower lr \(now 1e\+37\)",
        ),
        ({"X": DS}, {"output": "sigmoid"}, errors.ConfigError, "one probability, for two classes, but the data have 3"),
    ],
)
def test_what_cannot_be_learnt_from(arguments, changes, error, message):
    with pytest.raises(error, match=message):
        sp.TorchClassifier("fcn", config(**changes)).fit(**arguments)


def test_an_unknown_architecture_and_one_that_is_not_fitted(tmp_path):
    with pytest.raises(errors.UnknownNameError, match=r"no architecture 'bilstmm'. Did you mean 'bilstm'\?"):
        sp.TorchClassifier("bilstmm")
    clf = sp.TorchClassifier("fcn", config())
    assert repr(clf) == "TorchClassifier('fcn', not fitted)"
    for call in (
        lambda: clf.predict(X),
        lambda: clf.class_names,
        lambda: clf.log_proba(torch.tensor(X)),
        lambda: clf.save(tmp_path / "x"),
    ):
        with pytest.raises(errors.NotFittedError, match=r"not fitted yet. Call fit\(dataset\) or fit\(X, y\) first"):
            call()
    assert not (tmp_path / "x").exists()
    clf.fit(DS)
    assert repr(clf) == "TorchClassifier('fcn', 4 features, 3 classes)"
    for series in (X[..., :3], X[:, :9]):
        with pytest.raises(errors.FeatureMismatchError, match="TorchClassifier was fitted on"):
            clf.predict(series)


def test_one_sigmoid_output_for_two_classes(tmp_path):
    two = Y < 2
    clf = fit("bilstm", X[two], Y[two], output="sigmoid", epochs=3)
    assert clf.weights()["network.head.weight"].shape[0] == 1
    proba = clf.predict_proba(NEW)
    assert proba.shape == (len(NEW), 2)
    with torch.no_grad():
        standard = torch.tensor((NEW - clf._scaler.center) / clf._scaler.scale, dtype=torch.float32)
        z = clf._network.network(standard)
    np.testing.assert_allclose(proba[:, 1], torch.sigmoid(z)[:, 0].numpy(), atol=1e-6)
    loss = torch.nn.functional.cross_entropy(clf._network(standard), torch.ones(len(NEW), dtype=torch.long))
    binary = torch.nn.functional.binary_cross_entropy_with_logits(z, torch.ones_like(z))
    np.testing.assert_allclose(loss, binary, rtol=1e-5)
    clf.save(tmp_path)
    np.testing.assert_array_equal(sp.load_classifier(tmp_path, device="cpu").predict_proba(NEW), proba)


def test_nobody_is_in_the_validation_part_and_in_the_other(tmp_path, caplog):
    def learn(subjects):
        rows = np.arange(len(X))
        ds = sp.Dataset.from_arrays(X, Y, split=(rows, rows[:0]), subjects=subjects)
        return sp.TorchClassifier("fcn", config()).fit(ds)

    people = np.repeat(np.arange(6), 10)
    clf = learn(people)
    watched = clf.validation_rows_
    assert len(watched) == 10 and len(set(people[watched])) == 1 and not caplog.records
    clf.save(tmp_path)
    assert np.array_equal(sp.load_classifier(tmp_path).validation_rows_, watched)
    assert np.array_equal(learn(people * 0).validation_rows_, fit().validation_rows_)
    assert "too few to split the validation part off by subject: it is split at random" in caplog.text


FILE = FILES.file


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_a_loaded_classifier_predicts_the_same_bit_for_bit(architecture, tmp_path):
    clf = fit(architecture, X * 1e3 + 17, WORDS, layers=2, dropout=0.3, epochs=1)
    clf.save(tmp_path / "a" / "b")
    state = torch.get_rng_state()
    again = sp.load_classifier(tmp_path / "a" / "b", device="cpu")
    assert torch.equal(torch.get_rng_state(), state)
    lengths = np.full(60, 7)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.predict_proba(X, lengths), clf.predict_proba(X, lengths))
    assert (again.class_names, again.named, again.n_steps, again.n_features) == (("brisk", "calm", "wild"), True, 12, 4)
    assert again.history_ == clf.history_ and again.config == clf.config and repr(again) == repr(clf)
    again.save(tmp_path / "c")
    assert (tmp_path / "c" / FILE).read_bytes() == (tmp_path / "a" / "b" / FILE).read_bytes()
    clf.history_["loss"] = [1.0, math.nan]
    clf.save(tmp_path)
    assert math.isnan(sp.load_classifier(tmp_path).history_["loss"][1])
    with pytest.raises(errors.CapabilityError):  # which is not the folder's fault
        sp.load_classifier(tmp_path, device="gpu")


def other(change):
    return lambda folder: rewrite(folder / FILE, change)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / FILE).unlink(), r"holds no classifier.safetensors, so it is not a saved classifier"),
        (other(lambda h: h.update(format=1)), r"has format 1, this version reads format 3"),
        (other(lambda h: h.pop("scaler")), r"damaged classifier: KeyError: 'scaler'"),
        (other(lambda h: h.update(validation_rows=[-1])), r"validation_rows are not indices of series"),
        (other(lambda h: h.update(architecture="mlp")), r"damaged classifier: .* no architecture 'mlp'"),
        (lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:-9]), r"damaged .* Restore it from a copy"),
        (other(lambda h: h.update(arrays="0")), r"its arrays do not match their sha256"),
    ],
)
def test_a_damaged_folder_says_so(damage, message, tmp_path):
    fit(epochs=1).save(tmp_path / "clf")
    damage(tmp_path / "clf")
    with pytest.raises(errors.FileFormatError, match=rf"(?s){message}"):
        sp.load_classifier(tmp_path / "clf", device="cpu")
