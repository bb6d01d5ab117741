"""The API as a client program uses it: data, queries, explanations, exports, and error responses."""

import json

import numpy as np
import pytest

import sparcets as sp
from sparcets.studio.models import FitExplainer
from sparcets.studio.processes import fit_explainer
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace
from tests.http_api import error

from .conftest import API, N_TEST, NAMES, OPENINGS, make_outdated, npz_bytes


def explain(client, sample, **options):
    response = client.post(f"{API}/explanations", json={"explainer": sample.nearest, "rows": [0], **options})
    assert response.status_code == 200, response.text
    return response.json()["answers"]


def test_status_and_catalog(client):
    status = client.get(f"{API}/status").json()
    assert status["version"] == sp.__version__ and status["workspace"] == "workspace"
    catalog = client.get(f"{API}/catalog").json()
    assert {"nearest", "sparce", "sparcets"} <= {e["name"] for e in catalog["explainers"]}
    assert all(entry["about"] for kind in ("datasets", "classifiers", "explainers") for entry in catalog[kind])
    assert [v["word"] for v in catalog["verdicts"]] == ["believed", "doubtful", "trick", "not reached", "unchanged"]


def test_only_what_is_urgent_goes_first(client, sample, monkeypatch):
    run, patient = StudioService.run, []
    monkeypatch.setattr(StudioService, "run", lambda *args, **how: patient.append(how["patient"]) or run(*args, **how))
    for path, urgent in (("curves", {}), ("explanations", {}), ("explanations", {"urgent": True})):
        client.post(f"{API}/{path}", json={"explainer": sample.nearest, "rows": [0], **urgent})
    assert patient == [True, True, False]


def test_upload_and_remove_an_npz_file(client, sample):
    response = client.post(f"{API}/datasets/upload", params={"filename": "gait study.npz"}, content=npz_bytes(60))
    assert response.status_code == 201
    record = response.json()
    assert record["name"] == "gait_study" and record["feature_names"] == NAMES and record["n_train"] == 48
    assert record["units"] == ["m", "m", "m", "V"] and record["sampling_rate"] == 10
    assert (sample.folder / "datasets" / record["id"] / "gait_study.npz").is_file()
    series = client.get(f"{API}/datasets/{record['id']}/series/0").json()
    assert np.shape(series["values"]) == (record["n_steps"], 4)
    assert client.delete(f"{API}/datasets/{record['id']}").status_code == 204
    assert [d["id"] for d in client.get(f"{API}/datasets").json()] == ["own"]
    assert not list((sample.folder / "datasets").glob("*gait*"))


def test_queries_are_listed_in_pages_and_filtered(client, sample):
    url = f"{API}/classifiers/{sample.classifier}/queries"
    every = client.get(url).json()
    assert every["total"] == len(every["items"]) == 90 and every["counts"] == {"test": N_TEST, "train": 72, "new": 0}
    assert [q["part"] for q in every["items"]] == ["test"] * N_TEST + ["train"] * 72
    page = client.get(url, params={"offset": 3, "limit": 2}).json()
    assert [q["row"] for q in page["items"]] == [3, 4] and page["total"] == 90
    train = client.get(url, params={"part": "train", "limit": 3}).json()
    assert [q["row"] for q in train["items"]] == [18, 19, 20] and train["total"] == 72
    wild = client.get(url, params={"predicted": "wild"}).json()["items"]
    assert wild == [q for q in every["items"] if q["predicted"] == "wild"] and wild
    wrong = client.get(url, params={"wrong": True}).json()["items"]
    assert wrong == [q for q in every["items"] if q["predicted"] != q["label"]]


def test_explanations_equal_those_of_the_library(client, sample):
    clf = sp.load_classifier(sample.folder / "classifiers" / sample.classifier)
    ex = sp.load(sample.folder / "explainers" / sample.nearest, classifier=clf)
    ds = sp.load_dataset(sample.folder / "datasets" / sample.dataset / "own.npz", seed=0)
    limits = sp.Constraints(immutable=["idle"], frozen=[(0, 3)], ranges={"left": (-np.inf, 1.0)})
    e = ex.explain(ds.X_test[[4]], None, sparsity=0.5, n=2, constraints=limits)
    rules = {"immutable": ["idle"], "frozen": [[0, 3]], "ranges": {"left": [None, 1.0]}}
    answers = explain(client, sample, rows=[4], sparsity=0.5, answers=2, constraints=rules)
    assert len(answers) == 2
    for i, answer in enumerate(answers):
        assert np.array_equal(np.float32(answer["counterfactual"]), e.counterfactual[i])
        assert answer["text"] == e.text(i) and answer["status"] == e.status[i] and answer["row"] == 4
        assert answer["share_changed"] == pytest.approx(float(e.share_changed[i]))
        assert answer["verdict"]["word"] == e.verdict[i] and answer["description"]["changes"]


def test_new_recordings_without_labels_are_explained(client, sample):
    queries = f"{API}/classifiers/{sample.classifier}/queries"
    assert client.get(queries, params={"part": "new"}).json()["total"] == 0
    X = np.load(sample.folder / "datasets" / "own" / "own.npz")["X"][:2]
    rows = [f"{name},{t},{','.join(map(str, step[::-1]))}" for name, series in zip("ab", X, strict=True)
            for t, step in enumerate(series.tolist())]  # fmt: skip
    text = "series,time," + ",".join(NAMES[::-1]) + "\n" + "\n".join(rows)  # the features in another order
    url = f"{API}/datasets/{sample.dataset}/recordings"
    added = client.post(url, params={"filename": "new ones.csv"}, content=text.encode())
    assert added.status_code == 201 and added.json() == {"n": 2, "first_row": 90}
    listed = client.get(queries, params={"part": "new"}).json()
    assert listed["counts"]["new"] == 2 and [q["id"] for q in listed["items"]] == ["a", "b"]
    assert {q["label"] for q in listed["items"]} == {None} and [q["row"] for q in listed["items"]] == [90, 91]
    series = client.get(f"{API}/datasets/{sample.dataset}/series/91").json()
    assert np.array_equal(np.float32(series["values"]), X[1]) and series["part"] == "new"
    answer = explain(client, sample, rows=[91])[0]
    assert answer["id"] == "b" and answer["row"] == 91 and answer["valid"]
    code = client.post(f"{API}/exports/py", json={"explainer": sample.nearest, "rows": [91]}).text
    assert "load_recordings('datasets/own/new/00000-new_ones.npz')" in code and "X = new1.X[[1]]" in code
    assert client.get(queries, params={"wrong": True}).json()["items"] == [
        q for q in client.get(queries).json()["items"] if q["label"] not in (None, q["predicted"])
    ]


def test_recordings_that_are_not_like_the_data_are_refused(client, sample):
    url = f"{API}/datasets/{sample.dataset}/recordings"
    problem = error(client.post(url, params={"filename": "a.csv"}, content=b"series,time,left\na,0,1\n"), 422)
    assert "they have no constructor, top, idle" in problem["message"] and str(sample.folder) not in problem["message"]
    assert error(client.post(url, params={"filename": "../a.csv"}, content=b"x"), 422)["code"] == "bad_filename"
    error(client.post(f"{API}/datasets/nobody/recordings", params={"filename": "a.csv"}, content=b"x"), 404)
    assert not list(sample.folder.glob(".upload-*")) and not list((sample.folder / "datasets" / "own").glob("new/*"))


def test_a_group_of_recordings(client, sample):
    body = {"explainer": sample.nearest, "rows": [0, 3, 20], "target": "wild"}
    explain(client, sample, **{k: v for k, v in body.items() if k != "explainer"})
    found = client.post(f"{API}/groups", json=body).json()
    assert found["n"] == 3 and found["rows"] == [0, 3, 20] and np.shape(found["share"]) == (20, 4)
    assert sum(found["verdicts"].values()) == 3
    table = client.get(f"{API}/classifiers/{sample.classifier}/overview").json()
    assert np.sum(table["confusion"]["test"]) == N_TEST and len(table["x"]) == 90


def test_a_named_data_set_is_opened_once_and_a_body_found_by_its_features(client, sample):
    assert client.get(f"{API}/datasets/{sample.dataset}/skeleton").json()["limbs"] is None
    record = client.post(f"{API}/datasets", json={"name": "catching"}).json()
    assert record["class_names"] == ["Ataxia", "Autism", "Control"] and record["mutable"].count(False) == 2
    assert client.post(f"{API}/datasets", json={"name": "catching"}).json() == record
    assert [d["id"] for d in client.get(f"{API}/datasets").json()] == ["own", record["id"]]
    body = client.get(f"{API}/datasets/{record['id']}/skeleton").json()
    assert ["LeftElbow", "LeftWrist"] in body["limbs"] and body["ball"] == "Center" and "Head" in body["points"]
    assert record["feature_names"][body["points"]["LeftWrist"][1]] == "LeftWrist_y"


def test_a_curve_drawn_by_hand_is_judged_and_kept(client, sample):
    values = np.array(client.get(f"{API}/datasets/own/series/0").json()["values"])
    stroke = {"feature": "idle", "at": 8, "width": 2, "by": 0.25}
    drawn = explain(client, sample, strokes=[stroke], find_rest=False)[0]
    delta = np.array(drawn["counterfactual"]) - values
    assert delta[6:11, 3] == pytest.approx(0.25 * np.array([0.25, 0.75, 1, 0.75, 0.25]), abs=1e-6)
    assert np.count_nonzero(delta) == 5 and drawn["status"] == "not_found"
    assert drawn["verdict"]["word"] == "not reached" and drawn["probability_after"] != drawn["probability_before"]
    whole = explain(client, sample, strokes=[stroke])[0]
    kept = np.array(whole["counterfactual"])
    assert np.array_equal(kept[6:11, 3], np.array(drawn["counterfactual"])[6:11, 3])  # what was drawn stays
    assert whole["valid"] and whole["target"] == drawn["target"]
    assert (kept != values).any(0).sum() > 1
    assert whole["share_changed"] == (kept != values).sum() / values.size  # what was drawn is changed, too
    two = {"explainer": sample.nearest, "rows": [0, 1], "strokes": [stroke]}
    error(client.post(f"{API}/explanations", json=two), 422)
    body = {"explainer": sample.nearest, "rows": [0], "strokes": [{**stroke, "feature": "nose"}]}
    assert "nose" in error(client.post(f"{API}/explanations", json=body), 422)["message"]


def test_export_formats(client, sample):
    for kind, opening in {**OPENINGS, "svg": b"<?xml"}.items():
        response = client.post(f"{API}/exports/{kind}", json={"explainer": sample.nearest, "rows": [7]})
        assert response.status_code == 200 and response.content.startswith(opening)
        assert f'filename="explanation.{kind}"' in response.headers["content-disposition"]


STROKE = {"feature": "left", "at": 8, "width": 2, "by": 1}
INVALID = [
    ({"rows": [10**6]}, 422, "no_such_row", "there are 90"),
    ({"rows": list(range(17)) * 5}, 413, "too_many_rows", "at most 64"),
    ({"answers": 50}, 413, "too_many_answers", "at most 5"),
    ({"target": "angry"}, 422, "target", "angry"),
    ({"constraints": {"immutable": ["nose"]}}, 422, "constraint", "nose"),
    ({"constraints": {"frozen": [[5, 2]]}}, 422, "constraint", "0 <= start < stop"),
    ({"explainer": "nobody"}, 404, "not_found", "nobody"),
    ({"surprise": 1}, 422, "invalid_request", "surprise"),
    ({"rows": ["0"]}, 422, "invalid_request", "body.rows.0: "),
    ({"target": "\ud800"}, 422, "invalid_request", "body.target: "),
    ({"constraints": {"ranges": {"left": [0, float("inf")]}}}, 422, "invalid_request", "constraints.ranges.left.1: "),
    ({"strokes": [{**STROKE, "by": 1e300}]}, 422, "invalid_request", "body.strokes.0.by: "),
]


def test_invalid_requests(client, sample):
    for change, status, code, text in INVALID:
        request = {"explainer": sample.nearest, "rows": [0], **change}
        content = json.dumps(request).encode()  # also what is no JSON strictly, such as NaN
        response = client.post(f"{API}/explanations", content=content, headers={"Content-Type": "application/json"})
        problem = error(response, status)
        assert problem["code"] == code and text in problem["message"], change


def test_names_cannot_refer_to_other_folders(client, sample):
    before = sorted(p.relative_to(sample.folder.parent) for p in sample.folder.parent.rglob("*"))
    for name in ("../own", "..%2Fown", "%2e%2e/own", "....//own", "own/about.json", "OWN", ".own"):
        assert client.get(f"{API}/datasets/{name}/series/0").status_code in (404, 422)
        error(client.get(f"/static/{name}"), 404)
    for name in ("../../evil.npz", "..\\evil.npz", "/etc/passwd.csv", ".npz", "a.pickle", "a", "..csv"):
        response = client.post(f"{API}/datasets/upload", params={"filename": name}, content=npz_bytes(30))
        assert error(response, 422)["code"] == "bad_filename"
    path = str(sample.folder / "datasets" / "own" / "own.npz")
    assert error(client.post(f"{API}/datasets", json={"name": path[-60:]}), 422)["code"] == "unknown_name"
    assert sorted(p.relative_to(sample.folder.parent) for p in sample.folder.parent.rglob("*")) == before
    for path in ("/api/v1/nowhere", "/api/v2/status", "/nowhere"):
        error(client.get(path), 404)


def test_items_in_use_are_not_removed(client, sample):
    assert "nearest" in error(client.delete(f"{API}/classifiers/{sample.classifier}"), 409)["message"]
    assert sample.classifier in error(client.delete(f"{API}/datasets/{sample.dataset}"), 409)["message"]
    for name in (sample.nearest, sample.ics):
        assert client.delete(f"{API}/explainers/{name}").status_code == 204
    assert client.delete(f"{API}/classifiers/{sample.classifier}").status_code == 204
    assert client.delete(f"{API}/datasets/{sample.dataset}").status_code == 204


def test_an_explainer_of_an_older_version_is_listed_reported_and_removable(client, sample):
    make_outdated(sample, sample.ics)
    assert [e["method"] for e in client.get(f"{API}/explainers").json()] == ["nearest", "sparce"]
    for path in ("explanations", "exports/csv"):
        problem = error(client.post(f"{API}/{path}", json={"explainer": sample.ics, "rows": [0]}), 422)
        assert problem["code"] == "file_format" and "Fit and save it again" in problem["message"]
    assert explain(client, sample)[0]["valid"]
    assert client.delete(f"{API}/explainers/{sample.ics}").status_code == 204


def test_a_model_that_knows_nothing_is_spoken_against(start, sample):
    workspace, file = Workspace(sample.folder), sample.folder / "datasets" / "own" / "own.npz"
    with np.load(file) as stored:
        arrays = dict(stored)
    np.savez(file, **{**arrays, "y": np.random.default_rng(0).permutation(arrays["y"])})  # other labels
    fit_explainer(workspace, "doubted", FitExplainer(classifier="fcn", method="nearest", preset="tiny"), 0, "cpu")
    client = start()
    records = {record["id"]: record for record in client.get(f"{API}/explainers").json()}
    (doubt,) = records["doubted"]["doubts"]
    assert doubt.startswith("the model is not better than chance") and doubt in records["doubted"]["summary"]
    assert records[sample.nearest]["doubts"] == []
    request = {"explainer": "doubted", "rows": [0, 1, 2, 3]}
    answers = client.post(f"{API}/explanations", json=request).json()["answers"]
    assert all(answer["verdict"]["doubts"][0] == doubt for answer in answers if answer["valid"])
