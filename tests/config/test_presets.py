"""Settings by the name of a preset."""

import pytest

from sparcets.config.explainers import IcsConfig, NearestConfig, SparceConfig
from sparcets.config.presets import from_preset
from sparcets.errors import ConfigError


def test_presets_are_those_of_the_method() -> None:
    assert from_preset(SparceConfig, "default") == SparceConfig()
    assert from_preset(SparceConfig, "tiny") == SparceConfig.tiny()
    assert from_preset(SparceConfig, "paper", "ups") == SparceConfig.paper(target="ups")


def test_a_target_makes_a_method_for_it_alone() -> None:
    assert from_preset(IcsConfig, "default", "ups") == IcsConfig(target="ups")
    assert from_preset(IcsConfig, "tiny", "2").target == 2


@pytest.mark.parametrize(
    ("kind", "preset", "target", "words"),
    [
        (NearestConfig, "paper", "ups", "NearestConfig has no preset 'paper'. Known: default, tiny."),
        (SparceConfig, "paper", None, "the paper trains for one target class"),
        (NearestConfig, "default", "ups", "NearestConfig has no target of its own"),
    ],
)
def test_what_cannot_be_is_told(kind: type, preset: str, target: str | None, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_preset(kind, preset, target)
    assert words in str(caught.value)
