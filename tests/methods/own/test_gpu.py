"""One pass on a GPU: the answers of the search, in batches that overlap, and only for calls that it can serve."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own import explainer as explainer_module
from sparcets.methods.own import gpu
from sparcets.methods.own.generator import drop_negligible
from sparcets.methods.own.gpu import can_use_gpu_path
from sparcets.methods.own.operating_point import best_point
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.request import CallOptions
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(90, n_steps=12)


@pytest.fixture(scope="module")
def explainer():
    classifier = sp.TorchClassifier("fcn", sp.ClassifierConfig(epochs=8)).fit(X, Y)
    return sp.Explainer(classifier, sp.ExplainerConfig.tiny().override("train.epochs=12")).fit(X, Y)


@pytest.fixture
def one_pass(monkeypatch):
    """Take the path for a GPU on a CPU, 16 queries at a time."""
    monkeypatch.setattr(explainer_module, "can_use_gpu_path", lambda *args: True)
    monkeypatch.setattr(gpu, "GPU_BATCH", 16)


def proposed(explainer, e):
    """Return what the generator gives at the best operating point."""
    point, scaler = best_point(explainer.trade_off_), explainer.info_.scaler
    device = explainer._model.device
    x = torch.tensor(scaler.transform(e.query), dtype=torch.float32, device=device)
    delta = explainer._model.propose(x, torch.tensor(e.target, device=device), point.log_sparsity_weight)
    return scaler.add_delta(e.query, drop_negligible(point.residual_scale * delta).cpu().numpy())


def assert_same(e, other):
    for name in ("query", "target", "status", "query_index", "reason"):
        assert np.array_equal(getattr(e, name), getattr(other, name)), name
    for name in ("counterfactual", "proba_before", "proba_after"):
        np.testing.assert_allclose(getattr(e, name), getattr(other, name), atol=1e-5, err_msg=name)
    assert np.array_equal(e.changed, other.changed)
    assert (e.method, e.config, e.constraints, e.seed) == (other.method, other.config, other.constraints, other.seed)


@pytest.mark.parametrize("n", [1, 16, 40])
@pytest.mark.parametrize("target", [None, 1, "other class"])
def test_it_gives_the_proposals_of_the_generator_and_else_the_answers_of_the_search(explainer, request, n, target):
    queries = X[Y != 1][:1] if n == 1 else X[:n]
    targets = (explainer.classifier.predict(queries) + 1) % 3 if target == "other class" else target
    searched = explainer.explain(queries, target=targets)
    request.getfixturevalue("one_pass")
    e = explainer.explain(queries, target=targets)
    generated = e.status == "generated"
    assert generated.any() and e.valid[generated].all()
    np.testing.assert_allclose(e.counterfactual[generated], proposed(explainer, e)[generated], atol=1e-5)
    assert_same(e[~generated], searched[~generated])


def test_immutable_features_are_kept_and_the_search_answers_where_one_pass_does_not(explainer, request):
    options = {"target": 2, "constraints": sp.Constraints(immutable=["f0", "f2"])}
    searched = explainer.explain(X[:40], **options)
    assert len(set(searched.status) - {"unchanged", "generated"}) > 0
    request.getfixturevalue("one_pass")
    e = explainer.explain(X[:40], **options)
    assert_same(e, searched)
    assert not e.changed[..., [0, 2]].any()


@pytest.mark.usefixtures("one_pass")
def test_float64_queries_stay_float64(explainer):
    e = explainer.explain(X[:20].astype(np.float64), target=1)
    assert e.counterfactual.dtype == e.query.dtype == np.float64
    assert np.array_equal(e.counterfactual[~e.changed], X[:20].astype(np.float64)[~e.changed])


@pytest.mark.usefixtures("one_pass")
def test_a_memory_map_is_answered_into_a_folder(explainer, tmp_path):
    np.save(tmp_path / "x.npy", X)
    e = explainer.explain(np.load(tmp_path / "x.npy", mmap_mode="r"), target=1, out=tmp_path / "out")
    assert_same(e[:30], explainer.explain(X, target=1)[:30])


def test_only_a_gpu_and_a_plain_call_can_stay_there(build_model):
    info = SeriesInfo.from_series(X, ("a", "b", "c"))
    cuda = torch.device("cuda")
    classifier = SimpleNamespace(device=cuda)
    plain = build_model(info, [MeanModule()], Prototypes(Series(X), Y, np.arange(len(Y)), info.scaler))

    def stays(*, device=cuda, member=classifier, explained=classifier, double=False, generates=True, **options):
        own = {name: options.pop(name) for name in ("n", "sparsity", "edits") if name in options}
        ensemble = replace(plain.ensemble, explained=member, device=device, double=double)
        generator = plain.generator if generates else None
        call = CallOptions.standing(sp.Constraints(**options), info, explained).for_call(**own)
        return can_use_gpu_path(call, replace(plain, ensemble=ensemble, generator=generator), explained)

    assert stays() and stays(immutable=["f0"])
    assert not stays(n=2) and not stays(sparsity=0.5) and not stays(edits=2) and not stays(ranges={"f1": (-9, 9)})
    assert not stays(double=True) and not stays(generates=False)
    assert not stays(device=torch.device("cpu"))
    assert not stays(explained=SimpleNamespace(device=cuda))  # not the one it was fitted for
    elsewhere = SimpleNamespace(device=torch.device("cpu"))
    assert not stays(member=elsewhere, explained=elsewhere)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_on_a_gpu_the_answers_are_the_proposals_up_to_bfloat16(monkeypatch):
    X, y = make_series(200, n_steps=20)
    classifier = sp.TorchClassifier("bilstm", sp.ClassifierConfig(epochs=8, device="cuda")).fit(X, y)
    explainer = sp.Explainer(classifier, sp.ExplainerConfig.tiny().override("device=cuda")).fit(X, y)
    monkeypatch.setattr(gpu, "GPU_BATCH", 16)
    e = explainer.explain(X[:50], target=1)
    generated = e.status == "generated"
    assert e.valid.all() and generated.sum() > 10
    expected = (proposed(explainer, e) - e.query)[generated]
    np.testing.assert_allclose(e.delta[generated], expected, atol=0.05 * np.abs(expected).max())
