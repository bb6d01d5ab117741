"""The choice of an engine, without any cluster."""

import socket
import sys

import pytest

from sparcets.core.errors import CapabilityError, ConfigError, MissingExtraError, UnknownNameError
from sparcets.io.engines import ENGINES, make_engine


def test_engines_have_names() -> None:
    assert list(ENGINES) == ["local", "ray"]
    with pytest.raises(UnknownNameError, match=r"no engine 'raay'\. Did you mean 'ray'\?"):
        make_engine("raay")


def test_local_engine_has_no_address_and_one_worker() -> None:
    with pytest.raises(ConfigError, match=r"the engine local has no address, got 'a:1'"):
        make_engine("local", address="a:1")
    with make_engine("local") as engine:
        assert engine.n_workers(None) == 1 and engine.n_workers(3) == 3


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it raises
    with pytest.raises(MissingExtraError, match=r"the engine ray needs ray\. .*pip install 'sparcets\[ray\]'"):
        make_engine("ray").__enter__()


def test_nothing_at_the_address_is_told_at_once() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CapabilityError, match=rf"no Ray cluster answers at {address}: .*ray start --head"):
        make_engine("ray", address=address).__enter__()
    with pytest.raises(ConfigError, match=r"has the form host:port, as 10\.0\.0\.1:6379, got 'there'"):
        make_engine("ray", address="there").__enter__()
