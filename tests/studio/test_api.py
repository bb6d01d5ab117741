"""The API as a client program uses it: data, queries, explanations, exports, and error responses."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

import sparcets as sp
from sparcets.studio.limits import Limits

from .conftest import API, N_TEST, NAMES, Sample, error, make_outdated, npz_bytes


def explain(client: TestClient, sample: Sample, **options: Any) -> Any:
    response = client.post(f"{API}/explanations", json={"explainer": sample.nearest, "rows": [0], **options})
    assert response.status_code == 200, response.text
    return response.json()["answers"]


def test_status_and_catalog(client: TestClient) -> None:
    status = client.get(f"{API}/status").json()
    assert status["version"] == sp.__version__ and status["workspace"] == "workspace"
    catalog = client.get(f"{API}/catalog").json()
    assert {"nearest", "sparce", "sparcets"} <= {e["name"] for e in catalog["explainers"]}
    assert all(entry["about"] for kind in catalog.values() for entry in kind)


def test_opening_a_data_set_twice_returns_one_record(client: TestClient) -> None:
    first = client.post(f"{API}/datasets", json={"name": "catching"}).json()
    assert first["class_names"] == ["Ataxia", "Autism", "Control"] and first["mutable"].count(False) == 2
    assert client.post(f"{API}/datasets", json={"name": "catching"}).json() == first
    assert [d["id"] for d in client.get(f"{API}/datasets").json()] == ["own", first["id"]]


def test_upload_and_remove_an_npz_file(client: TestClient, sample: Sample) -> None:
    response = client.post(f"{API}/datasets/upload", params={"filename": "gait study.npz"}, content=npz_bytes(60))
    assert response.status_code == 201
    record = response.json()
    assert record["name"] == "gait_study" and record["feature_names"] == NAMES and record["n_train"] == 48
    assert record["units"] == ["m", "m", "m", "V"] and record["sampling_rate"] == 10
    assert (sample.folder / "datasets" / record["id"] / "gait_study.npz").is_file()
    series = client.get(f"{API}/datasets/{record['id']}/series/0").json()
    assert np.shape(series["values"]) == (record["n_steps"], 4)
    assert client.delete(f"{API}/datasets/{record['id']}").status_code == 204
    error(client.get(f"{API}/datasets/{record['id']}"), 404)
    assert not list((sample.folder / "datasets").glob("*gait*"))


def test_upload_a_csv_file(client: TestClient) -> None:
    rows = [f"{s},{t},{'sick' if s % 2 else 'well'},{s + t}" for s in range(10) for t in range(3)]
    text = "series,time,label,pulse\n" + "\n".join(rows)
    record = client.post(f"{API}/datasets/upload", params={"filename": "p.csv"}, content=text.encode()).json()
    assert record["class_counts"] == [5, 5] and record["low"] == [0.0]


def test_queries_are_listed_in_pages_and_filtered(client: TestClient, sample: Sample) -> None:
    url = f"{API}/classifiers/{sample.classifier}/queries"
    every = client.get(url).json()
    assert every["total"] == N_TEST and len(every["items"]) == N_TEST
    page = client.get(url, params={"offset": 3, "limit": 2}).json()
    assert [q["row"] for q in page["items"]] == [3, 4] and page["total"] == N_TEST
    wild = client.get(url, params={"predicted": "wild"}).json()["items"]
    assert wild == [q for q in every["items"] if q["predicted"] == "wild"] and wild
    wrong = client.get(url, params={"wrong": True}).json()["items"]
    assert wrong == [q for q in every["items"] if q["predicted"] != q["label"]]


def test_series_have_the_names_of_the_data(client: TestClient, sample: Sample) -> None:
    ds = sp.load_dataset(sample.folder / "datasets" / sample.dataset / "own.npz", seed=0)
    assert ds.ids_test is not None and ds.subjects_test is None
    listed = client.get(f"{API}/classifiers/{sample.classifier}/queries").json()["items"]
    assert [q["id"] for q in listed] == ds.ids_test.tolist() and {q["subject"] for q in listed} == {None}
    assert client.get(f"{API}/datasets/{sample.dataset}/series/7").json()["id"] == ds.ids_test[7]
    assert [a["id"] for a in explain(client, sample, rows=[5, 1])] == ds.ids_test[[5, 1]].tolist()
    body = {"explainer": sample.nearest, "rows": [4]}
    assert str(ds.ids_test[4]) in client.post(f"{API}/exports/csv", json=body).text
    assert "ids=ds.ids_test[[4]]" in client.post(f"{API}/exports/py", json=body).text


def test_explanations_equal_those_of_the_library(client: TestClient, sample: Sample) -> None:
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
    table = e[0].to_frame()[["feature", "start", "end", "mean_change", "units"]]
    pd.testing.assert_frame_equal(pd.DataFrame(answers[0]["changes"]), table, check_dtype=False)


def test_a_batch_equals_single_requests(client: TestClient, sample: Sample) -> None:
    together = explain(client, sample, rows=[5, 1, 3])
    single = [explain(client, sample, rows=[row])[0] for row in (5, 1, 3)]
    for one, other in zip(together, single, strict=True):
        assert one["row"] == other["row"] and one["text"] == other["text"] and one["changes"] == other["changes"]
        assert one["counterfactual"] == other["counterfactual"]
        assert one["probability_after"] == pytest.approx(other["probability_after"], abs=1e-6)


def test_a_locked_feature_does_not_change(client: TestClient, sample: Sample) -> None:
    free = explain(client, sample)[0]
    name = free["changes"][0]["feature"]
    locked = explain(client, sample, constraints={"immutable": [name]})[0]
    values = client.get(f"{API}/datasets/own/series/0").json()["values"]
    k = NAMES.index(name)
    assert [step[k] for step in locked["counterfactual"]] == [step[k] for step in values]
    assert [step[k] for step in free["counterfactual"]] != [step[k] for step in values]


@pytest.mark.parametrize(
    ("kind", "opening"),
    [
        ("png", b"\x89PNG"),
        ("svg", b"<?xml"),
        ("pdf", b"%PDF"),
        ("npz", b"PK"),
        ("csv", b"query,id,verdict,feature"),
        ("html", b"<!doctype html>"),
    ],
)
def test_export_formats(client: TestClient, sample: Sample, kind: str, opening: bytes) -> None:
    response = client.post(f"{API}/exports/{kind}", json={"explainer": sample.nearest, "rows": [7]})
    assert response.status_code == 200 and response.content.startswith(opening)
    assert f'filename="explanation.{kind}"' in response.headers["content-disposition"]


def test_the_exported_table_contains_the_rows_of_the_data(client: TestClient, sample: Sample) -> None:
    response = client.post(f"{API}/exports/csv", json={"explainer": sample.nearest, "rows": [7, 2]})
    assert set(pd.read_csv(BytesIO(response.content))["query"]) == {7, 2}


INVALID = [
    ({"rows": [10**6]}, 422, "no_such_row", "there are 18"),
    ({"rows": []}, 422, "invalid_request", "rows"),
    ({"rows": list(range(17)) * 5}, 413, "too_many_rows", "at most 64"),
    ({"answers": 50}, 413, "too_many_answers", "at most 5"),
    ({"target": "angry"}, 422, "target", "angry"),
    ({"sparsity": 2}, 422, "invalid_request", "sparsity"),
    ({"constraints": {"immutable": ["nose"]}}, 422, "constraint", "nose"),
    ({"constraints": {"immutable": NAMES}}, 422, "constraint", ""),
    ({"constraints": {"frozen": [[5, 2]]}}, 422, "constraint", "0 <= start < stop"),
    ({"explainer": "nobody"}, 404, "not_found", "nobody"),
    ({"surprise": 1}, 422, "invalid_request", "surprise"),
]


@pytest.mark.parametrize(("change", "status", "code", "text"), INVALID, ids=[str(i[0])[:40] for i in INVALID])
def test_invalid_requests(
    client: TestClient, sample: Sample, change: dict[str, Any], status: int, code: str, text: str
) -> None:
    request = {"explainer": sample.nearest, "rows": [0], **change}
    problem = error(client.post(f"{API}/explanations", json=request), status)
    assert problem["code"] == code and text in problem["message"]


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v2/status", "/api/v1/jobs/none", "/nowhere", "/static/none"])
def test_unknown_paths_have_the_same_error_shape(client: TestClient, path: str) -> None:
    error(client.get(path), 404)


@pytest.mark.parametrize("path", [f"{API}/status", "/static/style.css"])
def test_methods_that_are_not_allowed(client: TestClient, path: str) -> None:
    assert "PUT" in error(client.put(path), 405)["message"]


@pytest.mark.parametrize("name", ["../own", "..%2Fown", "%2e%2e/own", "....//own", "own/about.json", "OWN", ".own"])
def test_ids_cannot_refer_to_other_folders(client: TestClient, name: str) -> None:
    assert client.get(f"{API}/datasets/{name}/series/0").status_code in (404, 422)
    assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    "name", ["../../evil.npz", "..\\evil.npz", "/etc/passwd.csv", ".npz", "a.pickle", "a", "..csv"]
)
def test_file_names_cannot_refer_to_other_folders(client: TestClient, sample: Sample, name: str) -> None:
    before = sorted(p.relative_to(sample.folder.parent) for p in sample.folder.parent.rglob("*"))
    response = client.post(f"{API}/datasets/upload", params={"filename": name}, content=npz_bytes(30))
    assert error(response, 422)["code"] == "bad_filename"
    assert sorted(p.relative_to(sample.folder.parent) for p in sample.folder.parent.rglob("*")) == before


def test_a_path_is_not_the_name_of_a_data_set(client: TestClient, sample: Sample) -> None:
    path = str(sample.folder / "datasets" / "own" / "own.npz")
    problem = error(client.post(f"{API}/datasets", json={"name": path[-60:]}), 422)
    assert problem["code"] == "unknown_name"


def test_items_in_use_are_not_removed(client: TestClient, sample: Sample) -> None:
    assert "nearest" in error(client.delete(f"{API}/classifiers/{sample.classifier}"), 409)["message"]
    assert sample.classifier in error(client.delete(f"{API}/datasets/{sample.dataset}"), 409)["message"]
    for name in (sample.nearest, sample.ics):
        assert client.delete(f"{API}/explainers/{name}").status_code == 204
    assert client.delete(f"{API}/classifiers/{sample.classifier}").status_code == 204
    assert client.delete(f"{API}/datasets/{sample.dataset}").status_code == 204


def test_concurrent_requests_do_not_interfere(client: TestClient, sample: Sample) -> None:
    requests = [
        {"explainer": explainer, "rows": [row], "constraints": {"immutable": [name]}}
        for row in range(6)
        for explainer, name in ((sample.nearest, "left"), (sample.ics, "constructor"))
    ]

    def answers(request: dict[str, Any]) -> Any:
        return client.post(f"{API}/explanations", json=request).json()["answers"]

    one_by_one = [answers(request) for request in requests]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(answers, requests)) == one_by_one


def test_a_restart_gives_the_same_answers(start: Callable[..., TestClient], sample: Sample) -> None:
    first = explain(start(), sample)
    assert explain(start(limits=Limits(cached_models=1)), sample) == first


def test_an_explainer_of_an_older_version_is_listed_reported_and_removable(client: TestClient, sample: Sample) -> None:
    make_outdated(sample, sample.ics)
    assert [e["method"] for e in client.get(f"{API}/explainers").json()] == ["nearest", "sparce"]
    for path in ("explanations", "exports/csv"):
        problem = error(client.post(f"{API}/{path}", json={"explainer": sample.ics, "rows": [0]}), 422)
        assert problem["code"] == "file_format" and "Fit and save it again" in problem["message"]
    assert explain(client, sample)[0]["valid"]
    assert client.delete(f"{API}/explainers/{sample.ics}").status_code == 204
