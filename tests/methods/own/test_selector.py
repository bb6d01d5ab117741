"""The selector: support and margin of every family by hand, and what is believed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.methods.own import ensemble as module
from sparcets.methods.own.ensemble import LEAD, NEURAL, Belief, Selector
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X = torch.tensor(make_series(10, n_steps=6)[0])
RAW = 3 * X + 5  # units of its own
TARGET = torch.arange(10) % 3


class StubJudge:
    """A family whose classifiers give every series the same probabilities (voters, classes)."""

    def __init__(self, family, *proba):
        self.family, self.proba = family, torch.tensor(proba)

    def votes(self, x):
        return self.proba[:, None].expand(-1, len(x), -1)


class ByLevel:
    """A family of one classifier: the class is the feature that is highest at the first step."""

    family = "level"

    def votes(self, x):
        return x[None, :, 0, :3].softmax(-1)


THREE = StubJudge("three", [0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.7, 0.3, 0.0])
ONE = StubJudge("one", [0.1, 0.1, 0.8])


def test_support_and_margin_by_hand():
    belief = Selector(networks=[], judges=[THREE, ONE]).ask(X[:3], RAW[:3], torch.tensor([0, 1, 2]))
    mean = np.array([0.5, 1.1 / 3, 0.4 / 3])  # of the first family
    np.testing.assert_allclose(belief.support, [[2 / 3, 0], [1 / 3, 0], [0, 1]], atol=1e-6)
    margin = [[mean[0] - mean[1], -0.7], [mean[1] - mean[0], -0.7], [mean[2] - mean[0], 0.7]]
    np.testing.assert_allclose(belief.margin, margin, atol=1e-6)
    assert belief.n_believing.tolist() == [1, 0, 1]


def test_networks_are_one_family_and_receive_the_data_s_own_units():
    networks = [sp.wrap(MeanModule(sharpness=s), n_classes=3) for s in (1.0, 0.1)]
    selector = Selector(networks=networks, judges=[ONE])
    assert selector.families == (NEURAL, "one") and Selector(networks=[], judges=[ONE]).families == ("one",)
    belief = selector.ask(X, RAW, TARGET)
    proba = np.stack([net.predict_proba(RAW.numpy()) for net in networks])
    np.testing.assert_allclose(belief.support[:, 0], (proba.argmax(2) == TARGET.numpy()).mean(0))
    mean, rows = proba.mean(0), np.arange(10)
    others = np.where(np.eye(3, dtype=bool)[TARGET], -1.0, mean).max(1)
    np.testing.assert_allclose(belief.margin[:, 0], mean[rows, TARGET] - others, atol=1e-6)


@pytest.mark.parametrize(
    ("support", "margin", "n_believing"),
    [
        ([1.0, 1.0], [0.5, 0.5], 2),
        ([0.6, 1.0], [0.4, 0.5], 2),
        ([0.5, 1.0], [0.5, 0.5], 1),  # half is no majority
        ([1.0, 0.0], [0.5, -0.5], 1),  # every family counts
        ([0.5, 0.4], [0.5, 0.5], 0),  # whatever the margin
        ([], [], 0),  # without families the explained classifier decides alone
    ],
)
def test_what_is_believed(support, margin, n_believing):
    belief = Belief(torch.tensor([support]), torch.tensor([margin]), lead=torch.full((len(margin),), LEAD))
    assert belief.n_believing.tolist() == [n_believing]
    assert belief.believed.tolist() == [n_believing == len(support)]


def test_convincing_is_believed_with_a_lead_in_every_family():
    lead = torch.tensor([0.1, 0.3])
    margin = torch.tensor([[0.11, 0.31], [0.11, 0.29], [0.09, 0.31], [0.9, 0.9]])
    support = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [1.0, 0.4]])
    belief = Belief(support, margin, lead)
    assert belief.believed.tolist() == [True, True, True, False]
    assert belief.convincing.tolist() == [True, False, False, False]
    assert Belief(torch.zeros(2, 0), torch.zeros(2, 0), torch.zeros(0)).convincing.all()


def test_several_judges_of_a_family_vote_together():
    again = StubJudge("three", [0.0, 1.0, 0.0], [0.0, 1.0, 0.0])
    selector = Selector(networks=[], judges=[THREE, again, ONE])
    assert selector.families == ("three", "one")
    belief = selector.ask(X[:2], RAW[:2], torch.tensor([0, 1]))
    np.testing.assert_allclose(belief.support[:, 0], [2 / 5, 3 / 5])
    np.testing.assert_allclose(belief.margin[:, 0], [1.5 / 5 - 3.1 / 5, 3.1 / 5 - 1.5 / 5], atol=1e-6)


@pytest.mark.parametrize("elsewhere", [0, 1, 2])
def test_the_columns_are_the_families_in_order_wherever_they_are_asked(monkeypatch, elsewhere):
    monkeypatch.setattr(module, "ELSEWHERE", {"cpu": elsewhere})
    monkeypatch.setattr(module, "ASKED", {"cpu": 4})
    network = sp.wrap(MeanModule(), n_classes=3)
    selector = Selector(networks=[network], judges=[ONE, ByLevel(), THREE])
    belief = selector.ask(X, RAW, TARGET)
    assert selector.families == (NEURAL, "one", "level", "three")
    for i, alone in enumerate([{"networks": [network]}, *({"judges": [judge]} for judge in (ONE, ByLevel(), THREE))]):
        own = Selector(**({"networks": [], "judges": []} | alone)).ask(X, RAW, TARGET)
        torch.testing.assert_close(belief.support[:, i], own.support[:, 0], atol=0, rtol=0)
        torch.testing.assert_close(belief.margin[:, i], own.margin[:, 0], atol=0, rtol=0)
    expected = (X[:, 0, :3].argmax(1) == TARGET).float()
    assert torch.equal(belief.support[:, 2], expected) and 0 < expected.mean() < 1


def test_many_series_are_asked_in_parts_with_the_same_result(monkeypatch):
    network = sp.wrap(MeanModule(sharpness=1.0), n_classes=3)
    sizes = []
    log_proba = SimpleNamespace(
        device=network.device, log_proba=lambda raw, _: sizes.append(len(raw)) or network.log_proba(raw)
    )
    selector = Selector(networks=[log_proba], judges=[THREE])
    whole = selector.ask(X, RAW, TARGET)
    monkeypatch.setattr(module, "ASKED", {"cpu": 4})
    parts = selector.ask(X, RAW, TARGET)
    assert sizes == [10, 4, 4, 2]
    torch.testing.assert_close(parts.support, whole.support)
    torch.testing.assert_close(parts.margin, whole.margin)


def test_at_another_length_it_is_the_same_selector():
    """It still knows of gaps, and of the leads that some families need."""
    selector = Selector(networks=[], judges=[], gaps=True, leads={"one": 0.7})
    assert vars(selector.at_length(3, 6)) == vars(selector)
