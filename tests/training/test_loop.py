"""The training loop against a step that only takes notes."""

from itertools import chain

import pytest
import torch

from sparcets.training.loop import Callback, History, shuffled, train

CPU = torch.device("cpu")


class Notes:
    """A step that remembers the rows it was given, and reports values that can be worked out by hand."""

    names = ("mean_row", "draw")

    def __init__(self, validation=()):
        self.batches = []
        self.draws = []
        self.validation = list(validation)

    def update(self, batch):
        self.batches.append(batch["rows"].tolist())
        self.draws.append(torch.rand(()).item())
        return torch.tensor([batch["rows"].float().mean(), 1.0])

    def validate(self):
        return {"validation_loss": self.validation.pop(0)} if self.validation else {}


def run(step, *, n_samples=10, epochs=3, batch_size=4, seed=0, callbacks=(), **options):
    batches = shuffled(n_samples, batch_size, seed)
    known = {"device": CPU, "callbacks": list(callbacks), "validate": step.validate}
    train(step, batches, epochs=epochs, seed=seed, **known, **options)
    return step


def epochs_of(step, per_epoch=3):
    return [list(chain(*step.batches[i : i + per_epoch])) for i in range(0, len(step.batches), per_epoch)]


def test_every_row_comes_exactly_once_per_epoch_in_an_order_of_its_own():
    step = run(Notes())
    assert [len(b) for b in step.batches] == [4, 4, 2] * 3
    orders = epochs_of(step)
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert len({tuple(order) for order in [*orders, range(10)]}) == 4


def test_orders_and_draws_follow_the_seed_and_the_global_state_stays():
    torch.manual_seed(1)
    first = run(Notes(), seed=5)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again = run(Notes(), seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert (again.batches, again.draws) == (first.batches, first.draws) and len(set(first.draws)) == 9
    other = run(Notes(), seed=6)
    assert other.batches != first.batches and other.draws != first.draws


def test_a_training_goes_on_where_it_is_taken_up_and_tells_means_over_rows():
    whole, rest = run(Notes(), epochs=4), run(Notes(), epochs=4, start=2)
    assert (rest.batches, rest.draws) == (whole.batches[6:], whole.draws[6:])
    history = History()
    run(Notes(), callbacks=[history])
    assert history.values == {"mean_row": pytest.approx([4.5] * 3), "draw": [1.0] * 3}


def test_it_ends_after_the_epoch_in_which_a_callback_asks_to_stop():
    class Second(Callback):
        def on_epoch_end(self, epoch, logs):
            self.stop = epoch == 1

    assert len(epochs_of(run(Notes(), epochs=50, callbacks=[Second()]))) == 2


def test_checks_come_every_few_steps_with_the_means_since_the_last():
    class Checks(Callback):
        def __init__(self):
            self.seen = []

        def on_check(self, steps, logs):
            self.seen.append((steps, logs["mean_row"]))

    checks, history = Checks(), History()
    step = run(Notes(), epochs=1, check_every=2, callbacks=[checks, history])
    first_two = list(chain(*step.batches[:2]))
    assert checks.seen == [(2, pytest.approx(sum(first_two) / 8))]
    assert history.values["mean_row"] == pytest.approx([4.5])
