"""What a fit of the default recipe leaves behind: voices that agree, guides, and the trade-off."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.explainers import recipe as module_of_recipe
from sparcets.explainers.sparcets.prune import without_faint
from sparcets.explainers.sparcets.model import Recipe, as_history, describe, ladder, walk_the_trade_off
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import Lifting, MeanModule
from sparcets.explainers.sparcets.operating_point import FURTHER, PRICE, Place, knee

X, Y = make_series(36, n_steps=9)
X = 3 * X + 5  # units of its own, so that nothing is standardised by chance
INFO = SeriesInfo.measure(X, ("a", "b", "c"))


def recipe(voices=(10.0,), *, louder=(1.0,), guided=False, strengths=(0.0,), referee=None):
    z = INFO.scaler.transform(X).astype(np.float32)
    return Recipe(
        generator=Lifting(guided).eval(),
        voices=[sp.wrap(MeanModule(sharpness=s), n_classes=3) for s in voices],
        referee=referee or sp.wrap(_Never(), n_classes=3),
        guides=z[Y != 2],
        guide_class=Y[Y != 2],
        strengths=strengths,
        louder=louder,
        level=0.9,
        scaler=INFO.scaler,
    )


def standardised(rows):
    return torch.tensor(INFO.scaler.transform(X[rows]), dtype=torch.float32)


def test_voices_hear_the_data_s_own_units_with_gradients():
    x = standardised(slice(0, 5)).requires_grad_(True)
    r = recipe((10.0, 1.0))
    said = r.log_proba(x)
    assert said.shape == (2, 5, 3)
    expected = [voice.predict_proba(X[:5]) for voice in r.voices]
    np.testing.assert_allclose(said.exp().detach(), np.stack(expected), atol=1e-4)
    said[:, :, 0].sum().backward()
    assert (x.grad != 0).any()


def test_agreement_is_the_least_over_all_voices():
    target = torch.tensor(Y[:8])
    voices = [recipe((s,)).agreement(standardised(slice(0, 8)), target) for s in (10.0, 0.5, 2.0)]
    together = recipe((10.0, 0.5, 2.0)).agreement(standardised(slice(0, 8)), target)
    torch.testing.assert_close(together, torch.stack(voices).amin(0))
    assert together.shape == (8,) and not together.requires_grad
    wrong = recipe((10.0, 0.5)).agreement(standardised(slice(0, 8)), (target + 1) % 3)
    assert (wrong < together).all()


def test_the_generator_is_told_strength_and_class():
    r, x = recipe(), standardised(slice(0, 4))
    delta = r.propose(x, torch.tensor([0, 1, 2, 0]), math.log(2.5))
    assert delta.amax((1, 2)).tolist() == pytest.approx([2.5] * 4)
    assert [f for row in delta for f in row[0].nonzero().ravel().tolist()] == [0, 1, 2, 0]


@pytest.mark.parametrize("guided", [False, True])
def test_many_series_are_proposed_for_in_parts_with_the_same_result(guided, monkeypatch):
    generator = GatedGenerator(
        n_features=4, mutable=[0, 1, 2, 3], n_targets=3, backbone="mixer", hidden=4, layers=1, gate="stretch",
        guided=guided,
    ).eval()  # fmt: skip
    made = replace(recipe(), generator=generator)
    x, target, guide = torch.randn(11, 12, 4), torch.arange(11) % 3, torch.randn(11, 12, 4) if guided else None
    whole = made.propose(x, target, 0.0, guide)
    monkeypatch.setattr(module_of_recipe, "AT_ONCE", 5)  # the last part is a single series
    torch.testing.assert_close(made.propose(x, target, 0.0, guide), whole)


def test_answers_are_shortened_to_what_the_most_demanding_voice_needs():
    rows = np.flatnonzero(Y == 0)[:6]
    x, target = standardised(rows), torch.ones(6, dtype=torch.int64)
    long = recipe().propose(x, target, math.log(6.0))
    kept = {voices: recipe(voices).shorten(x, long, target) for voices in [(10.0,), (1.0,), (10.0, 1.0)]}
    counts = {voices: (delta != 0).sum((1, 2)) for voices, delta in kept.items()}
    assert (counts[1.0,] > counts[10.0,]).all() and torch.equal(counts[10.0, 1.0], counts[1.0,])
    assert (recipe((10.0, 1.0)).agreement(x + kept[10.0, 1.0], target) > 0.89).all()
    one = torch.ones(6, dtype=torch.int64)
    assert (recipe().shorten(x, long, target, at_most=one) != 0).sum((1, 2)).amax() == 1


def test_nearest_guides_by_brute_force_and_minus_one_where_there_are_no_more():
    r = recipe()
    target = np.array([0, 1, 2, 1, 0])
    x = standardised(slice(0, 5))
    rows = r.nearest_guides(x, target, 3)
    for i, k in enumerate(target):
        apart = [(float(((g - x[i].numpy()) ** 2).sum()), j) for j, g in enumerate(r.guides) if r.guide_class[j] == k]
        expected = [j for _, j in sorted(apart)[:3]]
        assert rows[i].tolist() == (expected if k != 2 else [-1, -1, -1])
    many = r.nearest_guides(x, target, 15)
    assert ((many[target != 2] >= 0).sum(1) == 12).all() and (many[:, 12:] == -1).all()


def test_guides_by_their_rows_and_the_query_where_there_is_none():
    r, x = recipe(), standardised(slice(0, 3))
    led = r.guide_tensors(np.array([4, -1, 0]), x)
    torch.testing.assert_close(led[[0, 2]], torch.tensor(r.guides[[4, 0]]))
    assert torch.equal(led[1], x[1]) and led.dtype == x.dtype


def test_the_ladder_is_even_in_its_logarithm():
    assert [math.exp(s) for s in ladder(0.01, 100.0)] == pytest.approx([0.01, 0.1, 1.0, 10.0, 100.0])
    assert ladder(2.0, 2.0) == pytest.approx((math.log(2),) * 5)


def place(valid, transfer, changed, *, strength=0.0, loudness=1.0):
    return Place(strength, loudness, valid, transfer, changed)


def test_the_worth_of_a_place_by_hand():
    assert place(0.9, 0.7, 0.2).worth == pytest.approx(0.7 - PRICE * 0.2)
    assert place(0.6, 0.7, 0.0).worth == pytest.approx(0.6)
    assert place(0.9, 0.7, 0.2, loudness=1.6).worth == pytest.approx(0.7 - PRICE * 0.2 - FURTHER * 0.6)
    assert place(1.0, 0.5, 0.1, strength=math.log(2)).to_dict() == pytest.approx(
        {"strength": 2.0, "loudness": 1.0, "valid": 1.0, "transfer": 0.5, "changed": 0.1}
    )


def test_the_knee_is_the_place_of_most_worth_and_of_equals_the_sparser():
    loose, tight, best = place(1.0, 1.0, 0.5), place(0.6, 0.6, 0.05), place(1.0, 0.98, 0.2, loudness=1.3)
    assert knee([loose, best, tight]) is best
    same, sparser = place(1.0, 1.0, 0.2), place(1.0 - PRICE * 0.1, 1.0, 0.1)  # what it costs less, it is less true
    assert knee([same, sparser]) is sparser and knee([sparser, same]) is sparser


@pytest.mark.parametrize("guided", [False, True])
def test_the_trade_off_is_measured_by_those_who_are_asked(guided):
    rows = np.flatnonzero(Y == 0)
    target = np.ones(len(rows), dtype=np.int64)
    strengths, louder = (math.log(0.05), math.log(1.0)), (1.0, 6.0)
    yes = sp.wrap(MeanModule(), n_classes=3)
    r = recipe(strengths=strengths, louder=louder, guided=guided)  # its referee never agrees
    places = walk_the_trade_off(r, yes, X[rows], target, n_mutable=4)
    assert [(p.strength, p.loudness) for p in places] == [(s, f) for s in strengths for f in louder]
    if not guided:
        assert [p.valid for p in places[:2]] == [0.0, 0.0] and places[2].valid < places[3].valid == 1.0
    assert [p.transfer for p in places] == [0.0] * 4
    x, wanted = standardised(rows), torch.tensor(target)
    guide = r.guide_tensors(r.nearest_guides(x, target, 1)[:, 0], x)
    whole = r.propose(x, wanted, strengths[1], guide)
    for p in places[2:]:
        delta = without_faint(p.loudness * whole)
        assert p.changed == pytest.approx((delta != 0).float().mean().item())
        assert p.valid == (yes.predict(INFO.scaler.move(X[rows], delta.numpy())) == 1).mean()
    assert places[0].changed <= places[1].changed  # what was too faint is not, louder
    assert walk_the_trade_off(r, yes, X[rows], target, n_mutable=2)[3].changed == 2 * places[3].changed


class _Never(torch.nn.Module):
    """Calls everything class 0."""

    def forward(self, x):
        return torch.tensor([5.0, 0.0, 0.0]).repeat(len(x), 1) + 0 * x.sum((1, 2))[:, None]


def test_places_in_words_and_as_columns():
    places = [place(1.0, 0.75, 0.3), place(0.5, 0.5, 0.1, strength=math.log(2))]
    text = describe(places, places[0])
    assert "valid for 1.00" in text and "in 0.75" in text and "changes 0.30" in text and "0.10 to 0.30" in text
    columns = as_history(places)
    assert columns["trade_off_strength"] == pytest.approx([1.0, 2.0])
    assert columns["trade_off_valid"] == [1.0, 0.5] and columns["trade_off_changed"] == [0.3, 0.1]


def test_who_asks_for_enough_hears_no_more_than_that():
    """Where one voice says less than is enough, the others are not asked; what is enough comes out the same."""
    target = torch.as_tensor((Y[:8] + 1) % 3)
    x = standardised(slice(0, 8))
    made = recipe((10.0, 0.5, 2.0))
    exact = made.agreement(x, target)
    for enough in (0.0, 0.1, float(exact.median()), 0.9, 1.1):
        said = made.agreement(x, target, torch.full((8,), enough))
        assert torch.equal(said >= enough, exact >= enough)
        assert torch.allclose(said[exact >= enough], exact[exact >= enough]) and (said >= exact - 1e-7).all()
