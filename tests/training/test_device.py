"""Devices by name, and a random state and a number of threads that are only borrowed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import sparcets as sp
from sparcets.core.errors import CapabilityError
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule
from sparcets.training.device import SMALL, resolve_device, seeded, threads_for, with_double_precision

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
CPU = torch.device("cpu")


def test_cpu_is_the_cpu_and_auto_is_the_gpu_if_there_is_one(monkeypatch):
    assert resolve_device("cpu") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == CPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == torch.device("cuda")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "no device 'gpu'. Use 'auto', 'cpu', 'cuda'"),
        ("", "no device ''"),
        ("mps", "device 'mps' is not available: torch sees no GPU of Apple here. Use device='cpu'"),
        ("meta", "device 'meta' is not supported"),
    ],
)
def test_a_name_that_is_no_device_says_which_are(name, message):
    with pytest.raises(CapabilityError, match=message):
        resolve_device(name)


def test_a_gpu_that_is_not_there_is_an_error_before_any_work(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CapabilityError, match="device 'cuda' is not available: torch sees no CUDA device here"):
        resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(CapabilityError, match="device 'cuda:2' is not available: there are 2 CUDA devices"):
        resolve_device("cuda:2")


def test_a_seeded_block_draws_the_same_and_gives_the_state_back():
    before = torch.get_rng_state()
    draws = []
    for seed in (3, 3, 4):
        with seeded(seed, CPU):
            draws.append(torch.rand(4))
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("borrowed", ["cpu", "cuda"])
def test_the_state_of_the_gpu_is_given_back(borrowed):
    torch.cuda.manual_seed(11)
    before = torch.cuda.get_rng_state(), torch.get_rng_state()
    draws = []
    for _ in range(2):
        with seeded(3, torch.device(borrowed)):
            draws.append(torch.rand(4, device=borrowed).cpu())
    assert torch.equal(*draws)
    assert torch.equal(torch.cuda.get_rng_state(), before[0]) and torch.equal(torch.get_rng_state(), before[1])


def test_a_gpu_of_apple_is_taken_where_torch_has_it(monkeypatch):
    """A stub of torch.backends.mps and torch.mps: there is no such device here."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("mps") == torch.device("mps")
    assert resolve_device("auto").type != "mps"  # it has to be asked for
    state = [11]
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: state[0])
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda before: state.__setitem__(0, before))
    monkeypatch.setattr(torch.mps, "manual_seed", lambda seed: state.__setitem__(0, seed))
    before = torch.get_rng_state()
    with pytest.raises(ZeroDivisionError), seeded(3, torch.device("mps")):
        _ = [state[0], torch.initial_seed()] == [3, 3] and 1 / 0
    assert state == [11] and torch.equal(torch.get_rng_state(), before)


def test_what_needs_double_precision_runs_on_the_cpu_instead_and_says_so(monkeypatch, caplog):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    on_cpu, on_mps = (sp.ExplainerConfig(device=name) for name in ("cpu", "mps"))
    assert with_double_precision(on_cpu) is on_cpu and not caplog.records
    assert with_double_precision(on_mps) == on_cpu
    assert "sp.Explainer needs double precision, which GPUs of Apple do not have; it runs on the CPU" in caplog.text
    X, y = make_series(30, n_steps=6)
    settings = ("believed_by=model", "device=mps")
    ex = sp.Explainer(sp.wrap(MeanModule()), sp.ExplainerConfig.tiny().override(*settings)).fit(X, y)
    assert ex.explain(X[:1], target=1).valid.all() and ex._fitted_model().device == CPU


# Threads: small work runs on one.


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("n_entries", "expected"), [(1, 1), (SMALL - 1, 1), (SMALL, 2)])
def test_small_work_runs_on_one_thread(two_threads, n_entries, expected):
    with threads_for(n_entries):
        assert torch.get_num_threads() == expected
    assert torch.get_num_threads() == 2


def test_a_thread_that_starts_during_a_block_of_another_does_not_keep_its_number(two_threads):
    with ThreadPoolExecutor(1) as other:
        with threads_for(1):
            other.submit(torch.get_num_threads).result()  # takes over the number of the process, which is 1 now

        def enter():
            with threads_for(1):
                pass
            return torch.get_num_threads()

        assert other.submit(enter).result() == 2
    assert torch.get_num_threads() == 2
    with ThreadPoolExecutor(1) as new:
        assert new.submit(torch.get_num_threads).result() == 2
