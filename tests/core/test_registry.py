"""Registry: loaded on use, suggestions for misspelt names, entry points of other packages."""

import json

import pytest

from sparcets.core.errors import ConfigError, MissingExtraError, UnknownNameError
from sparcets.core.registry import Registry, require_extra


@pytest.fixture
def registry():
    return Registry("colour", {"red": "json:dumps", "blue": "no_such_module:x"}, about={"red": "as a rose"})


def test_listing_imports_nothing_and_loading_does(registry):
    assert list(registry) == ["blue", "red"] and len(registry) == 2 and "blue" in registry
    assert registry.location("blue") == "no_such_module:x" and registry.about == {"red": "as a rose"}
    assert registry.load("red") is json.dumps
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry.load("blue")


@pytest.mark.parametrize("method", ["load", "location"])
def test_unknown_names(registry, method):
    with pytest.raises(UnknownNameError, match=r"^no colour 'bleu'. Did you mean 'blue'\? Known: blue, red.$"):
        getattr(registry, method)("bleu")
    with pytest.raises(UnknownNameError, match=r"^no colour 'xyz'. Known: blue, red.$"):
        getattr(registry, method)("xyz")
    with pytest.raises(UnknownNameError, match=r"^no colour \['red'\]"):
        getattr(registry, method)(["red"])


def test_adding_a_taken_name(registry):
    with pytest.raises(ConfigError, match="the colour name 'red' is taken by json:dumps; choose another name"):
        registry.add("red", "json:loads")
    registry.add("green", "json:loads")
    assert registry.load("green") is json.loads


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return the entry points of an installed package that registers nothing yet."""
    folder = tmp_path / "plug_in-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Name: plug-in\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder / "entry_points.txt"


def test_entry_points_of_other_packages(installed):
    registry = Registry("colour", {"red": "json:dumps"}, entry_point_group="sparcets.colours")
    installed.write_text("[sparcets.colours]\nmine = json:loads\n[sparcets.shapes]\nround = json:dumps\n")
    assert list(registry) == ["mine", "red"] and registry.load("mine") is json.loads, "read on first use"
    installed.unlink()
    assert list(registry) == ["mine", "red"], "and only once"
    assert list(Registry("colour", {"red": "json:dumps"})) == ["red"]


def test_missing_extra():
    assert require_extra("json", "plots", "plots") is json
    expected = r"^plots need no_such_package. Install it with: pip install 'sparcets\[plots\]'$"
    with pytest.raises(MissingExtraError, match=expected):
        require_extra("no_such_package.figure", "plots", "plots")
    with pytest.raises(MissingExtraError, match=r"^a picture needs no_such_package\."):
        require_extra("no_such_package", "a picture", "plots")
