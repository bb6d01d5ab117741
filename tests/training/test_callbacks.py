"""Callbacks, epoch by epoch and check by check."""

import math

import pytest
import torch

from sparcets.training.loop import DEAD_CHECKS, LOST_CHECKS, DivergenceCheck, EarlyStopping, TrainingFailure


def run(callback, losses):
    states = []
    for epoch, loss in enumerate(losses):
        callback.on_epoch_end(epoch, {"loss": loss})
        states.append((callback.best_epoch == epoch, callback.stop))
    return states


def test_early_stopping_counts_epochs_since_the_best():
    states = run(EarlyStopping("loss", 2), [1.0, 0.5, 0.6, 0.5])
    assert states == [(True, False), (True, False), (False, False), (False, True)]
    stopping = EarlyStopping("loss", 99)
    states = run(stopping, [1.0, 0.9995, 0.9985, 0.9984])
    assert [improved for improved, _ in states] == [True, False, True, False] and stopping.best == 0.9985
    stopping = EarlyStopping("loss", 3)
    states = run(stopping, [math.nan, math.inf, math.nan])
    assert states == [(False, False), (False, False), (False, True)]
    assert stopping.best_epoch == -1 and stopping.best_weights is None
    stopping = EarlyStopping("loss", 3)
    assert run(stopping, [2.0, math.nan, 1.0])[-1] == (True, False)


def test_the_weights_of_the_best_epoch_are_kept_with_their_statistics():
    network = torch.nn.BatchNorm1d(1)
    stopping = EarlyStopping("loss", 99, network=network)
    for epoch, loss in enumerate([3.0, 1.0, 2.0]):
        with torch.no_grad():
            network.weight.fill_(epoch)
            network.running_mean.fill_(10 * epoch)
        stopping.on_epoch_end(epoch, {"loss": loss})
    network.load_state_dict(stopping.best_weights)
    assert (network.weight.item(), network.running_mean.item()) == (1.0, 10.0)


def test_among_equals_a_better_tie_value_counts():
    stopping = EarlyStopping("error", 99, tie="loss")
    improved = []
    for epoch, (error, loss) in enumerate([(0.5, 1.0), (0.5, 0.8), (0.5, 0.9), (0.6, 0.1), (0.4, 2.0)]):
        stopping.on_epoch_end(epoch, {"error": error, "loss": loss})
        improved.append(stopping.best_epoch == epoch)
    assert improved == [True, True, False, False, True]


FINE = {"generator": 1.0, "discriminator": 0.7, "valid": 0.5, "changed": 0.1}
LOST = FINE | {"discriminator": 1e-4, "valid": 0.0}


def check(callback, *logs):
    for i, values in enumerate(logs):
        callback.on_check(100 * (i + 1), values)


def test_a_dead_generator_and_a_discriminator_that_has_won_are_failures():
    dead = FINE | {"changed": 0.0}
    check(DivergenceCheck(), *[dead] * (DEAD_CHECKS - 1), FINE, *[dead] * (DEAD_CHECKS - 1))  # a pause is no death
    with pytest.raises(TrainingFailure, match="the generator is dead: it changes nothing at all after 300 steps"):
        check(DivergenceCheck(), *[dead] * DEAD_CHECKS)
    check(DivergenceCheck(), *[LOST] * (LOST_CHECKS - 1), FINE, *[LOST] * (LOST_CHECKS - 1))
    check(DivergenceCheck(), *[LOST | {"valid": 0.9}] * 20)  # it wins, but the classifier is convinced
    check(DivergenceCheck(), *[{k: v for k, v in LOST.items() if k != "valid"}] * 20)  # without the classifier
    with pytest.raises(TrainingFailure, match=r"the discriminator has won: .* accepts 0% of them, after 500 steps"):
        check(DivergenceCheck(), *[LOST] * LOST_CHECKS)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e7, -1e7])
def test_an_explosion_is_a_failure_at_checks_and_at_the_end_of_epochs(value):
    with pytest.raises(TrainingFailure, match=r"the training exploded: similarity is .* after 100 steps"):
        check(DivergenceCheck(), FINE | {"similarity": value})
    with pytest.raises(TrainingFailure, match=r"the training exploded: similarity is .* after epoch 3"):
        DivergenceCheck().on_epoch_end(2, FINE | {"similarity": value})
