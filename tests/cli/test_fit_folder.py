"""The folder of a fit: replaced as a whole, and never read as parts of two fits."""

import shutil
import threading

import pytest

import sparcets as sp
from sparcets.__main__ import main
from tests.campaigns.folders import snapshot

from .conftest import save_series


@pytest.fixture(scope="module")
def own_data(tmp_path_factory):
    return save_series(tmp_path_factory.mktemp("data") / "own.npz", 60, n_steps=8)


def fit(data, out, *more):
    return main(["fit", "-d", data, "--out", str(out), "-m", "nearest", "-c", "fcn", "--preset", "tiny", *more])


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def fits(own_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    assert fit(own_data, folder / "a") == 0 and fit(own_data, folder / "b", "--seed", "5") == 0
    return folder / "a", folder / "b"


def test_a_second_fit_into_a_folder_needs_force(own_data, fits, tmp_path, capsys):
    model = tmp_path / "model"
    shutil.copytree(fits[0], model)
    (model / "notes.txt").write_text("mine")
    before = contents(model)
    capsys.readouterr()
    assert fit(own_data, model, "--seed", "5") == 2
    err = capsys.readouterr().err
    assert "model holds a fit already" in err and "--force" in err and len(err.strip().splitlines()) == 1
    assert contents(model) == before
    assert fit(own_data, model, "--seed", "5", "--force") == 0
    assert contents(model) == {**contents(fits[1]), "notes.txt": b"mine"}
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("part", ["classifier", "explainer", "run.json"])
def test_parts_of_two_fits_are_refused(part, fits, tmp_path, capsys):
    model = tmp_path / "model"
    shutil.copytree(fits[0], model)
    if part == "run.json":
        shutil.copy(fits[1] / part, model / part)
    else:
        shutil.rmtree(model / part)
        shutil.copytree(fits[1] / part, model / part)
    capsys.readouterr()
    assert main(["explain", str(model), "--rows", "0:2"]) == 2
    err = capsys.readouterr().err
    assert "are of different fits" in err and str(model / "run.json") in err and len(err.strip().splitlines()) == 1
    assert ("explainer.saf" in err) == (part != "classifier") and ("classifier.saf" in err) == (part != "explainer")


def test_a_reader_beside_a_writer_gets_one_fit(fits, tmp_path, capsys):
    from sparcets.io.folders import atomic_folder
    from sparcets.methods.folder import load_fit

    model = tmp_path / "model"
    shutil.copytree(fits[0], model)
    known = {fit: load_fit(fit, device="cpu")[0]["dataset_options"]["seed"] for fit in fits}
    digests = {seed: sp.load_classifier(fit / "classifier").digest() for fit, seed in known.items()}
    stop = threading.Event()

    def replace():
        while not stop.is_set():
            for source in (fits[1], fits[0]):
                with atomic_folder(model) as folder:
                    shutil.copytree(source, folder, dirs_exist_ok=True)
                stop.wait(0.02)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(40):
            run, explainer = load_fit(model, device="cpu")
            assert explainer.classifier.digest() == digests[run["dataset_options"]["seed"]]
    finally:
        stop.set()
        writer.join()


IN_THE_WAY = "classifier/model.py explainer/notes.txt classifier/.git/HEAD classifier run.json link"
WITHIN = "classifier/notes.txt explainer/.hidden explainer/link classifier/weights.safetensors"


@pytest.mark.parametrize("name", IN_THE_WAY.split())
def test_force_replaces_fits_alone(name, own_data, tmp_path, capsys):
    (file := tmp_path / "proj" / name).parent.mkdir(parents=True)
    file.write_text("theirs")
    if name == "link":
        file.with_name("run.json").symlink_to("link")
        file.unlink()
        name = "run.json"
    before = snapshot(tmp_path)
    for options in ((), ("--force",)):
        assert fit(own_data, tmp_path / "proj", *options) == 2
        err = capsys.readouterr().err
        assert "is in the way: it is not of a fit" in err and name.split("/")[0] in err and snapshot(tmp_path) == before


@pytest.mark.parametrize("name", WITHIN.split())
def test_force_keeps_a_fit_that_holds_files_of_others(name, own_data, fits, tmp_path, capsys):
    shutil.copytree(fits[0], tmp_path / "model")
    (tmp_path / "model" / name).symlink_to(fits[1]) if name.endswith("link") else (tmp_path / "model" / name).touch()
    before = snapshot(tmp_path)
    assert fit(own_data, tmp_path / "model", "--force") == 2
    assert f"{name} is in the way" in capsys.readouterr().err and snapshot(tmp_path) == before
