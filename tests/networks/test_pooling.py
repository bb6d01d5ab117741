"""From steps to series, by hand."""

import math

import torch

from sparcets.networks.temporal import blank_padding, inside, last_step, mean_over_time

H = torch.tensor([[[1.0, 10.0], [3.0, 30.0], [math.nan, math.inf]], [[2.0, 0.0], [4.0, 1.0], [9.0, 8.0]]])
LENGTHS = torch.tensor([2, 3])


def test_inside_marks_the_steps_of_each_series():
    assert inside(LENGTHS, H)[..., 0].tolist() == [[True, True, False], [True, True, True]]
    assert inside(None, H) is None


def test_padding_is_blanked_whatever_it_holds():
    assert blank_padding(H, LENGTHS).tolist() == [
        [[1.0, 10.0], [3.0, 30.0], [0.0, 0.0]],
        [[2.0, 0.0], [4.0, 1.0], [9.0, 8.0]],
    ]
    assert blank_padding(H, None) is H


def test_the_mean_is_over_the_steps_of_the_series():
    assert mean_over_time(H, LENGTHS).tolist() == [[2.0, 20.0], [5.0, 3.0]]
    assert mean_over_time(H[1:], None).tolist() == [[5.0, 3.0]]


def test_the_last_step_is_the_last_of_the_series():
    assert last_step(H, LENGTHS).tolist() == [[3.0, 30.0], [9.0, 8.0]]
    assert last_step(H[1:], None).tolist() == [[9.0, 8.0]]
