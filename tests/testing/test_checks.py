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


class Changing(Nearest):
    """A method whose answers are spoilt by ``spoil(counterfactual, request)``."""

    def _explain(self, request):
        answers = super()._explain(request)
        self.spoil(answers, request)
        return answers


class NotFinite(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[0, 0, 3] = np.nan


class Unchanging(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:] = np.repeat(request.X, request.n, axis=0)


class Modest(Changing):
    """Calls what convinces the classifier not found."""

    def spoil(self, answers, request):
        answers.status[:] = "not_found"
        answers.reason[:] = "too modest"


class Silent(Changing):
    """Says nothing of why it failed."""

    def spoil(self, answers, request):
        answers.counterfactual[:] = np.repeat(request.X, request.n, axis=0)
        answers.counterfactual[0] += 1
        answers.status[:] = "not_found"
        answers.reason[:] = ""


class Trembling(Changing):
    """Moves an entry by less than counts as a change."""

    def spoil(self, answers, request):
        first = np.repeat(request.X, request.n, axis=0)[:, 0, 3]
        answers.counterfactual[:, 0, 3] = np.nextafter(first, np.float32(np.inf))


class Random(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[..., 3] += np.random.default_rng().normal(0, 0.1)


class SeesItsBatch(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[..., 3] += 0.01 * len(request)


class DrawsFromTorch(Changing):
    def spoil(self, answers, request):
        torch.rand(1)


class DrawsFromNumpy(Changing):
    def spoil(self, answers, request):
        np.random.rand()  # noqa: NPY002


class LeavesEvaluationMode(Changing):
    def spoil(self, answers, request):
        self.classifier.module.eval()


class LeavesGradients(Changing):
    def spoil(self, answers, request):
        self.classifier.module.sharpness.grad = torch.ones(())


class ChangesWeights(Changing):
    def spoil(self, answers, request):
        with torch.no_grad():
            self.classifier.module.sharpness.mul_(1.01)


class BreaksImmutable(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[..., 3] += 1


class BreaksFrozen(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 0, 1] += 1


class BreaksRange(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 10, 1] = 1.9


class BreaksDirection(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 5, 1] = -0.99


class BreaksSteps(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 9, [0, 2]] += 3


class BreaksGroups(Changing):
    def spoil(self, answers, request):
        q = np.repeat(request.X, request.n, axis=0)
        answers.counterfactual[..., 2] = q[..., 2]


class BreaksNumberOfFeatures(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 9] += request.constraints.max_features is not None


class BreaksWholeNumbers(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 9, 0] += 0.123 * request.constraints.integer.any()


class BreaksMonotone(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 9:11, 1] += np.array([9, -9]) * request.constraints.trend.any()


class BreaksSums(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[..., 2] += len(request.constraints.sums)


class BreaksProjection(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:, 9, 0] += request.constraints.project is not None


class NeverGivesUp(Changing):
    """Changes what may not change rather than find nothing."""

    def spoil(self, answers, request):
        answers.counterfactual[..., 1] += 9
        answers.status[:] = "generated"


class Greedy(Changing):
    """Pays no heed to the cap."""

    def spoil(self, answers, request):
        answers.counterfactual[..., 3] += 1


class Repeats(Changing):
    """Gives the first answer over and over."""

    def spoil(self, answers, request):
        answers.counterfactual[:] = np.repeat(answers.counterfactual[:: request.n], request.n, axis=0)
        answers.status[:] = "neighbour"


class WorstFirst(Changing):
    def spoil(self, answers, request):
        for values in (answers.counterfactual, answers.status, answers.reason):
            by_query = values.reshape(-1, request.n, *values.shape[1:])
            by_query[:] = by_query[:, ::-1].copy()


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
    def _explain_block(self, block, options, bar):
        for e in super()._explain_block(block, options, bar):
            if e.lengths is not None:
                e.counterfactual[:, -1] += 1
            yield e


class IgnoresLengths(Nearest):
    def _explain(self, request):
        return super()._explain(replace(request, series=Series(request.X)))


class ForgetsNames(Nearest):
    def _explain_block(self, block, options, bar):
        for e in super()._explain_block(block, options, bar):
            yield replace(e, info=replace(e.info, units=None))


class FillsGaps(Changing):
    def spoil(self, answers, request):
        answers.counterfactual[:] = np.nan_to_num(answers.counterfactual)


class CountsGaps(Changing):
    """Takes the cap as a share of all entries, missing ones included."""

    def _explain(self, request):
        if request.at_most is not None:
            request = replace(request, at_most=np.floor(0.3 * np.prod(request.X.shape[1:]) * np.ones(len(request))))
        return super()._explain(request)

    def spoil(self, answers, request):
        pass


class PretendsToExplainNumbers(Nearest):
    """Offers every series it knows, whatever its number."""

    def _known(self, request):
        bounds = np.broadcast_to([-np.inf, 1e-9], request.goal.bounds.shape)
        return super()._known(replace(request, goal=Goal(bounds, request.goal.names)))


BROKEN = [
    ("numbers", PretendsToExplainNumbers, "no number was reached"),
    ("answers_are_well_formed", NotFinite, "an answer is not finite"),
    ("answers_are_well_formed", Unchanging, "no query was changed at all"),
    ("answers_are_well_formed", Modest, "an answer that convinces is called not_found"),
    ("answers_are_well_formed", Silent, "gives no reason"),
    ("negligible_changes_are_none", Trembling, "smaller than 1e-6 of the feature's range"),
    ("same_seed_same_bytes", Random, "two fits with one seed give different answers"),
    ("batch_size_does_not_matter", SeesItsBatch, "answers differ by 0.5 with the batch size"),
    ("nothing_is_left_behind", DrawsFromTorch, "torch's random state moved"),
    ("nothing_is_left_behind", DrawsFromNumpy, "NumPy's random state moved"),
    ("nothing_is_left_behind", LeavesEvaluationMode, "left in evaluation mode"),
    ("nothing_is_left_behind", LeavesGradients, "gradients were left in the module"),
    ("nothing_is_left_behind", ChangesWeights, "weights were changed"),
    ("constraints_hold", BreaksImmutable, "an immutable feature was changed"),
    ("constraints_hold", BreaksFrozen, "a frozen step was changed"),
    ("constraints_hold", BreaksRange, "a change left its range"),
    ("constraints_hold", BreaksDirection, "a change went against its direction"),
    ("constraints_hold", BreaksSteps, "a step is too large"),
    ("constraints_hold", BreaksGroups, "a group did not change together"),
    ("constraints_on_shape_hold", BreaksNumberOfFeatures, "more features were changed than allowed"),
    ("constraints_on_shape_hold", BreaksWholeNumbers, "not a whole number"),
    ("constraints_on_shape_hold", BreaksMonotone, "a changed stretch is not monotone"),
    ("constraints_on_shape_hold", BreaksSums, "a sum did not stay fixed"),
    ("constraints_on_shape_hold", BreaksProjection, "does not obey the user's projection"),
    ("unchanged_and_not_found", NeverGivesUp, "an answer was found where the constraints allow none"),
    ("sparsity_is_a_cap", Greedy, "sparsity=0.001 gave 0.250"),
    ("several_answers", Repeats, "two valid answers to one query are the same"),
    ("several_answers", WorstFirst, "a failed answer stands before a valid one"),
    ("names_travel", ForgetsNames, "units or sampling rate were lost"),
    ("names_travel", BreaksImmutable, "an immutable feature of the data set was changed"),
    ("saving", Forgetful, "a loaded explainer answers otherwise"),
    ("refit_forgets", Remembers, "a second fit remembers the first"),
    ("gaps", FillsGaps, "a missing entry was filled"),
    ("gaps", NotFinite, "not finite where something was measured"),
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


@pytest.mark.parametrize(("name", "kind", "message"), BROKEN, ids=[f"{n}-{k.__name__}" for n, k, _ in BROKEN])
def test_a_broken_guarantee_is_caught_and_named(name, kind, message):
    with pytest.raises((AssertionError, AttributeError, DataError), match=message):
        CHECK[name](Subject(kind))


def test_an_honest_method_that_is_not_registered_passes():
    check_explainer(Honest)


def test_the_first_broken_guarantee_is_an_assertion_that_says_which():
    with pytest.raises(AssertionError, match="an answer that convinces is called not_found"):
        check_explainer(Modest)
