"""Each check catches the method that breaks its guarantee, and lets an honest one pass."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sparcets.core.errors import DataError
from sparcets.core.series import Series
from sparcets.core.settings import NearestConfig
from sparcets.methods.nearest import Nearest
from sparcets.models.views import Goal
from sparcets.testing import CHECKS, Subject, check_explainer


class Honest(Nearest):
    """Not registered, and does nothing wrong."""


def changing(spoil):
    """Return a method whose answers are spoilt by ``spoil(answers, request, method)``."""

    class Changing(Nearest):
        def _explain(self, request):
            answers = super()._explain(request)
            spoil(answers, request, self)
            return answers

    return Changing


def queries_of(request):
    return np.repeat(request.X, request.n, axis=0)


def not_finite(a, request, _):
    a.counterfactual[0, 0, 3] = np.nan


def unchanging(a, request, _):
    a.counterfactual[:] = queries_of(request)


def modest(a, request, _):
    """Call what convinces the classifier not found."""
    a.status[:], a.reason[:] = "not_found", "too modest"


def silent(a, request, _):
    """Say nothing of why it failed."""
    a.counterfactual[:] = queries_of(request)
    a.counterfactual[0] += 1
    a.status[:], a.reason[:] = "not_found", ""


def trembling(a, request, _):
    """Move an entry by less than counts as a change."""
    a.counterfactual[:, 0, 3] = np.nextafter(queries_of(request)[:, 0, 3], np.float32(np.inf))


def lifting(place, by=1.0):
    """Return what lifts some entries, by a number or by what it is for a request."""

    def spoil(a, request, _):
        a.counterfactual[place] += by(request) if callable(by) else by

    return spoil


def setting(place, value):
    def spoil(a, request, _):
        a.counterfactual[place] = value

    return spoil


def leaves_evaluation_mode(a, request, method):
    method.classifier.module.eval()


def leaves_gradients(a, request, method):
    method.classifier.module.sharpness.grad = torch.ones(())


def changes_weights(a, request, method):
    with torch.no_grad():
        method.classifier.module.sharpness.mul_(1.01)


def breaks_groups(a, request, _):
    a.counterfactual[..., 2] = queries_of(request)[..., 2]


def never_gives_up(a, request, _):
    """Change what may not change rather than find nothing."""
    a.counterfactual[..., 1] += 9
    a.status[:] = "generated"


def repeats(a, request, _):
    """Give the first answer over and over."""
    a.counterfactual[:] = np.repeat(a.counterfactual[:: request.n], request.n, axis=0)
    a.status[:] = "neighbour"


def worst_first(a, request, _):
    for values in (a.counterfactual, a.status, a.reason):
        by_query = values.reshape(-1, request.n, *values.shape[1:])
        by_query[:] = by_query[:, ::-1].copy()


def fills_gaps(a, request, _):
    a.counterfactual[:] = np.nan_to_num(a.counterfactual)


class Forgetful(Nearest):
    """Saves less than it knows."""

    def _state(self):
        return {name: value[:40] for name, value in super()._state().items()}


class Remembers(Nearest):
    """Keeps the series of earlier fits."""

    def _fit(self, job):
        before = getattr(self, "_series", None)
        super()._fit(job)
        if before is not None:
            self._series = Series.join([self._series, before.with_values((before.values - 1) / 2 + 0.01)])
            self._y = np.concatenate([self._y, np.full(len(before), 1)])


class AnswersUnfitted(Nearest):
    def _fitted(self):
        raise DataError("something else")


class TakesAnySettings(Nearest):
    def _check_parameters(self):
        self.config = NearestConfig()


class PretendsToNeedNoGradients(Nearest):
    def _fit(self, job):
        self.classifier.module  # noqa: B018  (a black box has none)
        super()._fit(job)


class ChangesPadding(Nearest):
    def _answer_classes(self, block, call, bar):
        e = super()._answer_classes(block, call, bar)
        if e.lengths is not None:
            e.counterfactual[:, -1] += 1
        return e


class IgnoresLengths(Nearest):
    def _explain(self, request):
        return super()._explain(replace(request, series=Series(request.X)))


class ForgetsNames(Nearest):
    def _answer_classes(self, block, call, bar):
        e = super()._answer_classes(block, call, bar)
        return replace(e, info=replace(e.info, units=None))


class CountsGaps(Nearest):
    """Takes the cap as a share of all entries, missing ones included."""

    def _explain(self, request):
        if request.at_most is not None:
            request = replace(request, at_most=np.floor(0.3 * np.prod(request.X.shape[1:]) * np.ones(len(request))))
        return super()._explain(request)


class PretendsToExplainNumbers(Nearest):
    """Offers every series it knows, whatever its number."""

    def _known(self, request):
        bounds = np.broadcast_to([-np.inf, 1e-9], request.goal.bounds.shape)
        return super()._known(replace(request, goal=Goal(bounds, request.goal.names)))


IMMUTABLE = (..., 3)
RANDOM = lifting(IMMUTABLE, lambda request: np.random.default_rng().normal(0, 0.1))
SHAPES = "constraints_on_shape_hold"
# Whatever a check is for, and what breaks it: a method, or what spoils the answers of one.
BROKEN = [
    ("numbers", PretendsToExplainNumbers, "no number was reached"),
    ("answers_are_well_formed", not_finite, "an answer is not finite"),
    ("answers_are_well_formed", unchanging, "no query was changed at all"),
    ("answers_are_well_formed", modest, "an answer that convinces is called not_found"),
    ("answers_are_well_formed", silent, "gives no reason"),
    ("negligible_changes_are_none", trembling, "smaller than 1e-6 of the feature's range"),
    ("same_seed_same_bytes", RANDOM, "two fits with one seed give different answers"),
    ("batch_size_does_not_matter", lifting(IMMUTABLE, lambda r: 0.01 * len(r)), "differ by 0.5 with the batch size"),
    ("nothing_is_left_behind", lambda *_: torch.rand(1), "torch's random state moved"),
    ("nothing_is_left_behind", lambda *_: np.random.rand(), "NumPy's random state moved"),  # noqa: NPY002
    ("nothing_is_left_behind", leaves_evaluation_mode, "left in evaluation mode"),
    ("nothing_is_left_behind", leaves_gradients, "gradients were left in the module"),
    ("nothing_is_left_behind", changes_weights, "weights were changed"),
    ("constraints_hold", lifting(IMMUTABLE), "an immutable feature was changed"),
    ("constraints_hold", lifting(np.s_[:, 0, 1]), "a frozen step was changed"),
    ("constraints_hold", setting(np.s_[:, 10, 1], 1.9), "a change left its range"),
    ("constraints_hold", setting(np.s_[:, 5, 1], -0.99), "a change went against its direction"),
    ("constraints_hold", lifting(np.s_[:, 9, [0, 2]], 3), "a step is too large"),
    ("constraints_hold", breaks_groups, "a group did not change together"),
    (SHAPES, lifting(np.s_[:, 9], lambda r: r.constraints.max_features is not None), "more features were changed"),
    (SHAPES, lifting(np.s_[:, 9, 0], lambda r: 0.123 * r.constraints.integer.any()), "not a whole number"),
    (SHAPES, lifting(np.s_[:, 9:11, 1], lambda r: np.array([9, -9]) * r.constraints.monotone.any()), "is not monotone"),
    (SHAPES, lifting((..., 2), lambda r: len(r.constraints.fixed_sum)), "a sum did not stay fixed"),
    (SHAPES, lifting(np.s_[:, 9, 0], lambda r: r.constraints.project is not None), "does not obey the user's proj"),
    ("unchanged_and_not_found", never_gives_up, "an answer was found where the constraints allow none"),
    ("sparsity_is_a_cap", lifting(IMMUTABLE), "sparsity=0.001 gave 0.250"),
    ("several_answers", repeats, "two valid answers to one query are the same"),
    ("several_answers", worst_first, "a failed answer stands before a valid one"),
    ("names_travel", ForgetsNames, "units or sampling rate were lost"),
    ("names_travel", lifting(IMMUTABLE), "an immutable feature of the data set was changed"),
    ("saving", Forgetful, "a loaded explainer answers otherwise"),
    ("refit_forgets", Remembers, "a second fit remembers the first"),
    ("gaps", fills_gaps, "a missing entry was filled"),
    ("gaps", not_finite, "not finite where something was measured"),
    ("gaps", CountsGaps, "missing entries were counted among those that may change"),
    ("not_fitted", AnswersUnfitted, "something else"),
    ("settings_of_another_method", TakesAnySettings, "ConfigError"),
    ("capabilities", PretendsToNeedNoGradients, "has no attribute 'module'"),
    ("unequal_lengths", ChangesPadding, "padding"),
    ("unequal_lengths", IgnoresLengths, "padding"),
]
CHECK = {check.__name__.removeprefix("check_"): check for check in CHECKS}


def test_every_check_has_a_method_that_breaks_it():
    assert {name for name, _, _ in BROKEN} == set(CHECK)


@pytest.mark.parametrize(("name", "broken", "message"), BROKEN, ids=[f"{name}: {text}" for name, _, text in BROKEN])
def test_a_broken_guarantee_is_caught_and_named(name, broken, message):
    with pytest.raises((AssertionError, AttributeError, DataError), match=message):
        CHECK[name](Subject(broken if isinstance(broken, type) else changing(broken)))


def test_an_honest_method_passes_and_the_first_broken_guarantee_is_named():
    check_explainer(Honest)
    with pytest.raises(AssertionError, match="an answer that convinces is called not_found"):
        check_explainer(changing(modest))
