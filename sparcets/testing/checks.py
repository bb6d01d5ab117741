"""check_explainer: what every explainer guarantees, as checks that a method's author can run.

    from sparcets.testing import check_explainer
    check_explainer("mymethod")          # a registered name, or the class itself

``CHECKS`` lists the checks, functions of a :class:`Subject`, so that a test runner can take them one by one.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from sparcets.core.constraints import Constraints
from sparcets.core.errors import CapabilityError, ConfigError, DataError, NotFittedError, SparcetsError
from sparcets.core.explanation import STATUSES, Explanation
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.core.settings import IcsConfig, NearestConfig
from sparcets.core.target import AtLeast
from sparcets.data.dataset import Dataset
from sparcets.io.explanations import load_explanation
from sparcets.methods import EXPLAINERS
from sparcets.methods.base import BaseExplainer
from sparcets.methods.folder import load_as
from sparcets.models.base import Classifier
from sparcets.models.wrap import wrap
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MaskedMeanModule, MeanModule, mean_proba


@dataclass
class Subject:
    """A method under test with its smallest settings, a hand-made model and small data.

    ``kind`` is the explainer's class; its config has ``tiny()``.
    """

    kind: type[BaseExplainer[Any]]

    @cached_property
    def module(self) -> torch.nn.Module:
        """The model to explain."""
        return MeanModule()

    @cached_property
    def classifier(self) -> Classifier:
        """The model, wrapped."""
        return wrap(self.module, n_classes=3)

    @cached_property
    def data(self) -> tuple[FloatArray, IntArray]:
        """Training series and labels."""
        return make_series(120, seed=0)

    @cached_property
    def queries(self) -> FloatArray:
        """Series that are not in class 1."""
        X, y = make_series(36, seed=1)
        return np.asarray(X[y != 1])

    def build(self, **changes: Any) -> BaseExplainer[Any]:
        """Return an explainer that is not fitted."""
        config: Any = self.kind.config_class
        return self.kind(self.classifier, config.from_dict({**config.tiny().to_dict(), **changes}))

    def fit(self, **changes: Any) -> BaseExplainer[Any]:
        """Return a freshly fitted explainer."""
        return self.build(**changes).fit(*self.data)

    @cached_property
    def fitted(self) -> BaseExplainer[Any]:
        """An explainer fitted once, for the checks that do not change it."""
        return self.fit()

    @cached_property
    def answers(self) -> Explanation:
        """Its answers to the queries, for the checks that only look at them."""
        return self.fitted.explain(self.queries, target=1)


def check_explainer(method: str | type[BaseExplainer[Any]]) -> None:
    """Run every check on a method; the first broken guarantee raises an AssertionError that says which."""
    subject = Subject(EXPLAINERS.load(method) if isinstance(method, str) else method)
    for check in CHECKS:
        check(subject)


def _same(a: Explanation, b: Explanation) -> bool:
    return np.array_equal(a.counterfactual, b.counterfactual, equal_nan=True) and np.array_equal(a.status, b.status)


def _raises(kind: type[SparcetsError], call: Callable[[], object]) -> str:
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__} was raised")


def check_answers_are_well_formed(s: Subject) -> None:
    """Shapes, finite values, known statuses; ``valid`` is the classifier's own word."""
    e = s.answers
    assert e.query.shape == e.counterfactual.shape == s.queries.shape, f"answers of shape {e.counterfactual.shape}"
    assert np.array_equal(e.query, s.queries), "the query is not what was passed"
    assert e.counterfactual.dtype == s.queries.dtype, f"answers of type {e.counterfactual.dtype}"
    assert np.isfinite(e.counterfactual).all(), "an answer is not finite"
    assert set(e.status.tolist()) <= set(STATUSES), f"unknown statuses among {set(e.status.tolist())}"
    assert np.array_equal(e.valid, s.classifier.predict(e.counterfactual) == e.target), "valid is not the model's word"
    assert np.array_equal(e.changed, e.delta != 0), "changed is not delta != 0"
    _check_statuses(e)
    silent = [not str(r) for r, status in zip(e.reason, e.status, strict=True) if status == "not_found"]
    assert not any(silent), "an answer that was not found gives no reason"
    assert e.changed[e.status != "unchanged"].any(), "no query was changed at all"


def _check_statuses(e: Explanation) -> None:
    """``not_found`` and ``valid`` exclude each other, and one of them holds."""
    assert (e.valid | (e.status == "not_found")).all(), "an answer that failed does not say so"
    assert not (e.valid & (e.status == "not_found")).any(), "an answer that convinces is called not_found"


def check_negligible_changes_are_none(s: Subject) -> None:
    """No change is smaller than 1e-6 of the feature's training range."""
    e = s.answers
    size = np.abs(e.counterfactual.astype(np.float64) - e.query)
    smallest = np.broadcast_to(1e-6 * e.info.span, size.shape)
    assert (size[e.changed] >= smallest[e.changed]).all(), "a change is smaller than 1e-6 of the feature's range"


def check_same_seed_same_bytes(s: Subject) -> None:
    """Two fits with one seed give the same answers, bit for bit."""
    first, second = (explainer.explain(s.queries, target=1) for explainer in (s.fitted, s.fit()))
    assert _same(first, second), "two fits with one seed give different answers"


def check_batch_size_does_not_matter(s: Subject) -> None:
    """Batches of 5 and of the default size give the same answers to 1e-6 (standardised)."""
    small = s.fit(batch_size=5).explain(s.queries, target=1)
    large = s.answers
    difference = np.abs(small.counterfactual - large.counterfactual) / large.info.scaler.scale
    assert difference.max() <= 1e-6, f"answers differ by {difference.max():.2g} with the batch size"


def check_nothing_is_left_behind(s: Subject) -> None:
    """Inputs, the module's mode and gradients, and the global random state are as before."""
    explainer, X = s.fitted, s.queries.copy()
    module = s.module.train()
    weights = copy.deepcopy(module.state_dict())
    state_np, state_torch = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    s.fit()
    explainer.explain(X, target=1)
    assert np.array_equal(X, s.queries), "the queries were written to"
    assert module.training, "the module was left in evaluation mode"
    assert all(p.requires_grad for p in module.parameters()), "the module's weights were left without requires_grad"
    assert all(p.grad is None for p in module.parameters()), "gradients were left in the module"
    assert all(torch.equal(weights[k], v) for k, v in module.state_dict().items()), "the module's weights were changed"
    assert torch.equal(state_torch, torch.get_rng_state()), "torch's random state moved"
    after: Any = np.random.get_state()  # noqa: NPY002
    before: Any = state_np
    assert after[2] == before[2] and np.array_equal(after[1], before[1]), "NumPy's random state moved"


def check_constraints_hold(s: Subject) -> None:
    """Immutable features, frozen steps, ranges, steps, directions and groups hold exactly."""
    constraints = Constraints(
        immutable=["f3"],
        frozen=[(0, 4)],
        ranges={"f1": (-1.0, 1.8)},
        max_step={"f0": 0.3},
        direction={"f1": "up"},
        groups={"pair": ["f0", "f2"]},
    )
    e = s.fitted.explain(s.queries, target=1, constraints=constraints)
    cf, q = e.counterfactual.astype(np.float64), e.query.astype(np.float64)
    assert not e.changed[..., 3].any(), "an immutable feature was changed"
    assert not e.changed[:, :4].any(), "a frozen step was changed"
    lifted = cf[..., 1][e.changed[..., 1]]
    assert ((lifted >= -1.0) & (lifted <= 1.8)).all(), "a change left its range"
    assert (e.delta[..., 1] >= 0).all(), "a change went against its direction"
    own = np.abs(np.diff(q[..., 0], axis=1))
    assert (np.abs(np.diff(cf[..., 0], axis=1)) <= np.maximum(0.3, own)).all(), "a step is too large"
    assert np.array_equal(e.changed[..., 0], e.changed[..., 2]), "a group did not change together"
    assert not e.mutable[3] and e.mutable[:3].all(), "the explanation does not say what was mutable"


def check_constraints_on_shape_hold(s: Subject) -> None:
    """Few features, whole numbers, monotone stretches, fixed sums and the user's own projection hold exactly."""
    few = s.fitted.explain(s.queries, target=1, constraints=Constraints(max_features=2, frozen={"f0": [(None, 5)]}))
    assert (few.changed.any(1).sum(1) <= 2).all(), "more features were changed than allowed"
    assert not few.changed[:, :5, 0].any(), "a frozen step of one feature was changed"

    shape = Constraints(integer=["f0"], monotone={"f1": "up"}, fixed_sum=[("f2", "f3")])
    e = s.fitted.explain(s.queries, target=1, constraints=shape)
    cf, q = e.counterfactual.astype(np.float64), e.query.astype(np.float64)
    whole = cf[..., 0][e.changed[..., 0]]
    assert np.array_equal(whole, np.rint(whole)), "a changed entry is not a whole number"
    both = e.changed[:, 1:, 1] & e.changed[:, :-1, 1]
    assert (np.diff(cf[..., 1], axis=1)[both] >= 0).all(), "a changed stretch is not monotone"
    np.testing.assert_allclose(cf[..., 2:].sum(-1), q[..., 2:].sum(-1), atol=1e-5, err_msg="a sum did not stay fixed")

    own = s.fitted.explain(s.queries, target=1, constraints=Constraints(project=_first_feature_constant))
    moved = own.changed.any((1, 2))
    assert (np.ptp(own.delta[moved][..., 0], axis=1) < 1e-5).all(), "an answer does not obey the user's projection"


def _first_feature_constant(counterfactuals: FloatArray, queries: FloatArray) -> FloatArray:
    """Move the first feature by its mean change."""
    moved: FloatArray = counterfactuals.copy()
    moved[..., 0] = queries[..., 0] + (counterfactuals - queries)[..., 0].mean(1, keepdims=True)
    return moved


def check_unchanged_and_not_found(s: Subject) -> None:
    """A query in its class already is left alone; what the constraints forbid is ``not_found`` with a reason."""
    X, _ = make_series(12, seed=2)
    e = s.fitted.explain(X, target=1)
    already = s.classifier.predict(X) == 1
    assert np.array_equal(e.status == "unchanged", already), "unchanged are not the queries in the target class"
    assert not e.changed[already].any() and e.valid[already].all(), "a query in the target class was changed"
    blocked = s.fitted.explain(s.queries, target=1, constraints=Constraints(immutable=[0, 1, 2]))
    assert (blocked.status == "not_found").all(), "an answer was found where the constraints allow none"
    assert not blocked.valid.any() and all(str(r) for r in blocked.reason), "not_found, but valid or without a reason"


def check_sparsity_is_a_cap(s: Subject) -> None:
    """No more than the given share changes, in any query, of what the constraints allow to change."""
    frozen = Constraints(immutable=["f3"], frozen={"f1": [(0, 5)], "f2": [(4, None)]}, groups={"pair": ["f0", "f1"]})
    T = s.queries.shape[1]
    steps_free = {"f0": T - 5, "f1": T - 5, "f2": 4}  # a step that is frozen for one of a pair is so for both
    cases = ((None, 4 * T, (0.001, 0.3)), (frozen, sum(steps_free.values()), (0.05, 0.3)))
    for constraints, free, shares in cases:
        for share in shares:
            e = s.fitted.explain(s.queries, target=1, sparsity=share, constraints=constraints)
            _check_statuses(e)
            changed = (e.counterfactual != e.query).sum((1, 2)) / free
            assert changed.max() <= share, f"sparsity={share} gave {changed.max():.3f} of what may change"
            assert np.allclose(e.share_changed, changed), "the share told is not of the entries that may change"


def check_several_answers(s: Subject) -> None:
    """``n`` answers per query stand together; the valid ones differ and come first, missing ones are ``not_found``."""
    for n in (3, 45):
        e = s.fitted.explain(s.queries[:4], target=1, n=n)
        assert len(e) == 4 * n, f"n={n} gave {len(e)} answers to 4 queries"
        assert np.array_equal(e.query_index, np.repeat(np.arange(4), n)), "answers to one query do not stand together"
        assert np.array_equal(e.query, np.repeat(s.queries[:4], n, axis=0)), "the query is not what was passed"
        _check_statuses(e)
        for i in range(4):
            valid = e[n * i : n * (i + 1)]
            kept = valid.counterfactual[valid.valid].reshape(int(valid.valid.sum()), -1)
            assert len(np.unique(kept, axis=0)) == len(kept), "two valid answers to one query are the same"
            assert not (~valid.valid[:-1] & valid.valid[1:]).any(), "a failed answer stands before a valid one"


def check_names_travel(s: Subject) -> None:
    """Names, units, rate and mutable features of a Dataset reach the explanation; targets may be names."""
    X, y = s.data
    names, classes = ["left", "right", "top", "fixed"], ["calm", "brisk", "wild"]
    ds = Dataset.from_arrays(
        X, y, feature_names=names, class_names=classes, units="m", sampling_rate=50, mutable=["left", "right", "top"]
    )
    e = s.build().fit(ds).explain(s.queries, target="brisk")
    assert (e.target == 1).all(), "the target by name is not the class of that name"
    assert e.feature_names == tuple(names) and e.class_names == tuple(classes), "names were lost"
    assert e.info.units == ("m",) * 4 and e.info.sampling_rate == 50, "units or sampling rate were lost"
    assert not e.changed[..., 3].any(), "an immutable feature of the data set was changed"


def check_saving(s: Subject) -> None:
    """A saved explainer answers as before; a saved explanation is the same."""
    e = s.answers
    with tempfile.TemporaryDirectory() as folder:
        s.fitted.save(folder)
        again = load_as(s.kind, folder, s.classifier)
        answers = again.explain(s.queries, target=1).counterfactual
        assert np.allclose(answers, e.counterfactual, atol=1e-6), "a loaded explainer answers otherwise"
        e.save(f"{folder}/run.npz")
        assert _same(load_explanation(f"{folder}/run.npz"), e), "a loaded explanation is not the one saved"


def check_refit_forgets(s: Subject) -> None:
    """A second fit is as good as a first one."""
    X, y = s.data
    again = s.build().fit(X[:60] * 2 + 1, y[:60]).fit(X, y).explain(s.queries, target=1)
    assert _same(again, s.answers), "a second fit remembers the first"


def check_gaps(s: Subject) -> None:
    """Missing entries come back missing; they are never changed nor counted."""
    X, y = s.data
    drawn = np.random.default_rng(0)
    X, queries = (np.where(drawn.random(Z.shape) < 0.1, np.float32(np.nan), Z) for Z in (X, s.queries))
    classifier = wrap(s.module, n_classes=3, missing="mean")
    explainer = s.kind(classifier, s.build().config).fit(X, y)
    given, gaps = queries.copy(), np.isnan(queries)
    e = explainer.explain(given, target=1)
    assert np.array_equal(given, queries, equal_nan=True), "the queries were written to"
    assert np.isnan(e.counterfactual[gaps]).all(), "a missing entry was filled"
    assert np.isfinite(e.counterfactual[~gaps]).all(), "an answer is not finite where something was measured"
    assert not e.changed[gaps].any() and not e.delta[gaps].any(), "a missing entry counts as changed"
    assert e.changed[e.status != "unchanged"].any(), "no query was changed at all"
    assert np.array_equal(e.valid, classifier.predict(e.counterfactual) == e.target), "valid is not the model's word"
    _check_statuses(e)
    capped = explainer.explain(given, target=1, sparsity=0.3)
    shares = capped.changed.sum((1, 2)) / (~gaps).sum((1, 2))
    assert shares.max() <= 0.3, "missing entries were counted among those that may change"
    assert np.allclose(capped.share_changed, shares), "missing entries are counted in the share of changed ones"
    given[gaps] = -np.float32(np.nan)  # NaN of other bits
    assert _same(explainer.explain(given, target=1), e), "what stands at a missing place matters"
    with tempfile.TemporaryDirectory() as folder:
        e.save(f"{folder}/run.npz")
        assert _same(load_explanation(f"{folder}/run.npz"), e), "a loaded explanation is not the one saved"


def check_not_fitted(s: Subject) -> None:
    """``explain`` before ``fit`` says what to do."""
    assert "fit" in _raises(NotFittedError, lambda: s.build().explain(s.queries, target=1))


def check_settings_of_another_method(s: Subject) -> None:
    """Settings of another method, their class or a dictionary are refused by name, before any work."""
    own, name = s.kind.config_class, s.kind.__name__
    foreign: Any = IcsConfig if own is NearestConfig else NearestConfig
    for config, came in ((foreign(), foreign.__name__), (own, f"the class {own.__name__}"), ({}, "dict")):
        explainer = s.kind(s.classifier, config)
        message = _raises(ConfigError, lambda explainer=explainer: explainer.fit(*s.data))  # type: ignore[misc]
        assert f"{name} takes a" in message and f"{own.__name__}, got {came}." in message, f"unclear: {message}"


def check_capabilities(s: Subject) -> None:
    """A black box is explained, or refused before any work."""
    X, y = s.data
    black_box = s.kind(wrap(mean_proba, n_classes=3), s.build().config)
    if s.kind.needs_gradients:
        assert "gradient" in _raises(CapabilityError, lambda: black_box.fit(X, y))
    else:
        e = black_box.fit(X, y).explain(s.queries, target=1)
        assert np.array_equal(e.valid, mean_proba(e.counterfactual).argmax(1) == 1), "valid is not the model's word"


def check_unequal_lengths(s: Subject) -> None:
    """Series of unequal length are explained, or refused before any work; padding has no influence at all."""
    X, y = s.data
    queries, n_steps = s.queries[:12], X.shape[1]
    lengths, short = (n_steps - np.arange(len(series)) % 6 for series in (X, queries))
    classifier = wrap(MaskedMeanModule(), n_classes=3)
    explainer = s.kind(classifier, s.build().config)
    if not s.kind.supports_lengths:
        assert "length" in _raises(CapabilityError, lambda: explainer.fit(X, y, lengths=lengths))
        return
    padding = ~Series(queries, short).inside
    filled = np.where(Series(X, lengths).inside[..., None], X, X.dtype.type(np.nan))
    e = explainer.fit(filled, y, lengths=lengths).explain(queries, target=1, lengths=short)
    assert not e.changed[padding].any() and not e.counterfactual[padding].any(), "padding was changed"
    assert np.array_equal(e.valid, classifier.predict(e.counterfactual, short) == 1), "valid is not the model's word"
    assert e.valid.mean() > 0.5, f"of series of unequal length, {e.valid.mean():.2f} reach their target"
    for what in (np.nan, 9.0):
        given = np.where(padding[..., None], queries.dtype.type(what), queries)
        assert _same(e, explainer.explain(given, target=1, lengths=short)), f"padding with {what} has an influence"
    listed = [series[:n] for series, n in zip(queries, short, strict=True)]
    assert _same(e, explainer.explain(listed, target=1)), "a list of series is answered otherwise than padded ones"
    shortest = np.flatnonzero(short == short.min())[:2]
    less = explainer.explain(queries[shortest, : short.min()], target=1, lengths=short[shortest])
    assert _same(e[shortest], less), "the amount of padding has an influence"
    assert "lengths" in _raises(DataError, lambda: explainer.explain(queries, target=1))
    full = s.fitted.explain(queries, target=1, lengths=np.full(len(queries), n_steps))
    assert _same(full, s.answers[: len(queries)]), "lengths that say nothing have an influence"


def check_numbers(s: Subject) -> None:
    """A model that predicts numbers is explained, with its own number as the word, or refused before any work."""
    X, regressor = s.data[0], wrap(s.module, task="regression")
    y, explainer = regressor.predict(X), s.kind(regressor, s.build().config)
    if not s.kind.supports_numbers:
        assert "predicts numbers" in _raises(CapabilityError, lambda: explainer.fit(X, y))
        return
    wanted = float(np.quantile(y[:, 1], 0.8))
    e = explainer.fit(X, y).explain(s.queries, target=AtLeast(wanted, output=1), constraints=Constraints(immutable=[3]))
    after = regressor.predict(e.counterfactual)
    assert np.allclose(e.prediction, after, atol=1e-4), "prediction is not the model's number"
    assert np.array_equal(e.valid, e.prediction[:, 1] >= wanted), "valid is not the model's number within the target"
    assert e.valid.any(), "no number was reached"
    assert not e.changed[..., 3].any(), "an immutable feature was changed"
    there = e.prediction_before[:, 1] >= wanted
    assert (e.status[there] == "unchanged").all(), "a number within its target was changed"
    _check_statuses(e)


# All of them, in this order.
CHECKS: tuple[Callable[[Subject], None], ...] = tuple(
    check for name, check in list(globals().items()) if name.startswith("check_") and check is not check_explainer
)
