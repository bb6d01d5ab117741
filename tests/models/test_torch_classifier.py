"""TorchClassifier: what fit takes, what it promises, and what it refuses."""

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import (
    CapabilityError,
    ConfigError,
    DataError,
    FeatureMismatchError,
    LabelError,
    NonFiniteError,
    NotFittedError,
    ShapeError,
    UnknownNameError,
)
from sparcets.core.seeding import spawn
from sparcets.data.splits import stratified_split
from sparcets.models import network as torch_classifier
from sparcets.models.base import frozen
from sparcets.testing.data import make_series
from sparcets.training import ARCHITECTURES

X, Y = make_series(60, n_steps=12)
NEW, TRUTH = make_series(30, n_steps=12, seed=1)
WORDS = np.array(["calm", "wild", "brisk"])  # of classes 0, 1, 2; in the alphabet: brisk, calm, wild


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


def test_string_labels_name_the_classes_and_whole_numbers_do_not():
    named, numbered = fit(labels=WORDS[Y].tolist(), epochs=1), fit(epochs=1)
    assert named.class_names == ("brisk", "calm", "wild") and named.named
    assert numbered.class_names == ("0", "1", "2") and not numbered.named


@pytest.mark.parametrize("architecture", ["bilstm", "fcn", "transformer"])
def test_the_same_seed_gives_the_same_weights_bit_for_bit_whatever_the_global_state(architecture):
    settings = {"epochs": 2, "dropout": 0.4, "layers": 2}
    fitted = []
    for state, seed in ((1, 7), (2, 7), (2, 8)):
        torch.manual_seed(state)
        np.random.seed(state)  # noqa: NPY002
        fitted.append(fit(architecture, seed=seed, **settings))
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
    assert torch.equal(torch.cuda.get_rng_state(), state)
    assert same_weights(a, b)
    a.save(tmp_path)
    on_cpu = sp.load_classifier(tmp_path, device="cpu")
    np.testing.assert_allclose(on_cpu.predict_proba(X, lengths), a.predict_proba(X, lengths), atol=1e-4)


def test_the_weights_kept_are_those_of_the_best_epoch():
    noise = np.random.default_rng(0).permutation(Y)  # nothing to learn, so it soon gets worse
    clf = fit(labels=noise, epochs=12, patience=12)
    losses = clf.history_["validation_loss"]
    _, watched = stratified_split(noise, test_size=clf.config.validation, seed=spawn(clf.config.seed, "validation"))
    p = clf.predict_proba(X[watched])[np.arange(len(watched)), noise[watched]]
    assert -np.log(p).mean() == pytest.approx(min(losses), abs=1e-3)
    assert losses[-1] > min(losses) + 0.01  # otherwise this shows nothing


def test_it_stops_early():
    assert len(fit(epochs=300, patience=2).history_["loss"]) < 100


def test_a_second_fit_forgets_the_first():
    clf = fit(series=X[:, :8] * 50, labels=WORDS[Y], epochs=2)
    clf.fit(X, Y)
    fresh = fit(epochs=2)
    assert clf.class_names == ("0", "1", "2") and not clf.named and clf.n_steps == 12
    assert clf.history_ == fresh.history_
    np.testing.assert_array_equal(clf.predict_proba(NEW), fresh.predict_proba(NEW))


def test_a_failed_check_keeps_the_first_fit_and_a_training_cut_off_is_no_fit(monkeypatch):
    clf = fit(epochs=1)
    before = clf.predict_proba(NEW)
    with pytest.raises(NonFiniteError):
        clf.fit(np.full_like(X, np.nan), Y)
    np.testing.assert_array_equal(clf.predict_proba(NEW), before)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch_classifier, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, Y)
    with pytest.raises(NotFittedError):
        clf.predict(NEW)


def test_series_that_were_checked_train_the_same_and_may_lack_a_class_or_have_probabilities_as_labels():
    def learn(labels, names=("0", "1", "2")):
        clf = sp.TorchClassifier("fcn", config(epochs=2))
        return clf.fit_unchecked(X, labels, None, names, named=True, progress=False)

    assert same_weights(learn(Y), fit(epochs=2))
    assert learn(Y, tuple("abcd")).predict_proba(NEW).shape == (30, 4)  # no series of class d
    certain, doubtful = learn(np.eye(3, dtype=np.float32)[Y]), learn(np.full((60, 3), 1 / 3, dtype=np.float32))
    assert certain.predict_proba(X).max(1).mean() > doubtful.predict_proba(X).max(1).mean() + 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ">f4"])
def test_series_of_other_types_read_only_or_backwards_are_the_same_series(dtype):
    clf = fit(epochs=2)
    expected = clf.predict_proba(NEW)
    other = NEW.astype(dtype)
    other.setflags(write=False)
    np.testing.assert_allclose(clf.predict_proba(other), expected, atol=0.01 if dtype is np.float16 else 1e-6)
    backwards = np.ascontiguousarray(NEW[:, ::-1])[:, ::-1]
    np.testing.assert_array_equal(clf.predict_proba(backwards), expected)
    locked = X.copy()
    locked.setflags(write=False)
    np.testing.assert_array_equal(fit(series=locked[:, ::-1][:, ::-1], epochs=2).predict_proba(NEW), expected)


def test_ten_series_a_class_of_one_and_batches_of_one_are_enough():
    small = fit(series=X[:10], labels=Y[:10] % 2, epochs=2)
    assert small.predict_proba(NEW).shape == (30, 2)
    rows = np.r_[np.flatnonzero(Y == 0)[:6], np.flatnonzero(Y == 1)[:6], np.flatnonzero(Y == 2)[:1]]
    alone = fit(series=X[rows], labels=Y[rows], epochs=60, patience=60)
    assert alone.predict(X[rows])[-1] == 2
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


@pytest.mark.parametrize("architecture", ["bigru", "bilstm"])
def test_predictions_are_the_same_bits_while_another_thread_has_frozen_the_network(architecture, tmp_path):
    fitted = sp.TorchClassifier(architecture, config(epochs=2)).fit(X, Y)
    fitted.save(tmp_path)

    def predict(classifier):
        return [classifier.predict_proba(NEW[i : i + 1 + i % 3]) for i in range(20)]

    for classifier in (fitted, sp.load_classifier(tmp_path)):
        alone = predict(classifier)
        with frozen(classifier._network):
            assert all(map(np.array_equal, predict(classifier), alone))
        classifier._network.train()  # then it is frozen by the call itself
        assert all(map(np.array_equal, predict(classifier), alone))


def test_lengths_travel_with_a_dataset():
    series, labels, lengths = vowels()
    ds = sp.Dataset.from_arrays(series, labels, lengths=lengths)
    a = sp.TorchClassifier("bigru", config(epochs=1)).fit(ds)
    b = fit("bigru", ds.X_train, ds.y_train, lengths=ds.lengths_train, epochs=1)
    assert same_weights(a, b)


@pytest.mark.parametrize("architecture", ["bilstm", "transformer"])
def test_gradients_agree_with_finite_differences_in_the_data_units(architecture):
    clf = fit(architecture, X * 100 + 7, epochs=1)
    clf._network.double()
    clf._standardise = lambda x, lengths: (x - clf._center) / clf._scale
    x = torch.tensor(X[:2, :4] * 100 + 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(clf.log_proba, (x,), eps=1e-3, atol=1e-6)
    assert not any(p.requires_grad or p.grad is not None for p in clf._network.parameters())


@pytest.mark.parametrize(
    ("series", "labels", "error"),
    [
        (X[0], Y, ShapeError),
        (X[:0], Y[:0], ShapeError),
        (X, Y[:-1], LabelError),
        (X, Y * 0, LabelError),
        (X, np.where(Y == 1, 0, Y), LabelError),
        (X, np.where(Y == 1, 2**63, Y.astype(np.uint64)), LabelError),
        (X, Y - 1, LabelError),
        (np.where(X[2, 3, 1] == X, np.inf, X), Y, NonFiniteError),
    ],
)
def test_data_that_cannot_be_learnt_from(series, labels, error):
    with pytest.raises(error):
        sp.TorchClassifier("fcn", config()).fit(series, labels)


def test_other_mistakes_each_have_a_message():
    with pytest.raises(UnknownNameError, match=r"no architecture 'bilstmm'. Did you mean 'bilstm'\?"):
        sp.TorchClassifier("bilstmm")
    clf = sp.TorchClassifier("fcn", config())
    for call in (lambda: clf.predict(X), lambda: clf.class_names, lambda: clf.log_proba(torch.tensor(X))):
        with pytest.raises(NotFittedError, match=r"not fitted yet. Call fit\(dataset\) or fit\(X, y\) first"):
            call()
    with pytest.raises(DataError, match=r"fit needs labels: fit\(dataset\) or fit\(X, y\)"):
        clf.fit(X)
    for extra in ({"y": Y}, {"lengths": np.full(48, 12)}):
        with pytest.raises(DataError, match="a Dataset brings its own labels"):
            clf.fit(sp.Dataset.from_arrays(X, Y), **extra)
    with pytest.raises(CapabilityError, match="no device 'gpu'"):
        fit(device="gpu")
    with pytest.raises(ConfigError, match=r"the training of fcn diverged.*Lower lr \(now 1e\+37\)"):
        fit(lr=1e37, epochs=2)
    fitted = fit(epochs=1)
    for series in (X[..., :3], X[:, :9]):
        with pytest.raises(FeatureMismatchError, match="TorchClassifier was fitted on"):
            fitted.predict(series)


def test_it_says_what_it_is():
    assert repr(sp.TorchClassifier("tcn")) == "TorchClassifier('tcn', not fitted)"
    assert repr(fit(epochs=1)) == "TorchClassifier('fcn', 4 features, 3 classes)"


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
    with pytest.raises(ConfigError, match="output='sigmoid' is one probability, for two classes, but the data have 3"):
        fit(output="sigmoid")


PEOPLE = np.repeat(np.arange(6), 10)  # of the sixty series


def with_subjects(subjects):
    rows = np.arange(len(X))
    return sp.Dataset.from_rows(X, Y, train=rows, test=rows[:0], subjects=subjects)


def test_nobody_is_in_the_validation_part_and_in_the_other(tmp_path, caplog):
    clf = sp.TorchClassifier("fcn", config()).fit(with_subjects(PEOPLE))
    watched = clf.validation_rows_
    assert len(watched) == 10 and len(set(PEOPLE[watched])) == 1 and not caplog.records
    clf.save(tmp_path)
    assert np.array_equal(sp.load_classifier(tmp_path).validation_rows_, watched)


def test_a_single_subject_is_split_at_random_and_that_is_said(caplog):
    clf = sp.TorchClassifier("fcn", config()).fit(with_subjects(np.zeros(60, dtype=int)))
    assert np.array_equal(clf.validation_rows_, fit().validation_rows_)
    assert "too few to split the validation part off by subject: it is split at random" in caplog.text


def test_what_was_learnt_from_is_no_validation_part():
    """A class with one series is needed for training: early stopping watches what it learns from."""
    labels = np.where(np.arange(60) == 0, 2, Y % 2)
    assert len(fit(labels=labels).validation_rows_) == 0
