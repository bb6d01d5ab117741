"""The server's API: answers are those of explain, errors have one shape, and the token is asked for."""

import json

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import sparcets as sp
from sparcets.server.answers import Failure, Query, answer_batch
from sparcets.show.edit_text import as_dict
from sparcets.testing.data import make_series
from sparcets.testing.mocks import mean_proba
from tests.http_api import error

from .conftest import NAMES


def explain(client, series, **options):
    response = client.post("/explain", json={"series": np.asarray(series).tolist(), **options})
    assert response.status_code == 200, response.text
    return response.json()["answers"]


def test_answers_are_those_of_explain(client, fit):
    found = explain(client, fit.X[:3], target="wild", n=2, sparsity=0.9, ids=["a", "b", "c"])
    e = fit.explainer.explain(fit.X[:3], "wild", n=2, sparsity=0.9, ids=["a", "b", "c"], progress=False)
    assert len(found) == len(e) == 6
    for i, answer in enumerate(found):
        np.testing.assert_allclose(answer["counterfactual"], e.counterfactual[i], atol=1e-6, rtol=0)
        assert (answer["series"], answer["id"]) == (i // 2, "abc"[i // 2])
        assert (answer["target"], answer["predicted"]) == ("wild", e.class_names[e.predicted[i]])
        assert answer["prediction"] == e.class_names[int(e.prediction[i])]
        plain = {name: getattr(e, name)[i] for name in ("status", "reason", "valid", "verdict")}
        assert {name: answer[name] for name in plain} == plain
        assert answer["probability"] == pytest.approx(e.probability[i], abs=1e-6)
        assert answer["share_changed"] == pytest.approx(e.share_changed[i])
        assert answer["support"] == {} and answer["text"] == e.text(i)
        assert answer["edits"] == [as_dict(edit) for edit in e.edits(i)]


def test_the_short_form_has_all_that_changes(client, fit):
    whole = explain(client, fit.X[:2], target="wild", text=False)
    short = explain(client, fit.X[:2], target="wild", text=False, counterfactual=False)
    for x, long, answer in zip(fit.X, whole, short, strict=False):
        rebuilt = x.copy()
        for part in answer["changed"]:
            rebuilt[part["start"] : part["end"], NAMES.index(part["feature"])] = part["values"]
        np.testing.assert_array_equal(rebuilt, long["counterfactual"])
        assert answer["counterfactual"] is None and answer["text"] is None
        same = [{**part, "values": None} for part in answer["changed"]]
        assert long["changed"] == same


def test_answers_have_so_many_edits_at_most(start, fit):
    X, y = make_series(60, n_steps=10)
    quick = sp.ExplainerConfig.tiny().override("families=('quantiles', 'intervals')")
    explainer = sp.Explainer(sp.wrap(mean_proba), quick).fit(X, y)
    client, query = start(explainer), X[y == 0][:1]
    most, least = (explain(client, query, target="1", edits=k, text=False)[0]["edits"] for k in (9, 1))
    assert len(most) > len(least) == 1
    e = explainer.explain(query, "1", edits=1, progress=False)
    assert least == [as_dict(edit) for edit in e.edits(0)] and least[0]["kind"] != "free" and least[0]["text"]


def test_constraints_hold_and_lengths_do_not_disturb_each_other(client, fit):
    rules = {"immutable": ["idle"], "frozen": [[0, 3]], "ranges": {"left": [None, 1.0]}, "max_features": 2}
    answer = explain(client, fit.X[:1], target={"not": "calm"}, constraints=rules)[0]
    delta = np.array(answer["counterfactual"]) - fit.X[0]
    assert not delta[:, 3].any() and not delta[:3].any()
    limits = sp.Constraints(**{**rules, "frozen": [(0, 3)], "ranges": {"left": (-np.inf, 1.0)}})
    e = fit.explainer.explain(fit.X[:1], sp.Not("calm"), constraints=limits, progress=False)
    np.testing.assert_allclose(delta, e.delta[0], atol=1e-6)
    problem = error(client.post("/explain", json={"series": [fit.X[0].tolist(), fit.X[1, :7].tolist()]}), 422)
    assert problem["message"].startswith("series 1: ") and "7" in problem["message"]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"target": "wilt"}, 422, "Did you mean 'wild'?"),
        ({"target": {"at_least": 3}}, 422, "predicts"),
        ({"series": [[[1.0, 2.0], [1.0]]]}, 422, "must be a list of steps"),
        ({"n": 99}, 422, "at most 5 answers"),
        ({"edits": 2}, 422, "Nearest gives values, not edits"),
        ({"ids": ["a", "b"]}, 422, "2 entries for 1 series"),
        ({"constraints": {"immutable": ["lefd"]}}, 422, "Did you mean 'left'?"),
        ({"side": {"age": [3]}}, 422, "side"),
    ],
)
def test_bad_requests_are_told_what_is_wrong(client, fit, change, status, said):
    message = error(client.post("/explain", json={"series": [fit.X[0].tolist()], **change}), status)["message"]
    assert said in message, message


@pytest.mark.parametrize("bad", ["1.5", True, 1e300, -1e39, 10**400, float("nan"), float("inf"), [1.0], {}, "\ud800"])
def test_what_is_no_number_in_a_series_is_refused_by_its_place(client, fit, bad):
    series = fit.X[:2].tolist()
    series[1][3][2] = series[1][4][0] = bad
    content = json.dumps({"series": series, "target": "wild"}).encode()
    problem = error(client.post("/explain", content=content, headers={"Content-Type": "application/json"}), 422)
    where = "body.series.1.3.2: " if bad != "\ud800" else "body.0: JSON decode error: "  # half of a character
    assert problem["message"].startswith(f"the request is not valid: {where}") and len(problem["details"]) == 1


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"sparsity": "0.5"}, "sparsity"),
        ({"text": 1}, "text"),
        ({"target": True}, "target"),
        ({"target": {"between": [1, "2"]}}, "target.between.1"),
        ({"side": {"age": [[1, True]]}}, "side.age.0.1"),
        ({"constraints": {"frozen": {"left": [[0, "3"]]}}}, "constraints.frozen.left.0.1"),
        ({"constraints": {"ranges": {"left": [0, 1e400]}}}, "constraints.ranges.left.1"),
    ],
)
def test_texts_and_truth_values_are_no_numbers_in_options(client, fit, change, where):
    content = json.dumps({"series": [fit.X[0].tolist()], **change}).encode()
    problem = error(client.post("/explain", content=content, headers={"Content-Type": "application/json"}), 422)
    assert problem["message"].startswith(f"the request is not valid: body.{where}: "), problem["message"]


class Exits:
    """An explainer whose model ends the process."""

    def __init__(self, explainer):
        self.info_ = explainer.info_

    def explain(self, *_, **__):
        raise SystemExit(3)


def test_a_model_that_ends_the_process_is_an_error_of_its_series(fit):
    (outcome,) = answer_batch(Exits(fit.explainer), "{}", [Query(X=fit.X[0])])
    assert isinstance(outcome, Failure) and (outcome.status, outcome.code) == (500, "internal")


def test_bodies_that_are_no_json_or_too_large(start, fit):
    client = start(body_bytes=3000, series=2)
    json_type = {"Content-Type": "application/json"}
    assert error(client.post("/explain", content=b'{"series": [', headers=json_type), 422)["code"] == "invalid_request"
    assert error(client.post("/explain", content=b"series=1"), 415)["code"] == "not_json"
    problem = error(client.post("/explain", json={"series": fit.X[:2].tolist() * 3}), 413)
    assert problem["code"] == "too_large"

    def pieces():
        for _ in range(5):
            yield b" " * 1000

    assert error(client.post("/explain", content=pieces(), headers=json_type), 413)["code"] == "too_large"
    assert error(client.post("/explain", json={"series": [[[0]]] * 3}), 413)["code"] == "too_many"


def test_the_token_is_asked_for_except_by_probes(start):
    stranger = start(headers={})
    for method, path in (("GET", "/model"), ("GET", "/metrics"), ("POST", "/explain"), ("GET", "/openapi.json")):
        assert error(stranger.request(method, path), 401)["code"] == "token_needed"
        wrong = stranger.request(method, path, headers={"Authorization": "Bearer guess-guess"})
        assert error(wrong, 401)["code"] == "wrong_token"
    assert stranger.get("/health").json() == {"status": "ok"}
    assert stranger.get("/ready").json() == {"workers": 1}
    assert error(start().get("/nothing"), 404)["message"].endswith("/openapi.json.")


def test_the_model_is_described(client):
    told = client.get("/model").json()
    assert (told["method"], told["n_steps"], told["lengths"]) == ("nearest", 10, "equal")
    assert told["features"] == NAMES and told["classes"] == ["brisk", "calm", "wild"] and told["outputs"] == []


def test_metrics_can_be_parsed(start, fit):
    client = start()
    explain(client, fit.X[:3], text=False)
    error(client.post("/explain", json={}), 422)
    error(client.get("/nothing/at/all"), 404)
    families = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}
    requests = {tuple(s.labels.values()): s.value for s in families["sparcets_requests"].samples if "_total" in s.name}
    assert requests == {("/explain", "200"): 1, ("/explain", "422"): 1, ("other", "404"): 1}
    sizes = {s.name: s.value for s in families["sparcets_batch_series"].samples if not s.labels}
    assert sizes["sparcets_batch_series_count"] == 1 and sizes["sparcets_batch_series_sum"] == 3
    for name in ("sparcets_queued_series", "sparcets_ready_workers", "process_resident_memory_bytes"):
        assert name in families
    assert any(s.name.endswith("_bucket") for s in families["sparcets_request_seconds"].samples)


def test_a_model_of_numbers(start):
    X, _ = make_series(30, n_steps=6)
    model = sp.wrap(lambda x: x[:, :, :1].mean(1), task="regression")
    explainer = sp.Nearest(model, sp.NearestConfig.tiny()).fit(X, X[:, :, 0].mean(1))
    client = start(explainer)
    told = client.get("/model").json()
    assert told["classes"] == [] and len(told["outputs"]) == 1
    answer = explain(client, X[:1], target={"change": 0.1}, text=False)[0]
    (before,), (after,) = answer["predicted"].values(), answer["prediction"].values()
    assert answer["probability"] is None and answer["valid"] == (after - before >= 0.1)
    assert "at_least" in error(client.post("/explain", json={"series": X[:1].tolist()}), 422)["message"]


def test_missing_values_are_null(start):
    X, y = make_series(30, n_steps=6)
    model = sp.wrap(lambda x: np.nan_to_num(x).mean(1)[:, :3], output="logits", missing="forward")
    query = X[:1].astype(np.float64)
    query[0, 2, 3] = np.nan
    explainer = sp.Nearest(model, sp.NearestConfig.tiny()).fit(X, y)
    series = [[[None if v != v else v for v in step] for step in query[0].tolist()]]
    response = start(explainer).post("/explain", json={"series": series, "target": 2, "text": False})
    assert response.status_code == 200, response.text
    answer = response.json()["answers"][0]
    assert answer["counterfactual"][2][3] is None and answer["status"] in ("neighbour", "not_found", "unchanged")
