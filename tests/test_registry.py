"""Names to classes: loaded on use, helpful about typing errors, open to other packages."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.errors import ConfigError, MissingExtraError, UnknownNameError
from sparcets.registry import Registry, did_you_mean, require_extra, unknown_name


@pytest.fixture
def registry() -> Registry:
    return Registry("colour", {"red": "json:dumps", "blue": "no_such_module:x"}, about={"red": "as a rose"})


def test_listing_imports_nothing(registry: Registry) -> None:
    assert list(registry) == ["blue", "red"] and len(registry) == 2 and "blue" in registry
    assert registry.location("blue") == "no_such_module:x"
    assert registry.about == {"red": "as a rose"}


def test_loading(registry: Registry) -> None:
    assert registry.load("red") is json.dumps
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry.load("blue")


@pytest.mark.parametrize("method", ["load", "location"])
def test_unknown_names(registry: Registry, method: str) -> None:
    with pytest.raises(UnknownNameError, match=r"^no colour 'bleu'. Did you mean 'blue'\? Known: blue, red.$"):
        getattr(registry, method)("bleu")
    with pytest.raises(UnknownNameError, match=r"^no colour 'xyz'. Known: blue, red.$"):
        getattr(registry, method)("xyz")


def test_a_taken_name_is_an_error(registry: Registry) -> None:
    with pytest.raises(ConfigError, match="the colour name 'red' is taken by json:dumps; choose another name"):
        registry.add("red", "json:loads")
    registry.add("green", "json:loads")
    assert registry.load("green") is json.loads


def test_other_packages_register_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        asked.append(group)
        return [metadata.EntryPoint("mine", "json:loads", group)]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    registry = Registry("colour", {"red": "json:dumps"}, entry_point_group="sparcets.colours")
    assert not asked, "plug-ins are looked up when they are needed"
    assert list(registry) == ["mine", "red"] and registry.load("mine") is json.loads
    assert asked == ["sparcets.colours"], "and only once"


def test_a_plug_in_cannot_take_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda group: [metadata.EntryPoint("red", "x:y", group)])
    with pytest.raises(ConfigError, match="'red' is taken"):
        list(Registry("colour", {"red": "json:dumps"}, entry_point_group="g"))


@given(st.sampled_from(["countergan", "Sparce", "nearest"]), st.data())
def test_one_wrong_letter_is_recognised(name: str, data: Any) -> None:
    place = data.draw(st.integers(0, len(name) - 1))
    wrong = name[:place] + data.draw(st.sampled_from("qxz")) + name[place + 1 :]
    assert did_you_mean(wrong.upper(), ["countergan", "Sparce", "nearest"]) == f" Did you mean '{name}'?"


def test_long_lists_are_cut() -> None:
    message = str(unknown_name("thing", 7, [f"n{i:02d}" for i in range(31)]))
    assert "n29, … (31 in all)." in message and "n30" not in message


def test_a_missing_extra_says_how_to_get_it() -> None:
    assert require_extra("json", "plots", "plots") is json
    expected = r"^plots need no_such_package. Install it with: pip install 'sparcets\[plots\]'$"
    with pytest.raises(MissingExtraError, match=expected):
        require_extra("no_such_package.figure", "plots", "plots")
    with pytest.raises(MissingExtraError, match=r"^a picture needs no_such_package\."):
        require_extra("no_such_package", "a picture", "plots")
