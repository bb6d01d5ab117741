"""The API as a program uses it: the whole story, batches, mistakes in one shape, two people at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import sparcets as sp
from sparcets.studio.limits import Limits

from .conftest import NAMES, Made, error, npz

API = "/api/v1"


def ask(client: TestClient, made: Made, **more: Any) -> dict[str, Any]:
    response = client.post(f"{API}/explanations", json={"explainer": made.nearest, "rows": [0], **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def test_status_and_catalog(client: TestClient) -> None:
    status = client.get(f"{API}/status").json()
    assert status["version"] == sp.__version__ and status["workspace"] == "workspace"
    catalog = client.get(f"{API}/catalog").json()
    assert {"nearest", "sparce"} <= {e["name"] for e in catalog["explainers"]}
    assert all(entry["about"] for kind in catalog.values() for entry in kind)


def test_a_data_set_is_opened_by_name_and_only_once(client: TestClient) -> None:
    first = client.post(f"{API}/datasets", json={"name": "catching"}).json()
    assert first["class_names"] == ["Ataxia", "Autism", "Control"] and first["mutable"].count(False) == 2
    assert client.post(f"{API}/datasets", json={"name": "catching"}).json() == first
    assert [d["id"] for d in client.get(f"{API}/datasets").json()] == ["own", first["id"]]


def test_an_upload_is_described_and_removed(client: TestClient, made: Made) -> None:
    response = client.post(f"{API}/datasets/upload", params={"filename": "gait study.npz"}, content=npz(60))
    assert response.status_code == 201
    record = response.json()
    assert record["name"] == "gait_study" and record["feature_names"] == NAMES and record["n_train"] == 48
    assert record["units"] == ["m", "m", "m", "V"] and record["sampling_rate"] == 10
    assert (made.folder / "datasets" / record["id"] / "gait_study.npz").is_file()
    series = client.get(f"{API}/datasets/{record['id']}/series/0").json()
    assert np.shape(series["values"]) == (record["n_steps"], 4)
    assert client.delete(f"{API}/datasets/{record['id']}").status_code == 204
    error(client.get(f"{API}/datasets/{record['id']}"), 404)
    assert not list((made.folder / "datasets").glob("*gait*"))


def test_a_table_is_uploaded_too(client: TestClient) -> None:
    rows = [f"{s},{t},{'sick' if s % 2 else 'well'},{s + t}" for s in range(10) for t in range(3)]
    text = "series,time,label,pulse\n" + "\n".join(rows)
    record = client.post(f"{API}/datasets/upload", params={"filename": "p.csv"}, content=text.encode()).json()
    assert record["class_counts"] == [5, 5] and record["low"] == [0.0]


def test_queries_are_listed_with_what_the_classifier_says(client: TestClient, made: Made) -> None:
    url = f"{API}/classifiers/{made.classifier}/queries"
    every = client.get(url).json()
    assert every["total"] == 18 and len(every["items"]) == 18
    page = client.get(url, params={"offset": 3, "limit": 2}).json()
    assert [q["row"] for q in page["items"]] == [3, 4] and page["total"] == 18
    wild = client.get(url, params={"predicted": "wild"}).json()["items"]
    assert wild == [q for q in every["items"] if q["predicted"] == "wild"] and wild
    wrong = client.get(url, params={"wrong": True}).json()["items"]
    assert wrong == [q for q in every["items"] if q["predicted"] != q["label"]]


def test_an_answer_is_that_of_the_library(client: TestClient, made: Made) -> None:
    clf = sp.load_classifier(made.folder / "classifiers" / made.classifier)
    ex = sp.load(made.folder / "explainers" / made.nearest, classifier=clf)
    ds = sp.load_dataset(made.folder / "datasets" / made.dataset / "own.npz", seed=0)
    limits = sp.Constraints(immutable=["idle"], frozen=[(0, 3)], ranges={"left": (-np.inf, 1.0)})
    e = ex.explain(ds.X_test[[4]], None, sparsity=0.5, n=2, constraints=limits)
    rules = {"immutable": ["idle"], "frozen": [[0, 3]], "ranges": {"left": [None, 1.0]}}
    got = ask(client, made, rows=[4], sparsity=0.5, answers=2, constraints=rules)["answers"]
    assert len(got) == 2
    for i, answer in enumerate(got):
        assert np.array_equal(np.float32(answer["counterfactual"]), e.counterfactual[i])
        assert answer["text"] == e.text(i) and answer["status"] == e.status[i] and answer["row"] == 4
        assert answer["share_changed"] == pytest.approx(float(e.share_changed[i]))
    table = e[0].to_frame()[["feature", "start", "end", "mean_change", "units"]]
    pd.testing.assert_frame_equal(pd.DataFrame(got[0]["changes"]), table, check_dtype=False)


def test_a_batch_is_the_same_as_one_by_one(client: TestClient, made: Made) -> None:
    together = ask(client, made, rows=[5, 1, 3])["answers"]
    apart = [ask(client, made, rows=[row])["answers"][0] for row in (5, 1, 3)]
    for one, other in zip(together, apart, strict=True):
        assert one["row"] == other["row"] and one["text"] == other["text"] and one["changes"] == other["changes"]
        assert one["counterfactual"] == other["counterfactual"]
        assert one["probability_after"] == pytest.approx(other["probability_after"], abs=1e-6)


def test_a_locked_feature_does_not_change(client: TestClient, made: Made) -> None:
    free = ask(client, made, rows=[0])["answers"][0]
    name = free["changes"][0]["feature"]
    held = ask(client, made, rows=[0], constraints={"immutable": [name]})["answers"][0]
    values = client.get(f"{API}/datasets/own/series/0").json()["values"]
    k = NAMES.index(name)
    assert [step[k] for step in held["counterfactual"]] == [step[k] for step in values]
    assert [step[k] for step in free["counterfactual"]] != [step[k] for step in values]


@pytest.mark.parametrize(
    ("kind", "opening"),
    [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("npz", b"PK"), ("csv", b"query,feature")],
)
def test_what_is_on_the_screen_comes_as_a_file(client: TestClient, made: Made, kind: str, opening: bytes) -> None:
    response = client.post(f"{API}/exports/{kind}", json={"explainer": made.nearest, "rows": [7]})
    assert response.status_code == 200 and response.content.startswith(opening)
    assert f'filename="explanation.{kind}"' in response.headers["content-disposition"]


def test_the_table_names_the_rows_of_the_data(client: TestClient, made: Made) -> None:
    response = client.post(f"{API}/exports/csv", json={"explainer": made.nearest, "rows": [7, 2]})
    assert set(pd.read_csv(BytesIO(response.content))["query"]) == {7, 2}


MISTAKES = [
    ({"rows": [10**6]}, 422, "no_such_row", "there are 18"),
    ({"rows": []}, 422, "invalid_request", "rows"),
    ({"rows": list(range(17)) * 5}, 413, "too_many_rows", "at most 64"),
    ({"answers": 50}, 413, "too_many_answers", "at most 5"),
    ({"target": "angry"}, 422, "target", "angry"),
    ({"sparsity": 2}, 422, "invalid_request", "sparsity"),
    ({"constraints": {"immutable": ["nose"]}}, 422, "constraint", "nose"),
    ({"constraints": {"immutable": NAMES}}, 422, "constraint", "nothing that may change"),
    ({"constraints": {"frozen": [[5, 2]]}}, 422, "constraint", "0 <= start < stop"),
    ({"explainer": "nobody"}, 404, "not_found", "nobody"),
    ({"surprise": 1}, 422, "invalid_request", "surprise"),
]


@pytest.mark.parametrize(("change", "status", "code", "words"), MISTAKES, ids=[str(m[0])[:40] for m in MISTAKES])
def test_mistakes_are_told_in_one_shape(
    client: TestClient, made: Made, change: dict[str, Any], status: int, code: str, words: str
) -> None:
    asked = {"explainer": made.nearest, "rows": [0], **change}
    told = error(client.post(f"{API}/explanations", json=asked), status)
    assert told["code"] == code and words in told["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/v1/nowhere"), ("GET", "/api/v2/status"), ("GET", "/api/v1/jobs/none"), ("GET", "/elsewhere")],
)
def test_what_is_not_there_is_told_in_the_same_shape(client: TestClient, method: str, path: str) -> None:
    error(client.request(method, path), 404)


def test_a_method_that_is_not_possible(client: TestClient) -> None:
    assert "PUT is not possible" in error(client.put(f"{API}/status"), 405)["message"]


@pytest.mark.parametrize("name", ["../own", "..%2Fown", "%2e%2e/own", "....//own", "own/about.json", "OWN", ".own"])
def test_ids_cannot_lead_outside(client: TestClient, name: str) -> None:
    assert client.get(f"{API}/datasets/{name}/series/0").status_code in (404, 422)
    assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    "name", ["../../evil.npz", "..\\evil.npz", "/etc/passwd.csv", ".npz", "a.pickle", "a", "..csv"]
)
def test_file_names_cannot_lead_outside(client: TestClient, made: Made, name: str) -> None:
    before = sorted(p.relative_to(made.folder.parent) for p in made.folder.parent.rglob("*"))
    told = error(client.post(f"{API}/datasets/upload", params={"filename": name}, content=npz(30)), 422)
    assert told["code"] == "bad_filename"
    assert sorted(p.relative_to(made.folder.parent) for p in made.folder.parent.rglob("*")) == before


def test_paths_are_no_names_of_data_sets(client: TestClient, made: Made) -> None:
    path = str(made.folder / "datasets" / "own" / "own.npz")
    told = error(client.post(f"{API}/datasets", json={"name": path[-60:]}), 422)
    assert told["code"] == "unknown_name"


def test_what_is_needed_is_not_removed(client: TestClient, made: Made) -> None:
    assert "nearest" in error(client.delete(f"{API}/classifiers/{made.classifier}"), 409)["message"]
    assert made.classifier in error(client.delete(f"{API}/datasets/{made.dataset}"), 409)["message"]
    for name in (made.nearest, made.ics):
        assert client.delete(f"{API}/explainers/{name}").status_code == 204
    assert client.delete(f"{API}/classifiers/{made.classifier}").status_code == 204
    assert client.delete(f"{API}/datasets/{made.dataset}").status_code == 204


def test_two_people_at_once_get_each_their_own(client: TestClient, made: Made) -> None:
    asked = [
        {"explainer": explainer, "rows": [row], "constraints": {"immutable": [name]}}
        for row in range(6)
        for explainer, name in ((made.nearest, "left"), (made.ics, "right"))
    ]

    def answer(question: dict[str, Any]) -> Any:
        return client.post(f"{API}/explanations", json=question).json()["answers"]

    alone = [answer(question) for question in asked]
    with ThreadPoolExecutor(8) as people:
        assert list(people.map(answer, asked)) == alone


def test_nothing_is_lost_when_the_studio_starts_again(start: Callable[..., TestClient], made: Made) -> None:
    first = ask(start(), made)["answers"]
    assert ask(start(limits=Limits(loaded=1)), made)["answers"] == first
